/**
 * Checks that no sidecar restarts while its pod takes traffic, if SidecarSets demand drains. Also checks that no pod
 * stays drained.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { DRAINED, SERVING, TRAFFIC_LABEL } from "../../shared/api/names.ts";
import { PODS } from "../../shared/kube/port.ts";
import type { ApiServer, Write } from "./api-server.ts";
import { hashOfPod, isPodReady, isSidecarOf, type SetPlan } from "./objects.ts";
import { drainOf, trafficOf } from "./pod-change.ts";

interface DrainWitnessOptions {
  readonly server: ApiServer;
  readonly sets: readonly SetPlan[];
  /** the drain annotation of the SidecarSets; absent: no drains */
  readonly drain: string | undefined;
  readonly nowMs: () => number;
  readonly violated: (what: string) => void;
}

/** Times in pods are in whole seconds. */
const SECOND_MS = 1_000;
const UNIT_MS: Readonly<Record<string, number>> = { s: SECOND_MS, m: 60 * SECOND_MS };
/** Two of every seven pods have no traffic label, or one whose value the owner set. */
const OF_OTHERS: Readonly<Record<number, string | undefined>> = { 5: undefined, 6: "maintenance" };

/** Returns the pod with its owner's label for traffic. `count`: the pod's number. */
export function withTraffic(pod: Pod, drain: string | undefined, count: number): Pod {
  const traffic = count % 7 in OF_OTHERS ? OF_OTHERS[count % 7] : SERVING;
  if (drain === undefined || traffic === undefined) return pod;
  return { ...pod, metadata: { ...pod.metadata, labels: { ...pod.metadata?.labels, [TRAFFIC_LABEL]: traffic } } };
}

export class DrainWitness {
  readonly #options: DrainWitnessOptions;
  readonly #drainMs: number;
  /** uid → time since which the pod's label keeps it out of endpoints */
  readonly #since = new Map<string, number>();

  constructor(options: DrainWitnessOptions) {
    this.#options = options;
    const [, amount = "", unit = ""] = /^(\d+)(.)$/.exec(options.drain ?? "") ?? [];
    this.#drainMs = Number(amount) * (UNIT_MS[unit] ?? 0);
  }

  see({ resource, object, previous, isRemoved, userAgent }: Write): void {
    const { drain, nowMs } = this.#options;
    if (resource !== "pods" || drain === undefined || isRemoved || !previous) return;
    const [before, after] = [previous as unknown as Pod, object as unknown as Pod];
    const uid = after.metadata?.uid ?? "";
    if (trafficOf(before) !== DRAINED && trafficOf(after) === DRAINED) this.#since.set(uid, nowMs());
    if (userAgent.startsWith("pass")) this.#judgeUpdate(before, after);
    else this.#judgeRestart(before, after);
  }

  /** Before a sidecar gets another image, its pod must be drained for long enough, or take no traffic. */
  #judgeUpdate(before: Pod, after: Pod): void {
    if (trafficOf(before) === undefined || !this.#isUpdate(before, after)) return;
    const since = this.#since.get(after.metadata?.uid ?? "") ?? 0;
    const isLong = this.#options.nowMs() - since > this.#drainMs - SECOND_MS;
    const other = this.#options.sets.find(({ name }) => isOtherRelease(before, after, name));
    if (other) this.#violated(after, `was drained for another release of ${other.name}`);
    if (takesTraffic(before)) this.#violated(after, "gets another image while it takes traffic");
    else if (trafficOf(after) === SERVING) this.#violated(after, "gets another image and may take traffic");
    else if (isPodReady(before) && trafficOf(before) === DRAINED && !isLong)
      this.#violated(after, "was not drained for long enough");
  }

  /** Judges a kubelet's restart of a sidecar after a change of its image. */
  #judgeRestart(before: Pod, after: Pod): void {
    const { sets } = this.#options;
    const stopped = (before.status?.containerStatuses ?? []).filter(({ name, ready, image }) => {
      const isLeft = after.status?.containerStatuses?.some((one) => one.name === name && one.ready === true);
      const wanted = before.spec.containers.find((one) => one.name === name)?.image;
      return (
        ready === true &&
        isLeft !== true &&
        image !== wanted &&
        sets.some((set) => !set.isHot && isSidecarOf(set.name, { name }))
      );
    });
    if (stopped.length > 0 && takesTraffic(before))
      this.#violated(after, `takes traffic while ${stopped[0]?.name} is restarted`);
  }

  #isUpdate(before: Pod, after: Pod): boolean {
    const cold = this.#options.sets.filter(({ isHot }) => !isHot);
    return after.spec.containers.some(
      (one, place) =>
        one.image !== before.spec.containers[place]?.image && cold.some(({ name }) => isSidecarOf(name, one)),
    );
  }

  #violated({ metadata }: Pod, what: string): void {
    this.#options.violated(`pod ${metadata?.namespace}/${metadata?.name} ${what}`);
  }

  /** At the end every pod must take traffic if its owner wants that. */
  problems(): readonly string[] {
    const left = this.#options.server.all<Pod>(PODS).filter((pod) => trafficOf(pod) === DRAINED);
    return left.map(({ metadata }) => `pod ${metadata?.namespace}/${metadata?.name} stays drained`);
  }
}

/** True if the drain names another release than the one that the checks and the gate allowed. */
function isOtherRelease(before: Pod, after: Pod, set: string): boolean {
  const drain = drainOf(before, set);
  const hash = hashOfPod(after, set);
  return drain !== undefined && hash !== hashOfPod(before, set) && hash !== drain.release;
}

function takesTraffic(pod: Pod): boolean {
  return trafficOf(pod) === SERVING && isPodReady(pod) && !pod.metadata?.deletionTimestamp;
}
