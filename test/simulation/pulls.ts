/**
 * Nodes that pull images in worlds where SidecarSets demand pulls before updates. Sets the results of the pulls, and
 * judges how passes use them. Remembers which images each node has had.
 */
import type { ContainerStatus, Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, PRE_PULL_LABEL, WAVES_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import type { ApiServer, Write } from "./api-server.ts";
import type { Chance } from "./chance.ts";
import { countFault, type FaultCounts } from "./faults.ts";
import type { IsInNamespace } from "./namespace-witness.ts";
import { hashOfPod, imageIDOf, isPodReady, isSidecarOf, KRUISE_NAMESPACE, type SetPlan, timeOf } from "./objects.ts";
import { isOfSet, ordinalOf, ownerOf } from "./ordinals.ts";
import { budgetOf, partitionNow, reaches, selects } from "./permission.ts";
import type { Scheduler } from "./scheduler.ts";
import { mostPasses, writtenByPass } from "./settle.ts";
import type { WavePlan } from "./wave-witness.ts";
import type { World } from "./world.ts";

/** The nodes' pulls while faults occur, and until the other judges have finished. */
export interface PullPlan {
  readonly nodes: number;
  /** the SidecarSets' annotation: the number of nodes that pull at once */
  readonly atOnce: number;
  /** longest time of a pull in milliseconds */
  readonly slowMs: number;
  /** behaviour of the first node */
  readonly first: "pulls" | "cannot pull" | "says nothing" | "has no room";
}

/** True for a pod that pulls images: the kruise namespace has no other pods. */
export const isPull = ({ metadata }: Pod) => metadata?.namespace === KRUISE_NAMESPACE;

const FIRST_NODE = "node-1";
const WRITER = "kubelet";
/** Milliseconds after which passes give up a pulling pod without a result. */
const SILENT_MS = 600_000;
/** Number of passes, one or two minutes apart, until they give up such a pod. */
const SILENT_PASSES = 14;

/** Returns the pod on the node with the pod's number, modulo the number of nodes. */
export function onNode(pod: Pod, nodes: number, count: number): Pod {
  return { ...pod, spec: { ...pod.spec, nodeName: `node-${1 + (count % nodes)}` } };
}

interface PullsOptions {
  /** the nodes' behaviour; absent: no pulls */
  readonly plan: PullPlan | undefined;
  readonly sets: readonly SetPlan[];
  readonly server: ApiServer;
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly counts: FaultCounts;
  readonly violated: (what: string) => void;
}

export class Pulls {
  readonly #options: PullsOptions;
  /** "node image" of images that the node has, or has had */
  readonly #there = new Set<string>();
  /** "node image" of pulls with an unknown result */
  readonly #unclear = new Set<string>();
  #isHealed = false;

  constructor(options: PullsOptions) {
    this.#options = options;
  }

  /** True for a write that only this judge must see. */
  see(write: Write): boolean {
    if (write.resource !== "pods" || this.#options.plan === undefined) return false;
    const pod = write.object as unknown as Pod;
    if (!isPull(pod)) {
      this.#judgeUpdate(write, write.previous as unknown as Pod | undefined, pod);
      this.#know(pod);
      return false;
    }
    if (write.userAgent.startsWith("pass")) this.#judge(write, pod);
    if (!(write.previous || write.isRemoved)) this.#begin(pod);
    return true;
  }

  /** Every node can pull from now on. */
  heal(): void {
    this.#isHealed = true;
    for (const pod of this.#pods()) this.#begin(pod);
  }

  /** Returns the problems after all work has ended. */
  problems(): readonly string[] {
    return this.#pods().map(({ metadata, spec }) => `${metadata?.name} still pulls on ${spec.nodeName}`);
  }

  /** True while the pod's node cannot pull an image of the SidecarSet. */
  isHeld({ spec }: Pod, set: SidecarSet): boolean {
    const lacks = (set.spec.containers ?? []).some(({ image }) => !this.#there.has(`${spec.nodeName} ${image}`));
    return lacks && spec.nodeName === FIRST_NODE && this.#options.plan?.first === "cannot pull" && !this.#isHealed;
  }

  #pods(): readonly Pod[] {
    return this.#options.server.every<Pod>(PODS).filter(isPull);
  }

  /** Records that the node has the images of running containers. */
  #know({ spec, status }: Pod): void {
    for (const { image, imageID } of status?.containerStatuses ?? [])
      if (imageID) this.#there.add(`${spec.nodeName} ${image}`);
  }

  #begin(pod: Pod): void {
    const { scheduler, chance, plan, counts } = this.#options;
    const how = this.#isHealed || pod.spec.nodeName !== FIRST_NODE ? "pulls" : (plan?.first ?? "pulls");
    if (how !== "pulls") countFault(counts, `node ${how}`);
    const afterMs = how === "says nothing" ? SILENT_MS : chance.between(1, plan?.slowMs ?? 1);
    scheduler.after(afterMs, () => {
      const isThere = this.#pods().some(({ metadata }) => metadata?.uid === pod.metadata?.uid);
      if (isThere && (!this.#isHealed || how === "pulls")) this.#end(pod, how);
    });
  }

  #end(pod: Pod, how: PullPlan["first"]): void {
    const places = pod.spec.containers.map(({ image }) => `${pod.spec.nodeName} ${image}`);
    if (how !== "cannot pull") for (const place of places) (how === "pulls" ? this.#there : this.#unclear).add(place);
    if (how !== "says nothing") this.#tell(pod, how);
  }

  #tell(pod: Pod, how: Exclude<PullPlan["first"], "says nothing">): void {
    const { server, scheduler } = this.#options;
    const at = timeOf(scheduler.nowMs);
    const statusOf = (own: (image: string) => Pick<ContainerStatus, "imageID" | "state">) =>
      pod.spec.containers.map(
        ({ name, image = "" }): ContainerStatus => ({ name, image, ready: false, restartCount: 0, ...own(image) }),
      );
    const ended = { exitCode: 128, reason: "StartError", startedAt: at, finishedAt: at };
    const waiting = { reason: "ImagePullBackOff", message: "no such image" };
    const status = {
      "has no room": { phase: "Failed", reason: "OutOfpods", message: "the node has no room" },
      "cannot pull": { phase: "Pending", containerStatuses: statusOf(() => ({ imageID: "", state: { waiting } })) },
      pulls: {
        phase: "Failed",
        containerStatuses: statusOf((image) => ({ imageID: imageIDOf(image), state: { terminated: ended } })),
      },
    }[how];
    server.put(WRITER, PODS, { ...pod, status } as Pod);
  }

  /** Judges passes' writes to the pods that pull. */
  #judge({ userAgent, verb, isRemoved, previous }: Write, pod: Pod): void {
    const { plan, violated } = this.#options;
    const { name, labels = {}, ownerReferences = [] } = pod.metadata ?? {};
    const report = (what: string) => violated(`${userAgent}: ${verb} ${name} ${what}`);
    if (isRemoved || verb === "delete") return;
    if (previous) report("changes a pod that pulls");
    const uid = ownerReferences[0]?.uid ?? "";
    if (ownerReferences.length !== 1 || labels[PRE_PULL_LABEL] !== uid) report("belongs to no SidecarSet");
    const own = this.#pods().filter(({ metadata }) => metadata?.ownerReferences?.[0]?.uid === uid);
    if (own.length > (plan?.atOnce ?? 0)) report(`is one of ${own.length}, and ${plan?.atOnce} are asked for`);
  }

  /** A working pod may get only an image that its node has, or may have. */
  #judgeUpdate({ userAgent, isRemoved }: Write, before: Pod | undefined, after: Pod): void {
    if (!(userAgent.startsWith("pass") && before) || isRemoved || !isPodReady(before)) return;
    const { sets, violated } = this.#options;
    const { metadata, spec } = after;
    for (const [place, { name, image }] of spec.containers.entries()) {
      const isNew =
        image !== before.spec.containers[place]?.image && sets.some((set) => isSidecarOf(set.name, { name }));
      const key = `${spec.nodeName} ${image}`;
      if (isNew && !this.#there.has(key) && !this.#unclear.has(key))
        violated(
          `${userAgent}: ${metadata?.namespace}/${metadata?.name} gets ${image}: ${spec.nodeName} has not pulled it`,
        );
    }
  }
}

/**
 * Runs a rollout while one node keeps its behaviour and nothing else blocks. Every pod of other nodes must be updated
 * within a rollout's passes and a few more. Pods of a node that cannot pull keep their version, and the status names
 * the node.
 */
export async function judgePulls(world: World, { first }: PullPlan): Promise<void> {
  const { scenario, server } = world;
  const pods = server.all(PODS).length;
  const most = mostPasses(world) + (first === "pulls" ? 0 : SILENT_PASSES);
  for (let pass = 0; pass < most; pass++) await writtenByPass(world);
  for (const { name } of scenario.sets) {
    const set = server.peek<SidecarSet>(SIDECARSETS, { name });
    const problems = set && budgetOf(set, pods) > 0 ? problemsOf(world, set) : [];
    for (const problem of problems) world.violated(`${name}: after ${most} passes ${problem}`);
  }
}

function problemsOf(world: World, set: SidecarSet): readonly string[] {
  const late = latePods(world, set);
  const held = late.filter((pod) => world.pulls.isHeld(pod, set));
  const isOrdinal = world.scenario.sets.some(({ name, isOrdinal: is }) => is && name === set.metadata?.name);
  const waveOf = wavesOf(set, world.witness.namespaces.now);
  const waits = (pod: Pod, one: Pod) => (isOrdinal && isBehind(pod, one)) || waveOf(pod) > waveOf(one);
  const others = late.filter((pod) => !held.includes(pod) && !held.some((one) => waits(pod, one)));
  const matched = world.server.all<Pod>(PODS).filter((pod) => selects(set, pod, world.witness.namespaces.now)).length;
  const kept = partitionNow(set, matched);
  // If the partition keeps all late pods, none of them waits for a node.
  const isUnnamed = late.length > kept && others.length === 0 && !isNamed(set);
  return [
    ...others
      .slice(kept)
      .map(({ metadata, spec }) => `${metadata?.name} on ${spec.nodeName} is not updated: ${wordsOf(set)}`),
    ...(isUnnamed ? [`pods of ${FIRST_NODE} wait, and it is not named: ${wordsOf(set)}`] : []),
  ];
}

/** Returns the number of a pod's wave by its namespace. Pods of no wave come last. */
function wavesOf({ metadata }: SidecarSet, isIn: IsInNamespace): (pod: Pod) => number {
  const waves: readonly WavePlan[] = JSON.parse(metadata?.annotations?.[WAVES_ANNOTATION] ?? "[]");
  return (pod) => {
    const wave = waves.findIndex(({ namespaceSelector }) => isIn(pod, namespaceSelector));
    return wave < 0 ? waves.length : wave;
  };
}

function latePods({ server, witness }: World, set: SidecarSet): readonly Pod[] {
  const { now } = witness.namespaces;
  const hash = set.metadata?.annotations?.[HASH_ANNOTATION];
  const isLate = (pod: Pod) =>
    !pod.metadata?.deletionTimestamp &&
    selects(set, pod, now) &&
    reaches(set, pod, now) &&
    hashOfPod(pod, set.metadata?.name ?? "") !== hash;
  return server.all<Pod>(PODS).filter(isLate);
}

/**
 * False only if both pods belong to one StatefulSet and `pod` has the higher ordinal: then `pod` never waits for
 * `other`.
 */
function isBehind(pod: Pod, other: Pod): boolean {
  return isOfSet(pod) && isOfSet(other) && !(ownerOf(pod) === ownerOf(other) && ordinalOf(pod) > ordinalOf(other));
}

const wordsOf = ({ status }: SidecarSet) =>
  (status?.conditions ?? [])
    .map(({ type, status: is, reason, message }) => `${type}=${is} ${reason} ${message}`)
    .join("; ");

function isNamed({ status }: SidecarSet): boolean {
  const blocked = status?.conditions?.find(({ type }) => type === "Blocked");
  return blocked?.status === "True" && blocked.reason === "PrePull" && (blocked.message ?? "").includes(FIRST_NODE);
}
