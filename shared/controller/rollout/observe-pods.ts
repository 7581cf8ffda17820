/** Reads a decision's inputs for a SidecarSet: revisions and pods, page by page, which are reduced as they arrive. */
import type {
  ControllerRevision,
  KubernetesObject,
  LabelSelector,
  Labels,
  Namespace,
  Pod,
} from "../../api/kubernetes.ts";
import { CONTROL_PLANE_LABEL, SIDECARSET_NAME_LABEL } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { EXEMPT_NAMESPACES, isCanaryOf } from "../../core/injection/match/matches.ts";
import { mayHaveMissed, missedPods } from "../../core/injection/missed/missed-pods.ts";
import { injectedBy, podName } from "../../core/pod/is-matched.ts";
import { steeringOf } from "../../core/pod/steering/steering.ts";
import { namespaceLabelsRead } from "../../core/pod/steering/waves.ts";
import { selectionOf } from "../../core/rollout/rules/missed/selection.ts";
import type { PodProblem } from "../../core/rollout/summary.ts";
import { NOTHING_ELSE, whyLeftOut } from "../../core/rollout/upgrade/project-pod.ts";
import { selectorMatches } from "../../go/label-selector.ts";
import { isLater } from "../../go/resource-version.ts";
import type { Sequence } from "../../go/sequence.ts";
import { ifThere, isKubeError } from "../../kube/error.ts";
import {
  type Cluster,
  CONTROLLER_REVISIONS,
  type ListOptions,
  NAMESPACES,
  type Resource,
  SIDECARSETS,
} from "../../kube/port.ts";
import { type Clock, timestamp } from "../loop/clock.ts";
import { mapLimited } from "../loop/concurrency-limit.ts";
import { deadlineExceeded } from "../loop/metered.ts";
import { noPages, readPages, selectorText } from "../loop/pages.ts";
import type { PodView } from "../pod-store/pod-view.ts";
import { Reading } from "./reading.ts";
import type { MissedReport } from "./report.ts";

const NAMESPACES_AT_ONCE = 4;
/** Limit of the left out pods that a report names. */
const MOST_NAMED = 10;
/** Number of namespaces above which one list of all pods is faster than single lists. */
const MANY_NAMESPACES = 50;
/** Measured on 2026-11-27: reading took 16 times as long as the first decision with 60,000 pods, and 30 times with 150,000. */
const READING_TO_DECISION = 20;

/** The selected pods of a SidecarSet, in the form that a list and a watch need. */
export interface Scope {
  /** namespaces of the pods; absent: all */
  readonly namespaces?: ReadonlySet<string>;
  /** selector for the API server; absent: none is sent */
  readonly labelSelector?: string;
  /** returns true for selected pods, even if the API server could not be asked to select */
  readonly isSelected: (pod: Pod) => boolean;
}

interface LeftOut extends Pick<PodProblem, "namespace" | "name"> {
  readonly why: string;
}

export interface Observed {
  readonly view: PodView;
  readonly scope: Scope;
  /** the labels that waves read, by namespace; empty without waves */
  readonly namespaceLabels: ReadonlyMap<string, Labels>;
  /** pods that are too large to follow, or are none, by uid; ten at most */
  readonly leftOut: ReadonlyMap<string, LeftOut>;
  /** version from which a watch continues; absent if nothing was listed */
  readonly resourceVersion?: string;
}

/** Reads what `reading` lacks. Throws KubeError, and Error for a selector with an unknown operator. */
export async function observePods(
  cluster: Cluster,
  sidecarSet: SidecarSet,
  reading: Reading = new Reading(sidecarSet, NOTHING_ELSE),
): Promise<Observed> {
  const leftOut = new Map<string, LeftOut>();
  const { scope, namespaceLabels } = await readScope(cluster, sidecarSet, leftOut);
  const { namespaces } = scope;
  const { view } = reading;
  // A SidecarSet without a selector selects nothing.
  if (!sidecarSet.spec.selector) return { view, scope, namespaceLabels, leftOut };
  const isEach = namespaces !== undefined && namespaces.size <= MANY_NAMESPACES;
  const { isSelected } = scope;
  const lists = await mapLimited(isEach ? [...namespaces] : [""], NAMESPACES_AT_ONCE, (namespace, isOver) =>
    reading.readList(cluster, namespace, listOptions(scope, namespace), { isSelected, isOver }),
  );
  const versions = lists.map((list) => list.resourceVersion);
  const oldest = versions.reduce<string | undefined>(
    (old, version) => (old === undefined || isLater(old, version) ? version : old),
    undefined,
  );
  view.complete(lists.map(({ items }) => items));
  return { view, scope, namespaceLabels, leftOut, ...(oldest === undefined ? {} : { resourceVersion: oldest }) };
}

/** The scope of a SidecarSet. `leftOut`: receives pods that are too large. */
export async function readScope(
  cluster: Cluster,
  sidecarSet: SidecarSet,
  leftOut: Map<string, LeftOut> = new Map(),
): Promise<Pick<Observed, "scope" | "namespaceLabels">> {
  const { selector, namespaceSelector } = sidecarSet.spec;
  const labels = withoutLarge(scopeOf(selector), sidecarSet, leftOut);
  const keys = namespaceLabelsRead(steeringOf(sidecarSet).waves);
  const namespaceLabels =
    namespaceSelector || keys ? await readNamespaces(cluster, namespaceSelector ?? {}, keys) : new Map();
  const namespaces = namespaceSelector && new Set(namespaceLabels.keys());
  const scope = namespaces ? { ...labels, namespaces, isSelected: within(namespaces, labels) } : labels;
  return { scope, namespaceLabels };
}

/**
 * Observes, unless the first decision would come after the end of the pass, when the platform ends the process and
 * loses the data. If reading took longer than the remaining time, the next pass has more. @throws KubeError also
 * DeadlineExceeded
 */
export async function observeInTime(
  { cluster, clock, endsAtMs }: { readonly cluster: Cluster; readonly clock: Clock; readonly endsAtMs: number },
  sidecarSet: SidecarSet,
  reading: Reading,
): Promise<Observed> {
  const beganAtMs = clock.now();
  const took = () => clock.now() - beganAtMs;
  const observed = await observePods(cluster, sidecarSet, reading).finally(() => {
    reading.lastedMs += took();
  });
  const leftMs = endsAtMs - clock.now();
  if (leftMs < reading.lastedMs / READING_TO_DECISION && leftMs < took()) throw deadlineExceeded("decide", true);
  return observed;
}

/** The revisions that OpenKruise or this project recorded for a SidecarSet of this name. */
export async function listRevisions(
  cluster: Cluster,
  kruiseNamespace: string,
  name: string,
): Promise<readonly ControllerRevision[]> {
  const text = selectorText({ matchLabels: { [SIDECARSET_NAME_LABEL]: name } });
  // A name that is too long for a label's value has no labelled revisions.
  if (text === undefined) return [];
  const options = { namespace: kruiseNamespace, labelSelector: text };
  return (await listAll<ControllerRevision, ControllerRevision>(cluster, CONTROLLER_REVISIONS, options, (r) => r))
    .items;
}

/** Options of a list. `namespace`: "" for all. */
function listOptions({ labelSelector }: Scope, namespace: string): ListOptions {
  return { ...(labelSelector ? { labelSelector } : {}), ...(namespace === "" ? {} : { namespace }) };
}

function scopeOf(selector: LabelSelector | undefined): Pick<Scope, "labelSelector" | "isSelected"> {
  refuseUnknownOperators("spec.selector", selector);
  const text = selector ? selectorText(selector) : undefined;
  return {
    ...(text ? { labelSelector: text } : {}),
    isSelected: ({ metadata }) => selectorMatches(selector, metadata?.labels) === true,
  };
}

/**
 * Excludes pods that are too large or malformed. A tenant's large pods would fill the memory of passes over all pods,
 * and a malformed one would end them.
 */
function withoutLarge(scope: ReturnType<typeof scopeOf>, sidecarSet: SidecarSet, leftOut: Map<string, LeftOut>) {
  const isSelected = (pod: Pod) => {
    if (!scope.isSelected(pod)) return false;
    const why = whyLeftOut(pod, sidecarSet);
    if (why === undefined) return true;
    const { namespace = "", name = "", uid = "" } = pod.metadata ?? {};
    if (leftOut.size < MOST_NAMED) leftOut.set(uid, { namespace, name, why });
    return false;
  };
  return { ...scope, isSelected };
}

/** Refuses like OpenKruise: a selector that cannot be evaluated must not look like one that matches nothing. */
function refuseUnknownOperators(field: string, selector: LabelSelector | undefined): void {
  const probe = selectorMatches(selector, {});
  if (typeof probe === "object") throw new Error(`${field}: ${probe.message}`);
}

function within(namespaces: ReadonlySet<string>, { isSelected }: Pick<Scope, "isSelected">): Scope["isSelected"] {
  return (pod) => namespaces.has(pod.metadata?.namespace ?? "") && isSelected(pod);
}

/** The selected namespaces, sorted by name, with the labels of these keys. */
async function readNamespaces(
  cluster: Cluster,
  selector: LabelSelector,
  keys: readonly string[] = [],
): Promise<ReadonlyMap<string, Labels>> {
  refuseUnknownOperators("spec.namespaceSelector", selector);
  const text = selectorText(selector);
  const { items } = await listAll<Namespace, readonly [string, Labels]>(
    cluster,
    NAMESPACES,
    text ? { labelSelector: text } : {},
    ({ metadata: { name = "", labels = {} } = {} }) =>
      selectorMatches(selector, labels) === true && name !== "" ? [name, only(labels, keys)] : undefined,
  );
  return new Map(items.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function only(labels: Labels, keys: readonly string[]): Labels {
  const own = keys.filter((key) => Object.hasOwn(labels, key));
  return Object.fromEntries(own.map((key) => [key, labels[key] ?? ""]));
}

/** All pages of one list, each item through `keep` as it arrives. */
export async function listAll<T extends KubernetesObject, R>(
  cluster: Cluster,
  resource: Resource,
  options: ListOptions,
  keep: (item: T) => R | undefined,
): Promise<{ readonly items: readonly R[]; readonly resourceVersion: string }> {
  return await readPages<T, R>(cluster, { resource, options, keep }, noPages());
}

/** Reads a SidecarSet; undefined: it does not exist. */
export function readSidecarSet(cluster: Cluster, name: string): Promise<SidecarSet | undefined> {
  return ifThere(cluster.get<SidecarSet>(SIDECARSETS, { name }));
}

/** Finds pods that were created without their sidecars: the webhook was down, or not registered. */
const NAMED = 10;
/** Number of names above which one list of all SidecarSets is cheaper. A pod may claim any number of names. */
const MOST_READ_ALONE = 20;
const READS_AT_ONCE = 4;

/**
 * Pods without their sidecars; undefined: unknown. `pods`: selected pods; `keep` reduces a pod for storage. It lists
 * the few exempt namespaces, and only if pods may have missed sidecars.
 */
export async function findMissed(
  { cluster, clock }: { readonly cluster: Cluster; readonly clock: Clock },
  sidecarSet: SidecarSet,
  pods: Sequence<Pod>,
  keep: (pod: Pod) => Pod = (pod) => pod,
): Promise<readonly Pod[] | undefined> {
  const { since } = selectionOf(sidecarSet, timestamp(clock));
  const candidates = mayHaveMissed(pods, sidecarSet, since).map(keep);
  if (candidates.length === 0) return [];
  try {
    const [exempt, canaries] = await Promise.all([listExempt(cluster), findCanaries(cluster, sidecarSet, candidates)]);
    return missedPods(candidates, { exemptNamespaces: new Set([...EXEMPT_NAMESPACES, ...exempt]), canaries });
  } catch (error) {
    if (isKubeError(error)) return undefined;
    throw error;
  }
}

/** Lists namespaces that the pod webhook exempts by label, beside the ones exempt by name. */
async function listExempt(cluster: Cluster): Promise<readonly string[]> {
  const { items } = await listAll<Namespace, string>(
    cluster,
    NAMESPACES,
    { labelSelector: CONTROL_PLANE_LABEL },
    ({ metadata }) => metadata?.name,
  );
  return items;
}

/** Returns the canaries of this SidecarSet whose sidecars some pods have. */
async function findCanaries(cluster: Cluster, base: SidecarSet, pods: readonly Pod[]): Promise<readonly string[]> {
  const names = new Set(pods.flatMap(injectedBy));
  if (names.size > MOST_READ_ALONE) return listCanaries(cluster, base);
  const read = await mapLimited([...names], READS_AT_ONCE, (name) => readSidecarSet(cluster, name));
  return read.flatMap((one) => (one && isCanaryOf(one, base) ? (one.metadata?.name ?? []) : []));
}

async function listCanaries(cluster: Cluster, base: SidecarSet): Promise<readonly string[]> {
  const { items } = await listAll<SidecarSet, string>(cluster, SIDECARSETS, {}, (sidecarSet) =>
    isCanaryOf(sidecarSet, base) ? sidecarSet.metadata?.name : undefined,
  );
  return items;
}

/** Milliseconds for which a missed pod is recent. With a queue settled SidecarSets have a pass every five minutes. */
const RECENT_MS = 600_000;

/** The report on missed pods. `nowMs`: epoch milliseconds */
export function missedReport(
  { missed }: { readonly missed?: readonly Pod[] | undefined },
  nowMs: number,
): MissedReport | undefined {
  const isRecent = ({ metadata }: Pod) => Date.parse(metadata?.creationTimestamp ?? "") > nowMs - RECENT_MS;
  return (
    missed && {
      count: missed.length,
      recent: missed.filter(isRecent).length,
      pods: missed.slice(0, NAMED).map(podName),
    }
  );
}
