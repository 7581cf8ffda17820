/** Tells whether a registration announces every write of a SidecarSet that changes what pods get. */
import {
  ANNOUNCE_SIDECARSET_PATH,
  ANNOUNCED_WRITES_CONDITION,
  SIDECARSET_GROUP,
  SIDECARSET_VALIDATION_WEBHOOK,
} from "../../../api/names.ts";

/** The part of a webhook's registration that decides when API servers call it. */
interface RegisteredWebhook {
  readonly name?: string;
  readonly clientConfig?: { readonly url?: string; readonly service?: { readonly path?: string } };
  readonly rules?: readonly {
    readonly operations?: readonly string[];
    readonly apiGroups?: readonly string[];
    readonly apiVersions?: readonly string[];
    readonly resources?: readonly string[];
    readonly scope?: string;
  }[];
  readonly failurePolicy?: string;
  readonly matchPolicy?: string;
  readonly namespaceSelector?: object;
  readonly objectSelector?: object;
  readonly matchConditions?: readonly { readonly name?: string; readonly expression?: string }[];
}

const REVISION_OF = (object: string) =>
  `(has(${object}.status) && has(${object}.status.latestRevision) ? ${object}.status.latestRevision : '')`;

/**
 * The condition for announced writes. Pods use only the latest revision of a status, so other writes of a status are
 * not announced.
 */
export const ANNOUNCED_WRITES = {
  name: ANNOUNCED_WRITES_CONDITION,
  expression: `!(has(request.subResource) && request.subResource == 'status') || ${REVISION_OF("object")} != ${REVISION_OF("oldObject")}`,
};

const OPERATIONS = ["CREATE", "UPDATE", "DELETE"];
const RESOURCES = ["sidecarsets", "sidecarsets/status"];
const VERSIONS = ["v1alpha1", "v1beta1"];

export const ANNOUNCED_RULES = [
  { operations: OPERATIONS, apiGroups: [SIDECARSET_GROUP], apiVersions: VERSIONS, resources: RESOURCES },
];

/**
 * True only if API servers refuse a write that was not announced. The path identifies a webhook that announces: an
 * older release, or OpenKruise, serves nothing there.
 */
export function isEveryWriteAnnounced(webhooks: readonly RegisteredWebhook[]): boolean {
  return webhooks.some((webhook) => {
    const { name, clientConfig, failurePolicy, matchConditions = [] } = webhook;
    const where = clientConfig?.url ?? clientConfig?.service?.path ?? "";
    const isOurs =
      name === SIDECARSET_VALIDATION_WEBHOOK && where.endsWith(ANNOUNCE_SIDECARSET_PATH) && failurePolicy === "Fail";
    const isSpared = matchConditions.some(({ expression }) => expression !== ANNOUNCED_WRITES.expression);
    return isOurs && !isSpared && isForAll(webhook);
  });
}

function isForAll({ rules = [], matchPolicy, namespaceSelector, objectSelector }: RegisteredWebhook): boolean {
  const selectors = [namespaceSelector, objectSelector].flatMap((selector) => Object.keys(selector ?? {}));
  if (selectors.length > 0 || matchPolicy === "Exact") return false;
  return OPERATIONS.every((operation) =>
    RESOURCES.every((resource) => rules.some((rule) => covers(rule, operation, resource))),
  );
}

type Rule = NonNullable<RegisteredWebhook["rules"]>[number];

function covers(rule: Rule, operation: string, resource: string): boolean {
  const has = (values: readonly string[] = [], wanted: string) => values.includes(wanted) || values.includes("*");
  const isResource = has(rule.resources, resource) || rule.resources?.includes("*/*") === true;
  const isVersion = rule.apiVersions?.some((version) => [...VERSIONS, "*"].includes(version)) === true;
  return (
    has(rule.operations, operation) &&
    has(rule.apiGroups, SIDECARSET_GROUP) &&
    isResource &&
    isVersion &&
    rule.scope !== "Namespaced"
  );
}
