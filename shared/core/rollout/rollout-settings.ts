/** Feature gates that change what pods get. Every function that decides or predicts a decision receives all of them. */

export interface RolloutSettings {
  /** a gate of this project: cpu and memory of sidecars change in place */
  readonly InPlaceResize: boolean;
  /** a gate of this project: native sidecars get new images in place */
  readonly NativeSidecarInPlaceUpdate: boolean;
  /** passes set the readiness condition that the pod's readiness gate waits for */
  readonly KruisePodReadinessGate: boolean;
  /** a gate of this project: new pods may decline sidecars */
  readonly PodOptOut: boolean;
  /** a gate of this project: a pod restarts only if every PodDisruptionBudget that selects it allows it */
  readonly RespectDisruptionBudgets: boolean;
  /** sidecars end when the job of their pod is done */
  readonly SidecarTerminator: boolean;
  /** a gate of this project: pods of jobs may be Succeeded or Failed before their sidecars have stopped */
  readonly SidecarTerminatorByPhase: boolean;
  /** a gate of this project: pods get no SidecarSetUpgradable condition, which saves a second write for each */
  readonly SkipUpgradableCondition: boolean;
  /** a gate of this project: every pod that is down uses budget, even an old one */
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
