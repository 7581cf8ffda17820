/**
 * Pulls a release's images on nodes before pods there are updated. The annotation pre-pull asks for it, and each node
 * gets one short pod.
 */
import { hash } from "node:crypto";
import type { Container, Pod } from "../../../../api/kubernetes.ts";
import { PRE_PULL_DIGEST_LABEL, PRE_PULL_LABEL, SIDECARSET_KIND, SIDECARSET_V1BETA1 } from "../../../../api/names.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { secondsBetween } from "../../../../go/seconds-between.ts";
import { each, type Sequence } from "../../../../go/sequence.ts";
import type { Action } from "../../../actions.ts";
import { isSameImage } from "../../../pod/image-alias.ts";
import { nativeSidecars } from "../../../pod/native-sidecars.ts";
import type { PodState } from "../../../pod/pod-state.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";
import { type BudgetUse, goesDown } from "../../select/budget.ts";
import { placeOf } from "../ordinals/ordinal-order.ts";
import {
  DEADLINE_SECONDS,
  formatRecord,
  isThere,
  LOOK_SECONDS,
  MOST_FAILURES,
  type PullFacts,
  type PullFactsNow,
  type PullsSummary,
  type SeenPulls,
  seePulls,
} from "./pull-facts.ts";

const FAILURES_NAMED = 3;

export interface PullPlan {
  readonly actions: readonly Action[];
  /** the new record for the ledger; undefined: there is none */
  readonly record: string | undefined;
  /** uids of pods that would be next if their nodes had the images */
  readonly waiting: ReadonlySet<string>;
  /** absent: no pod waits for an image */
  readonly summary?: PullsSummary;
}

export interface PullGuard {
  /** the caller's `canTake`, for pods whose node has the images */
  readonly canTake: (state: PodState) => boolean;
  readonly outcome: () => PullPlan | undefined;
}

interface Given {
  readonly sidecarSet: SidecarSet;
  /** the pods that may be updated now, in order */
  readonly line: Sequence<PodState>;
  /** all matched pods */
  readonly pods: Sequence<PodState>;
  readonly budgetUse: BudgetUse;
}

/** The guard. Without facts it allows everything. */
export function pullGuard(given: Given, canTake: (state: PodState) => boolean): PullGuard {
  const { sidecarSet, line, pods, budgetUse } = given;
  const { prePull: pulls, ordinals } = budgetUse.rules;
  const atOnce = steeringOf(sidecarSet).prePull;
  if (pulls === undefined || atOnce === undefined) return { canTake, outcome: () => undefined };
  const images = imagesOf(sidecarSet);
  const seen = seePulls(digestOf(sidecarSet, images), pulls);
  // A kubelet that has started the release has its images. A new pod counts as consistent before its kubelet has seen
  // it.
  const running = nodesOf(pods, (state) => state.isUpdated && state.isConsistent && hasStarted(state, images));
  const pulled = new Set([...seen.current].flatMap(([node, { pull }]) => (pull.kind === "pulled" ? [node] : [])));
  const there = new Set([...running, ...pulled]);
  const asks = (state: PodState) => isHeld(state, images, budgetUse);
  const hasImages = (node: string) => there.has(node) || (pulls.isPlanned === true && !seen.failures.has(node));
  const lacks = (state: PodState) => !hasImages(nodeOf(state)) && asks(state);
  const takenNodes = new Set<string>();
  const waitingNodes = new Set<string>();
  const waiting = new Set<string>();
  const areOthersDone = onceKnown(() => {
    // Every needed node has been tried, and no failure proves a bad image. Pods with an order cannot overtake.
    const failures = [...seen.failures.values()];
    if (failures.length >= MOST_FAILURES && failures.every(({ kind }) => kind === "unclear")) return true;
    const others = nodesOf(line, (state) => !(ordinals && placeOf(state.pod)) && lacks(state));
    return [...others].every((node) => seen.failures.has(node));
  });
  const isOpen = (state: PodState) =>
    !lacks(state) || (seen.failures.get(nodeOf(state))?.kind === "unclear" && areOthersDone());
  return {
    canTake: (state) => {
      if (isOpen(state)) {
        const isTaken = canTake(state);
        if (isTaken && pulled.has(nodeOf(state)) && asks(state)) takenNodes.add(nodeOf(state));
        return isTaken;
      }
      waiting.add(state.pod.metadata?.uid ?? "");
      waitingNodes.add(nodeOf(state));
      return false;
    },
    outcome: () => {
      const asked = nodesOf(line, (state) => !running.has(nodeOf(state)) && asks(state));
      return planPulls(sidecarSet, {
        images,
        seen,
        // A gate may hold the pods that are taken, and the next pass must ask it about the same ones.
        needed: new Set([...takenNodes, ...waitingNodes, ...asked]),
        next: waitingNodes,
        taken: takenNodes,
        waiting,
        atOnce,
        facts: pulls,
      });
    },
  };
}

/** The number of nodes that pull first; undefined: none, or not configured. `pods`: pods to update in place */
export function pullsAhead(sidecarSet: SidecarSet, pods: Sequence<PodState>) {
  const { prePull: atOnce } = steeringOf(sidecarSet);
  const images = imagesOf(sidecarSet);
  const nodes = nodesOf(pods, (state) => isHeld(state, images, { rules: {} })).size;
  return atOnce === undefined || nodes === 0 ? undefined : { nodes, atOnce };
}

/** The cleanup if no pod is next: pull pods are deleted. Undefined: nothing exists and nothing is recorded. */
export function withoutPulls({ pods, record }: PullFacts): PullPlan | undefined {
  if (pods.length === 0 && record === undefined) return undefined;
  // Passes look for pull pods only while a record exists, so the record is removed last.
  return {
    actions: pods.filter(isThere).map(deletion),
    record: pods.length > 0 ? (record ?? "") : undefined,
    waiting: new Set(),
  };
}

// Chooses the images to pull, and finds the pods that wait for them.

type Pulled = Required<Pick<Container, "image">> & Pick<Container, "imagePullPolicy">;

/** The images with the pull policy that the pods would use. */
function imagesOf(sidecarSet: SidecarSet): readonly Pulled[] {
  const containers = [...(sidecarSet.spec.containers ?? []), ...nativeSidecars(sidecarSet)];
  const pulled = containers.flatMap(({ image, imagePullPolicy }) =>
    image && imagePullPolicy !== "Never"
      ? [{ image, ...(imagePullPolicy === undefined ? {} : { imagePullPolicy }) }]
      : [],
  );
  return [...new Map(pulled.map((one) => [one.image, one])).values()];
}

/** True for a working pod whose update would make its node pull. A pod may be reserved for another release. */
function isHeld(state: PodState, images: readonly Pulled[], budgetUse: Pick<BudgetUse, "rules">): boolean {
  const { pod } = state;
  if (nodeOf(state) === "") return false;
  if (!goesDown(state, budgetUse) || budgetUse.rules.replacement?.plan?.replaces(state) === true) return false;
  const has = [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])].map(({ image = "" }) => image);
  return images.some(({ image }) => !has.includes(image) && !has.some((one) => isSameImage(one, image)));
}

/** True if the kubelet's own words show that it runs these images. The pod's author can write only the spec. */
function hasStarted({ pod: { spec, status } }: PodState, images: readonly Pulled[]): boolean {
  const statuses = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  const running = new Map(statuses.filter(({ imageID }) => imageID).map(({ name, image }) => [name, image]));
  const isSame = (one: string | undefined, image: string) => one === image || isSameImage(one ?? "", image);
  const containers = [...spec.containers, ...(spec.initContainers ?? [])];
  return images.every(({ image }) =>
    containers.some(({ name, image: own }) => isSame(own, image) && isSame(running.get(name), image)),
  );
}

function nodeOf({ pod }: PodState): string {
  return pod.spec.nodeName ?? "";
}

function nodesOf(states: Sequence<PodState>, isOne: (state: PodState) => boolean): ReadonlySet<string> {
  const nodes = new Set<string>();
  each(states, (state) => {
    if (isOne(state)) nodes.add(nodeOf(state));
  });
  return nodes;
}

function onceKnown(find: () => boolean): () => boolean {
  let found: boolean | undefined;
  return () => {
    found ??= find();
    return found;
  };
}

// Chooses the pull pods that a pass creates and deletes now.

interface Planned {
  readonly images: readonly Pulled[];
  readonly seen: SeenPulls;
  /** nodes whose pods wait for images, or are next with the images, in order */
  readonly needed: ReadonlySet<string>;
  /** nodes whose pods would be updated now if they had the images */
  readonly next: ReadonlySet<string>;
  /** nodes that have pulled, and whose pods are updated now */
  readonly taken: ReadonlySet<string>;
  readonly waiting: ReadonlySet<string>;
  readonly atOnce: number;
  readonly facts: PullFactsNow;
}

function planPulls(sidecarSet: SidecarSet, planned: Planned): PullPlan {
  const { images, seen, needed, waiting, facts } = planned;
  const { digest } = seen;
  if (facts.isPlanned) return takenForPulled(planned);
  const { created, deleted } = placesOf(sidecarSet, planned);
  const lacking = [...needed].filter((node) => seen.current.get(node)?.pull.kind !== "pulled");
  const failures = [...seen.failures.values()].filter(({ node }) => needed.has(node)).slice(0, MOST_FAILURES);
  const nodesCreated = created.map(({ node }) => node);
  const isOver = lacking.length + created.length + facts.pods.length === 0;
  const pods = created.map(({ node, name }) => pullPod(sidecarSet, { name, node, images, digest, facts }));
  return {
    actions: [...deleted.map(deletion), ...pods.map((pod): Action => ({ kind: "CreatePullPod", pod }))],
    record: isOver ? undefined : formatRecord({ digest, failures, refusal: seen.refusal }),
    waiting,
    ...(lacking.length > 0 ? { summary: summaryOf(planned, lacking, nodesCreated) } : {}),
  };
}

/** The pulls in a plan, which pulls nothing: a node's pods have the images, or keep their version. */
function takenForPulled(planned: Planned): PullPlan {
  const { needed, waiting, seen } = planned;
  const lacking = [...needed].filter((node) => seen.failures.has(node));
  const summary = { ...summaryOf(planned, lacking, []), isStuck: true, seconds: 0 };
  return { actions: [], record: undefined, waiting, ...(lacking.length > 0 ? { summary } : {}) };
}

/**
 * The nodes to pull on, in order. Nodes that failed come last, when they may be tried again. If only such a node keeps
 * pods from going, it takes the place of one that has pulled for pods that cannot go yet.
 */
function placesOf(sidecarSet: SidecarSet, { seen, needed, next, taken, atOnce, facts }: Planned) {
  const { current, failures } = seen;
  const isDue = (one: { readonly until: string } | undefined) => one !== undefined && one.until <= facts.now;
  const kindOf = (node: string) => current.get(node)?.pull.kind;
  const isKept = (node: string) => needed.has(node) && (kindOf(node) === "pulled" || kindOf(node) === "underWay");
  const inLine = [...needed].filter((node) => isKept(node) || !failures.has(node));
  const again = [...needed].filter((node) => !isKept(node) && isDue(failures.get(node)));
  const front = failures.size >= MOST_FAILURES ? [] : inLine.slice(0, atOnce);
  const isIdle = (node: string) => kindOf(node) === "pulled" && !taken.has(node);
  const byTurn = [front.filter((node) => !isIdle(node)), again.filter((node) => next.has(node)), front, again];
  const first = [...new Set(byTurn.flat())].slice(0, atOnce);
  const isRefused = seen.refusal !== undefined && !isDue(seen.refusal);
  const missing = isRefused ? [] : first.filter((node) => !isKept(node));
  const kept = [...current.keys()].filter(isKept);
  // A terminating pod still occupies its name.
  const going = facts.pods.filter((pod) => !isThere(pod)).length;
  const free = Math.max(0, atOnce - kept.length - going);
  const spare = kept.filter((node) => kindOf(node) === "pulled" && !first.includes(node));
  const freed = new Set(spare.slice(0, Math.max(0, missing.length - free)));
  const ended = [...current].filter(([node]) => !isKept(node) || freed.has(node));
  const deleted = [...seen.others, ...ended.map(([, { pod }]) => pod)];
  const names = freeNames(sidecarSet, atOnce, { pods: facts.pods, deleted });
  const nodes = missing.slice(0, Math.min(free + freed.size, names.length));
  return { deleted, created: nodes.map((node, place) => ({ node, name: names[place] ?? "" })) };
}

function freeNames(
  sidecarSet: SidecarSet,
  atOnce: number,
  { pods, deleted }: { readonly pods: readonly Pod[]; readonly deleted: readonly Pod[] },
): readonly string[] {
  const gone = new Set(deleted.map(({ metadata }) => metadata?.uid));
  const taken = new Set(pods.filter(({ metadata }) => !gone.has(metadata?.uid)).map(({ metadata }) => metadata?.name));
  const names = Array.from({ length: atOnce }, (_, slot) => pullName(sidecarSet, slot));
  return names.filter((name) => !taken.has(name));
}

function summaryOf(
  { seen, needed, next, waiting, atOnce, facts }: Planned,
  lacking: readonly string[],
  created: readonly string[],
): PullsSummary {
  const { current, failures, refusal } = seen;
  const open = [...failures.values()].filter(({ node }) => needed.has(node));
  const pulling = lacking.filter((node) => current.get(node)?.pull.kind === "underWay");
  const underWay = pulling.length + created.length;
  const areNoneLeft = lacking.every((node) => failures.has(node)) || failures.size >= MOST_FAILURES;
  // Nodes that have pulled for later pods may keep the places of others.
  const isNextFailed = next.size > 0 && [...next, ...created].every((node) => failures.has(node));
  const isHopeless = refusal !== undefined || areNoneLeft || isNextFailed;
  const ends = [...open, ...(refusal ? [refusal] : [])].map(({ until }) => secondsBetween(facts.now, until) ?? 0);
  return {
    nodes: lacking.length,
    underWay,
    atOnce,
    waiting: waiting.size,
    failed: open.slice(0, FAILURES_NAMED),
    failedCount: open.length,
    ...(refusal ? { refusal: refusal.message } : {}),
    isStuck: isHopeless && pulling.every((node) => failures.has(node)),
    seconds: underWay > 0 || ends.length === 0 ? LOOK_SECONDS : Math.max(LOOK_SECONDS, Math.min(...ends)),
  };
}

function deletion({ metadata }: Pod): Action {
  const { namespace = "", name = "", uid = "" } = metadata ?? {};
  return { kind: "DeletePullPod", namespace, name, uid };
}

// Builds the pull pod itself.

/** The name of a pull pod by its slot. Each name exists once, so there are never more pods than slots. */
function pullName({ metadata }: SidecarSet, slot: number): string {
  return `sidecarset-pull-${hash("sha256", metadata?.uid ?? "").slice(0, 16)}-${slot}`;
}

function digestOf({ spec }: SidecarSet, images: readonly Pulled[]): string {
  return hash("sha256", JSON.stringify([images, spec.imagePullSecrets ?? []])).slice(0, 16);
}

interface PullPod {
  readonly name: string;
  readonly node: string;
  readonly images: readonly Pulled[];
  readonly digest: string;
  readonly facts: Pick<PullFacts, "namespace">;
}

const LIMITS = { cpu: "10m", memory: "16Mi" } as const;

/**
 * The pull pod. It ends when its images are present: `true` runs, or is missing in the image, which is enough too. It
 * meets PodSecurity "restricted". Deletion has no grace period, so that a dead node keeps no name.
 */
function pullPod(sidecarSet: SidecarSet, { name, node, images, digest, facts }: PullPod): Pod {
  const { name: owner = "", uid = "" } = sidecarSet.metadata ?? {};
  const { imagePullSecrets } = sidecarSet.spec;
  const spec = {
    nodeName: node,
    restartPolicy: "Never",
    terminationGracePeriodSeconds: 0,
    activeDeadlineSeconds: DEADLINE_SECONDS,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    tolerations: [{ operator: "Exists" }],
    ...(imagePullSecrets ? { imagePullSecrets } : {}),
    securityContext: { runAsNonRoot: true, runAsUser: 65_534, seccompProfile: { type: "RuntimeDefault" } },
    containers: images.map((image, place) => ({
      name: `image-${place}`,
      ...image,
      command: ["true"],
      resources: { requests: LIMITS, limits: LIMITS },
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    })),
  };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: facts.namespace,
      labels: { [PRE_PULL_LABEL]: uid, [PRE_PULL_DIGEST_LABEL]: digest },
      ownerReferences: [{ apiVersion: SIDECARSET_V1BETA1, kind: SIDECARSET_KIND, name: owner, uid, controller: true }],
    },
    spec,
  };
}
