/** A pod on its node: runs its containers in order and reports their states, until the pod is gone. */
import { type ApiObject, asObject, asText, at, type JsonObject, objectsIn, timestamp } from "../storage/json.ts";
import { ContainerRun, type Role } from "./container-run.ts";
import type { KubeletSettings } from "./kubelet-settings.ts";

// Computes a pod's status from its containers.

interface PodRuns {
  readonly init: readonly ContainerRun[];
  readonly containers: readonly ContainerRun[];
  readonly ephemeral: readonly ContainerRun[];
  /** time of the start, RFC 3339 */
  readonly startTime: string;
  readonly podIP: string;
  readonly hostIP: string;
}

interface Verdict {
  readonly type: string;
  readonly isTrue: boolean;
  readonly reason?: string;
  readonly message?: string;
}

function condition(pod: ApiObject, verdict: Verdict, now: string): JsonObject {
  const status = verdict.isTrue ? "True" : "False";
  const before = objectsIn(at(pod, "status", "conditions")).find((one) => one["type"] === verdict.type);
  const since = before?.["status"] === status ? before["lastTransitionTime"] : now;
  const isTold = !verdict.isTrue || verdict.type === "PodResizePending";
  const why = !isTold || verdict.reason === undefined ? {} : { reason: verdict.reason, message: verdict.message };
  return { type: verdict.type, status, lastProbeTime: null, lastTransitionTime: since, ...why };
}

function gatesProblem(pod: ApiObject): string | undefined {
  const conditions = objectsIn(at(pod, "status", "conditions"));
  for (const gate of objectsIn(at(pod, "spec", "readinessGates"))) {
    const type = asText(gate["conditionType"]);
    const found = conditions.find((one) => one["type"] === type);
    if (found === undefined) return `corresponding condition of pod readiness gate "${type}" does not exist.`;
    if (found["status"] !== "True")
      return `the status of pod readiness gate "${type}" is not "True", but ${found["status"]}`;
  }
  return undefined;
}

function namesOf(runs: readonly ContainerRun[]): string {
  return `[${runs.map((run) => run.name).join(" ")}]`;
}

function readiness(pod: ApiObject, runs: PodRuns): readonly Verdict[] {
  const serving = [...runs.init.filter((run) => run.role === "sidecar"), ...runs.containers];
  const unready = serving.filter((run) => !run.isReady);
  const notReady = { reason: "ContainersNotReady", message: `containers with unready status: ${namesOf(unready)}` };
  const gates = gatesProblem(pod);
  const isReady = unready.length === 0 && gates === undefined;
  const why = unready.length > 0 ? notReady : { reason: "ReadinessGatesNotReady", message: gates ?? "" };
  return [
    { type: "Ready", isTrue: isReady, ...why },
    { type: "ContainersReady", isTrue: unready.length === 0, ...notReady },
  ];
}

function verdicts(pod: ApiObject, runs: PodRuns): readonly Verdict[] {
  const pending = runs.init.filter((run) => !run.isPassed && !(run.role === "sidecar" && run.hasRun));
  const message = `containers with incomplete status: ${namesOf(pending)}`;
  return [
    { type: "PodReadyToStartContainers", isTrue: true },
    { type: "Initialized", isTrue: pending.length === 0, reason: "ContainersNotInitialized", message },
    ...readiness(pod, runs),
    ...resizeVerdicts(runs),
  ];
}

/** The conditions of a resize; none without one. */
function resizeVerdicts({ init, containers }: PodRuns): readonly Verdict[] {
  const toBe = [...init, ...containers].filter((run) => run.isToBeResized);
  const problem = toBe.map((run) => run.resizeProblem).find((one) => one !== undefined);
  if (toBe.length === 0) return [];
  if (problem === undefined) return [{ type: "PodResizeInProgress", isTrue: true }];
  return [{ type: "PodResizePending", isTrue: true, ...problem }];
}

const OURS: ReadonlySet<string> = new Set([
  "PodReadyToStartContainers",
  "Initialized",
  "Ready",
  "ContainersReady",
  "PodResizePending",
  "PodResizeInProgress",
]);

/** True for a final phase, which never changes again. */
function hasEnded(status: JsonObject): boolean {
  return status["phase"] === "Succeeded" || status["phase"] === "Failed";
}

/** The new status. Conditions of other writers stay. `now`: RFC 3339. */
/** Final once all containers have ended and none is started again. */
function phaseOf(pod: ApiObject, runs: readonly ContainerRun[]): string {
  if (!runs.every((run) => run.hasRun)) return "Pending";
  const codes = runs.map((run) => at(run.status(), "state", "terminated", "exitCode"));
  const policy = at(pod, "spec", "restartPolicy");
  if (policy === "Always" || codes.includes(undefined)) return "Running";
  if (codes.every((code) => code === 0)) return "Succeeded";
  return policy === "Never" ? "Failed" : "Running";
}

function podStatus(pod: ApiObject, runs: PodRuns, now: string): JsonObject {
  const before = asObject(pod["status"]);
  const others = objectsIn(before["conditions"]).filter((one) => !OURS.has(asText(one["type"])));
  const own = verdicts(pod, runs).map((verdict) => condition(pod, verdict, now));
  const byName = runs.containers.toSorted((left, right) => (left.name < right.name ? -1 : 1));
  return {
    ...before,
    phase: hasEnded(before) ? before["phase"] : phaseOf(pod, runs.containers),
    conditions: [...own, ...others],
    hostIP: runs.hostIP,
    hostIPs: [{ ip: runs.hostIP }],
    podIP: runs.podIP,
    podIPs: [{ ip: runs.podIP }],
    startTime: runs.startTime,
    ...(runs.init.length === 0 ? {} : { initContainerStatuses: runs.init.map((run) => run.status()) }),
    containerStatuses: byName.map((run) => run.status()),
    ...(runs.ephemeral.length === 0 ? {} : { ephemeralContainerStatuses: runs.ephemeral.map((run) => run.status()) }),
  };
}

/** The API server as a kubelet uses it. A kubelet retries soon after a rejection. */
export interface PodApi {
  /** Writes the status that `next` returns for the present pod. If the pod is gone, nothing happens. */
  writeStatus(pod: ApiObject, next: (current: ApiObject) => JsonObject): Promise<void>;
  /** Removes an ended pod. If the pod is gone, nothing happens. */
  remove(pod: ApiObject): Promise<void>;
  /** The reason why a container of that namespace cannot be created now. */
  configProblem(namespace: string, container: JsonObject): string | undefined;
}

export interface Placement {
  readonly podIP: string;
  readonly hostIP: string;
}

const RETRY_MS = 20;

function isFinal(pod: ApiObject): boolean {
  const phase = at(pod, "status", "phase");
  return phase === "Succeeded" || phase === "Failed";
}

export class PodWorker {
  readonly #api: PodApi;
  readonly #settings: KubeletSettings;
  readonly #placement: Placement;
  readonly #startTime: string;
  readonly #runs = new Map<string, ContainerRun>();
  #pod: ApiObject;
  #isDirty = false;
  #isEnding = false;
  #isFinished = false;
  /** True while the worker waits for a hook. */
  #isHanging = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(api: PodApi, settings: KubeletSettings, pod: ApiObject, placement: Placement) {
    this.#api = api;
    this.#settings = settings;
    this.#pod = pod;
    this.#placement = placement;
    this.#startTime = timestamp(settings.clock.now());
  }

  /** Brings the containers to the present pod. */
  sync(pod: ApiObject): void {
    this.#pod = pod;
    if (pod.metadata.deletionTimestamp !== undefined) this.#end(pod);
    if (this.#isHanging) return;
    if (isFinal(pod)) this.#finish();
    else if (!this.#isEnding) this.#progress();
    // Readiness gates are conditions that other components write.
    if (objectsIn(at(pod, "spec", "readinessGates")).length > 0) this.#report();
  }

  stop(): void {
    for (const run of this.#runs.values()) run.stop();
  }

  /** Resolves when no write is running. */
  settled(): Promise<void> {
    return this.#writing;
  }

  /** Runs init containers one after another, then all containers at once. */
  #progress(): void {
    const inits = objectsIn(at(this.#pod, "spec", "initContainers"));
    const containers = objectsIn(at(this.#pod, "spec", "containers"));
    const debuggers = objectsIn(at(this.#pod, "spec", "ephemeralContainers"));
    for (const container of [...inits, ...containers]) this.#runOf(container);
    for (const container of inits) {
      const run = this.#runOf(container);
      run.sync(container);
      if (!run.isPassed && !(run.role === "sidecar" && run.hasRun)) return;
    }
    for (const container of [...containers, ...debuggers]) this.#runOf(container).sync(container);
  }

  #roleOf(container: JsonObject): Role {
    const isInit = objectsIn(at(this.#pod, "spec", "initContainers")).some((one) => one["name"] === container["name"]);
    const isSpecified = objectsIn(at(this.#pod, "spec", "containers")).includes(container);
    if (!isInit) return isSpecified ? "container" : "ephemeral";
    return container["restartPolicy"] === "Always" ? "sidecar" : "init";
  }

  #runOf(container: JsonObject): ContainerRun {
    const name = asText(container["name"]);
    const known = this.#runs.get(name);
    if (known !== undefined) return known;
    const run = new ContainerRun(container, this.#roleOf(container), {
      settings: this.#settings,
      configProblem: (one) => this.#api.configProblem(this.#pod.metadata.namespace ?? "", one),
      changed: () => this.#changed(),
      hangs: () => {
        this.#isHanging = true;
      },
    });
    this.#runs.set(name, run);
    return run;
  }

  #changed(): void {
    this.#report();
    setImmediate(() => {
      if (!this.#isEnding && !isFinal(this.#pod)) this.#progress();
    });
  }

  /** Stops the containers of a pod whose phase is final, whichever author wrote the phase. */
  #finish(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    for (const run of this.#runs.values()) run.end();
  }

  /** Writes the status. Writes of a pod follow each other; later changes are in the next one. */
  #report(): void {
    if (this.#isDirty || this.#isHanging) return;
    this.#isDirty = true;
    this.#writing = this.#writing.then(() => this.#write());
  }

  async #write(): Promise<void> {
    this.#isDirty = false;
    const runs = [...this.#runs.values()];
    const parts = {
      init: runs.filter((run) => run.role === "init" || run.role === "sidecar"),
      ephemeral: runs.filter((run) => run.role === "ephemeral"),
      containers: runs.filter((run) => run.role === "container"),
      startTime: this.#startTime,
      ...this.#placement,
    };
    const now = timestamp(this.#settings.clock.now());
    try {
      await this.#api.writeStatus(this.#pod, (current) => podStatus(current, parts, now));
    } catch {
      this.#settings.clock.after(RETRY_MS, () => this.#report());
    }
  }

  #end(pod: ApiObject): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.stop();
    const grace = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000;
    const remove = (): void => {
      this.#writing = this.#writing.then(() => this.#remove());
    };
    this.#settings.clock.after(Math.min(grace, this.#settings.terminationDelayMs), remove);
  }

  async #remove(): Promise<void> {
    try {
      await this.#api.remove(this.#pod);
    } catch {
      this.#settings.clock.after(RETRY_MS, () => {
        this.#writing = this.#writing.then(() => this.#remove());
      });
    }
  }
}
