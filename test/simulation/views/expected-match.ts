/**
 * Finds the SidecarSets that a pod should get, and the revision of each. The rules are written here again, after
 * OpenKruise's documentation.
 */
import type { ControllerRevision, LabelSelector, Labels, Namespace, Pod } from "../../../shared/api/kubernetes.ts";
import {
  BASE_ANNOTATION,
  CANARY_ANNOTATION,
  CUSTOM_VERSION_LABEL,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  KRUISE_NAMESPACE,
  NAMESPACE_NAME_LABEL,
  SIDECARSET_NAME_LABEL,
} from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { hasLabels } from "../label-match.ts";

/** "refused": the pod is refused; undefined: the pod gets nothing from the SidecarSet. */
export type Chosen = SidecarSet | "refused" | undefined;

export interface Surroundings {
  readonly namespace: Namespace | undefined;
  readonly revisions: readonly ControllerRevision[];
  /** the random number that the webhook drew */
  readonly random: number;
}

function isMeantFor({ spec }: SidecarSet, labels: Labels | undefined, namespace: Namespace | undefined): boolean {
  const { selector, namespaceSelector } = spec;
  if (!selector || isEmpty(selector) || !hasLabels(labels, selector)) return false;
  return !namespaceSelector || (namespace !== undefined && hasLabels(namespace.metadata?.labels, namespaceSelector));
}

function isEmpty({ matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean {
  return Object.keys(matchLabels).length + matchExpressions.length === 0;
}

export function chosenOf(sidecarSet: SidecarSet, { metadata }: Pod, around: Surroundings): Chosen {
  const { injectionStrategy = {}, updateStrategy = {} } = sidecarSet.spec;
  if (injectionStrategy.paused || !isMeantFor(sidecarSet, metadata?.labels, around.namespace)) return undefined;
  const { revision } = injectionStrategy;
  if (!revision || (revision.revisionName === undefined && revision.customVersion === undefined)) return sidecarSet;
  const found = pinned(sidecarSet, around.revisions);
  if (!found) return "refused";
  const isOld =
    updateStrategy.paused === true ||
    revision.policy !== "Partial" ||
    isLeftBehind(sidecarSet, metadata?.labels, around.random);
  return isOld ? asRecorded(sidecarSet, found) : sidecarSet;
}

/** True if the policy Partial leaves the pod at the older revision. */
function isLeftBehind({ spec }: SidecarSet, labels: Labels | undefined, random: number): boolean {
  const { selector, partition = 0 } = spec.updateStrategy ?? {};
  if (selector && !hasLabels(labels, selector)) return true;
  return typeof partition === "string" && random < Number.parseInt(partition, 10) / 100;
}

/**
 * Finds the SidecarSet's own pinned revision: by name before version. Of several with the version, it takes the newest.
 */
function pinned({ metadata, spec }: SidecarSet, revisions: readonly ControllerRevision[]) {
  const { revisionName, customVersion } = spec.injectionStrategy?.revision ?? {};
  const own = revisions.filter(
    (one) =>
      one.metadata?.namespace === KRUISE_NAMESPACE &&
      one.metadata.ownerReferences?.some(({ controller, uid }) => controller === true && uid === metadata?.uid),
  );
  if (revisionName !== undefined) return own.find((one) => one.metadata?.name === revisionName);
  const labelled = own.filter(({ metadata: { labels } = {} }) => {
    return labels?.[SIDECARSET_NAME_LABEL] === metadata?.name && labels?.[CUSTOM_VERSION_LABEL] === customVersion;
  });
  return labelled.toSorted((one, other) => other.revision - one.revision)[0];
}

/** Returns the SidecarSet with the revision's injected fields, and with its own other fields. */
function asRecorded(sidecarSet: SidecarSet, { metadata, data }: ControllerRevision): SidecarSet {
  const { spec } = data as { readonly spec: SidecarSet["spec"] };
  const given = Object.entries(spec).filter(([, value]) => value !== null);
  const hashes = [HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION].map((key) => [key, metadata?.annotations?.[key]]);
  return {
    ...sidecarSet,
    metadata: {
      ...sidecarSet.metadata,
      annotations: { ...sidecarSet.metadata?.annotations, ...Object.fromEntries(hashes) },
    },
    spec: Object.fromEntries(given) as SidecarSet["spec"],
    status: { ...sidecarSet.status, latestRevision: metadata?.name ?? "" },
  };
}

/** SidecarSets that name their namespaces come first, then the others by name. A canary replaces its base. */
export function inOrder(
  chosen: readonly { readonly as: SidecarSet; readonly is: SidecarSet }[],
): readonly SidecarSet[] {
  const rank = ({ is }: { readonly is: SidecarSet }) => `${namesNamespaces(is) ? 0 : 1} ${is.metadata?.name}`;
  const sorted = chosen.toSorted((one, other) => (rank(one) < rank(other) ? -1 : 1));
  const bases = sorted.map(({ is: { metadata } }) => {
    const { [CANARY_ANNOTATION]: isCanary, [BASE_ANNOTATION]: base } = metadata?.annotations ?? {};
    return isCanary === "true" ? base : undefined;
  });
  return sorted.filter(({ is }) => !bases.includes(is.metadata?.name)).map(({ as }) => as);
}

function namesNamespaces({ spec: { namespaceSelector } }: SidecarSet): boolean {
  const { matchLabels = {}, matchExpressions = [] } = namespaceSelector ?? {};
  const isNamed = matchExpressions.some(({ key, operator }) => key === NAMESPACE_NAME_LABEL && operator === "In");
  return isNamed || matchLabels[NAMESPACE_NAME_LABEL] !== undefined;
}
