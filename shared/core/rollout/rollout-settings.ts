/** Feature gates that change what pods get. Every function that decides or predicts a decision receives all of them. */

export interface RolloutSettings {
  /** ours: cpu and memory of sidecars are changed in place */
  readonly InPlaceResize: boolean;
  /** ours: native sidecars get new images in place */
  readonly NativeSidecarInPlaceUpdate: boolean;
  /** passes set the readiness condition that the pod's readiness gate waits for */
  readonly KruisePodReadinessGate: boolean;
  /** ours: new pods may decline sidecars */
  readonly PodOptOut: boolean;
  /** ours: pods are restarted only where every PodDisruptionBudget that selects them allows it */
  readonly RespectDisruptionBudgets: boolean;
  /** sidecars of jobs that are done are ended */
  readonly SidecarTerminator: boolean;
  /** ours: pods of jobs may be Succeeded or Failed before their sidecars have stopped */
  readonly SidecarTerminatorByPhase: boolean;
  /** ours: pods get no SidecarSetUpgradable condition, which is a second write for each */
  readonly SkipUpgradableCondition: boolean;
  /** ours: every pod that is down uses budget, even an old one */
  readonly StrictMaxUnavailable: boolean;
}

/** OpenKruise's defaults; all gates of this project are off. */
export const DEFAULT_ROLLOUT_SETTINGS: RolloutSettings = {
  InPlaceResize: false,
  NativeSidecarInPlaceUpdate: false,
  KruisePodReadinessGate: false,
  PodOptOut: false,
  RespectDisruptionBudgets: false,
  SidecarTerminator: false,
  SidecarTerminatorByPhase: false,
  SkipUpgradableCondition: false,
  StrictMaxUnavailable: false,
};
