/** Follows every object of a kind and every change, until the caller stops. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ApiObject } from "../../../infra/local/storage/json.ts";
import type { Cluster, Resource } from "../../../shared/kube/port.ts";

const WATCH_SECONDS = 300;
const RETRY_MS = 100;

export interface Following {
  readonly cluster: Cluster;
  readonly resource: Resource;
  /** the namespace; absent: all namespaces */
  readonly namespace?: string;
  readonly signal: AbortSignal;
  /** Gets the oldest object first. After a break it gets existing objects once more. */
  see(object: ApiObject, isGone: boolean): void;
}

/** Returns the number of a state; later states of a kind have higher numbers. */
export function sequenceOf({ metadata }: ApiObject): number {
  return Number(metadata.resourceVersion);
}

async function listAndWatch({ cluster, resource, namespace, signal, see }: Following): Promise<void> {
  const where = namespace === undefined ? {} : { namespace };
  const { items, metadata } = await cluster.list<ApiObject>(resource, where);
  for (const item of items.toSorted((one, other) => sequenceOf(one) - sequenceOf(other))) see(item, false);
  const options = { ...where, resourceVersion: metadata.resourceVersion, timeoutSeconds: WATCH_SECONDS, signal };
  for await (const { type, object } of cluster.watch<ApiObject>(resource, options)) {
    if (type !== "BOOKMARK") see(object, type === "DELETED");
  }
}

/** Resolves after the signal. An API server that is down is asked again until it answers. */
export async function follow(following: Following): Promise<void> {
  while (!following.signal.aborted) await listAndWatch(following).catch(() => sleep(RETRY_MS));
}
