/** A pod's status from what its containers do. */

import { asObject, asText, at, type JsonObject, objectsIn } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import type { ContainerRun } from "./container-run.ts";

export interface PodRuns {
  readonly init: readonly ContainerRun[];
  readonly containers: readonly ContainerRun[];
  readonly ephemeral: readonly ContainerRun[];
  /** RFC 3339 */
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

/** Only while there is something to tell. */
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

/** Nothing leads out of it. */
function isFinal(status: JsonObject): boolean {
  return status["phase"] === "Succeeded" || status["phase"] === "Failed";
}

/** Conditions of other writers stay. `now` RFC 3339. */
/** Final once all containers have ended and none is started again. */
function phaseOf(pod: ApiObject, runs: readonly ContainerRun[]): string {
  if (!runs.every((run) => run.hasRun)) return "Pending";
  const codes = runs.map((run) => at(run.status(), "state", "terminated", "exitCode"));
  const policy = at(pod, "spec", "restartPolicy");
  if (policy === "Always" || codes.includes(undefined)) return "Running";
  if (codes.every((code) => code === 0)) return "Succeeded";
  return policy === "Never" ? "Failed" : "Running";
}

export function podStatus(pod: ApiObject, runs: PodRuns, now: string): JsonObject {
  const before = asObject(pod["status"]);
  const others = objectsIn(before["conditions"]).filter((one) => !OURS.has(asText(one["type"])));
  const own = verdicts(pod, runs).map((verdict) => condition(pod, verdict, now));
  const byName = runs.containers.toSorted((left, right) => (left.name < right.name ? -1 : 1));
  return {
    ...before,
    phase: isFinal(before) ? before["phase"] : phaseOf(pod, runs.containers),
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
