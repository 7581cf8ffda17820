/** Turns a read of the Cluster port into one HTTP request, with the paths and queries of Kubernetes' API. */
import { KubeError } from "./error.ts";
import type { ListOptions, Resource } from "./port.ts";
import type { OutgoingRequest, RequestRecord } from "./transport.ts";

export interface Call extends Omit<OutgoingRequest, "timeoutMs"> {
  readonly verb: RequestRecord["verb"];
  readonly resource: string;
  /** namespace of the written object */
  readonly namespace?: string | undefined;
  /** part of each listed item to keep */
  readonly keep?: ListOptions["keep"];
}

export function pathOf(
  resource: Resource,
  { namespace, name }: { readonly namespace?: string; readonly name?: string },
) {
  const { group, version, plural, namespaced } = resource;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const scope = namespaced && namespace !== undefined ? `/namespaces/${segmentOf(namespace)}` : "";
  return `${root}${scope}/${plural}${name === undefined ? "" : `/${segmentOf(name)}`}`;
}

/**
 * Names that are never sent. An empty name, "." and ".." would address another object, and a slash a part of one.
 * Servers refuse those, "%" and more than 253 letters with 400 or 403, although owners and annotations of pods may hold
 * such names.
 */
const NO_NAME = /^\.{0,2}$|[/%]|^.{254}/s;

function segmentOf(name: string): string {
  if (NO_NAME.test(name))
    throw new KubeError(`there is no object named ${JSON.stringify(name)}`, { code: 404, reason: "NotFound" });
  return encodeURIComponent(name);
}

type Query = Readonly<Record<string, string | undefined>>;

export function queryOf(query: Query): string {
  const present = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return present.length === 0 ? "" : `?${new URLSearchParams(present)}`;
}

export function listQuery(options: ListOptions): Query {
  return {
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
    limit: options.limit?.toString(),
    continue: options.continue,
    resourceVersion: options.resourceVersion,
    resourceVersionMatch: options.resourceVersionMatch,
  };
}
