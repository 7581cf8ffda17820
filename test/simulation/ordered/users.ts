/** The users of the set, and unwanted events of its pods at the worst moments. */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { PODS, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import type { ApiServer } from "../api-server.ts";
import type { Chance } from "../chance.ts";
import type { Scheduler } from "../scheduler.ts";
import { NAMESPACE, SET, specOf, type Wish, withCondition } from "./objects.ts";
import type { SetScenario, Strike } from "./scenario.ts";
import { anyReserved, anyShare } from "./wide.ts";

export interface SetUsersOptions {
  readonly scheduler: Scheduler;
  readonly server: ApiServer;
  readonly chance: Chance;
  readonly scenario: SetScenario;
}

const WRITER = "user";
const KEY = { namespace: NAMESPACE, name: SET };

export class SetUsers {
  readonly #options: SetUsersOptions;
  #newest = 1;
  wish: Wish;

  constructor(options: SetUsersOptions) {
    this.#options = options;
    const { replicas, maxUnavailable, whenScaled, reserved } = options.scenario;
    this.wish = { version: 1, replicas, partition: 0, isPaused: false, maxUnavailable, reserved, whenScaled };
  }

  /** Writes the set with this change. */
  apply(change: Partial<Wish>): void {
    const { server, scenario } = this.#options;
    this.wish = { ...this.wish, ...change };
    const stored = server.peek<StatefulSet>(STATEFUL_SETS, KEY);
    const spec = specOf(this.wish, scenario);
    const { generation = 0, ...kept } = stored?.metadata ?? {
      ...KEY,
      uid: "set-1",
      creationTimestamp: "2026-01-01T00:00:00Z",
    };
    const isSame = stored && JSON.stringify(stored.spec) === JSON.stringify(spec);
    const metadata = { ...kept, generation: isSame ? generation : generation + 1 };
    const head = { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet" };
    const set: StatefulSet = { ...head, metadata, spec, ...(stored?.status ? { status: stored.status } : {}) };
    server.put(WRITER, STATEFUL_SETS, set);
  }

  /** Returns false if the strike has no target. */
  strike(strike: Strike): boolean {
    return this.#acts[strike]() !== false;
  }

  readonly #acts: Readonly<Record<Strike, () => unknown>> = {
    "new template": () => this.apply({ version: ++this.#newest }),
    "template rolled back": () => this.wish.version > 1 && this.apply({ version: this.wish.version - 1 }),
    "scaled up": () =>
      this.apply({ replicas: Math.min(this.#most, this.wish.replicas + this.#options.chance.between(1, 2)) }),
    "scaled down": () => this.apply({ replicas: Math.max(0, this.wish.replicas - this.#options.chance.between(1, 2)) }),
    "paused or resumed": () => this.apply({ isPaused: !this.wish.isPaused }),
    "partition changed": () =>
      this.apply({ partition: this.wish.partition > 0 ? 0 : this.#options.chance.between(1, 3) }),
    // Validation allows only 1 for an ordered set.
    "budget changed": () =>
      !this.#options.scenario.isMonotonic && this.apply({ maxUnavailable: this.#options.chance.between(1, 3) }),
    "ordinal reserved": () =>
      this.apply({ reserved: this.wish.reserved.length > 0 ? [] : [this.#options.chance.below(3)] }),
    "pod deleted": () => this.#withPod((pod) => this.#delete(pod)),
    // With a scale budget a failed pod may wait forever: docs/compatibility.md.
    "pod failed": () =>
      this.#options.scenario.scaleMaxUnavailable === undefined &&
      this.#withPod((pod) => this.#put({ ...pod, status: { ...pod.status, phase: "Failed" } })),
    "readiness flap": () => this.#withPod((pod) => this.#flap(pod)),
    "status touched": () =>
      this.#withPod((pod) => {
        const conditions = withCondition(pod, "Touched", true, String(this.#options.scheduler.nowMs));
        this.#put({ ...pod, status: { ...pod.status, conditions } });
      }),
    "specified delete": () =>
      this.#withPod((pod) => {
        const labels = { ...pod.metadata?.labels, "apps.kruise.io/specified-delete": "true" };
        this.#put({ ...pod, metadata: { ...pod.metadata, labels } });
      }),
    "budget in percent": () =>
      !this.#options.scenario.isMonotonic && this.apply({ maxUnavailable: anyShare(this.#options.chance) }),
    "ordinals reserved": () => this.apply({ reserved: anyReserved(this.#options.chance) }),
    "set relabelled": () => this.#relabel(),
    "claims go or stay": () => this.apply({ whenScaled: this.wish.whenScaled === "Delete" ? "Retain" : "Delete" }),
  };

  get #most(): number {
    return Math.max(5, this.#options.scenario.replicas + 2);
  }

  /** Changes labels that no set selects, again and again. */
  #relabel(): void {
    const { server, scheduler, chance } = this.#options;
    const everyMs = chance.pick([20, 200, 2_000]);
    for (let time = 0; time < 10; time++)
      scheduler.after(time * everyMs, () => {
        const stored = server.peek<StatefulSet>(STATEFUL_SETS, KEY);
        const labels = { ...stored?.metadata?.labels, note: String(time) };
        if (stored) server.put(WRITER, STATEFUL_SETS, { ...stored, metadata: { ...stored.metadata, labels } });
      });
  }

  #withPod(act: (pod: Pod) => void): boolean {
    const { server, chance } = this.#options;
    const alive = server
      .all<Pod>(PODS)
      .filter(({ metadata, status }) => !metadata?.deletionTimestamp && status?.phase === "Running");
    if (alive.length === 0) return false;
    act(chance.pick(alive));
    return true;
  }

  #put(pod: Pod): void {
    this.#options.server.put(WRITER, PODS, pod);
  }

  /** Makes a pod not ready for a moment, without a restart. */
  #flap(pod: Pod): void {
    const conditions = withCondition(pod, "Ready", false, "2026-01-01T00:00:00Z");
    this.#put({ ...pod, status: { ...pod.status, conditions } });
  }

  #delete(pod: Pod): void {
    const deletionTimestamp = new Date(this.#options.scheduler.nowMs).toISOString();
    this.#put({ ...pod, metadata: { ...pod.metadata, deletionTimestamp, ...{ deletionGracePeriodSeconds: 30 } } });
  }
}
