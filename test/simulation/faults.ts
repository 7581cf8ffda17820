/** The faults of the world by name, with the number of times that each occurred. */

/** Faults on the way to the API server and back. */
export const NETWORK_FAULTS = [
  "429 with Retry-After",
  "429 without Retry-After",
  "500",
  "502",
  "503",
  "504",
  "timeout, applied",
  "timeout, not applied",
  "reset before sending",
  "reset after sending",
  "truncated answer",
  "malformed answer",
  "expired token",
  "403 in one namespace",
] as const;

/** Faults of the API server's lists and watches. */
const READ_FAULTS = [
  "expired continue token",
  "stale list",
  "list without the newest pod",
  "duplicate event",
  "late event",
  "broken watch",
] as const;

/** Events of pods and of their nodes. */
export const POD_FAULTS = [
  "pod created",
  "pod deleted",
  "pod recreated under its name",
  "pod stuck terminating",
  "silent kubelet",
  "same imageID",
  "crash loop",
  "image pull error",
  "readiness flap",
  "status touched",
] as const;

/** Changes by users while passes are at work. */
export const USER_FAULTS = [
  "spec changed",
  "spec rolled back",
  "paused",
  "partition raised",
  "budget changed",
  "selector changed",
  "order changed",
  "SidecarSet deleted and recreated",
] as const;

/** Events that occur only in worlds of some kinds. */
const KIND_FAULTS = [
  "shares changed",
  "selection changed",
  "namespace relabelled",
  "refused by a policy",
  "429 for many seconds",
  "page of a proxy",
  "list of a lagging replica",
  "ledger deleted by hand",
  "collected in two steps",
  "skewed clock",
  "pod made without sidecars",
  "pod evicted",
  "node lost",
  "pods of a lost node recreated",
  "approval refused",
  "approver slow",
  "approver without an answer",
  "eviction refused by a PodDisruptionBudget",
  "waves changed",
  "checks changed",
  "metrics beyond a bound",
  "metrics say nothing",
  "metrics without an answer",
  "disruption budget changed",
  "disruption forgotten",
  "injection held",
  "records forged",
  "workload changed",
  "restarts changed",
  "pod finished",
  "pod evicted by its kubelet",
  "scheduling gate opened late",
  "readiness gate opened late",
  "container crashed",
  "values forged",
  "node cannot pull",
  "node says nothing",
  "node has no room",
] as const;

/** Faults of the processes that run passes. */
const PROCESS_FAULTS = [
  "pass killed",
  "pass frozen for 15 minutes",
  "pass held up for seconds",
  "clock jumped by an hour",
  "overlapping passes",
] as const;

/** Answers of the API server after another writer's change. */
const ANSWERED_FAULTS = ["409 conflict", "422 on a test"] as const;

export const FAULTS = [
  ...NETWORK_FAULTS,
  ...READ_FAULTS,
  ...POD_FAULTS,
  ...USER_FAULTS,
  ...PROCESS_FAULTS,
  ...ANSWERED_FAULTS,
  ...KIND_FAULTS,
] as const;

export type Fault = (typeof FAULTS)[number];
export type NetworkFault = (typeof NETWORK_FAULTS)[number];

export type KindFault = (typeof KIND_FAULTS)[number];

export type FaultCounts = Map<Fault, number>;

export function countFault(counts: FaultCounts, fault: Fault): void {
  counts.set(fault, (counts.get(fault) ?? 0) + 1);
}
