/** Decides nothing: the feature gates that change what becomes of a set, as OpenKruise names them, and one of ours. */

export interface StatefulSetFeatureGates {
  readonly StatefulSetAutoDeletePVC: boolean;
  readonly PodIndexLabel: boolean;
  readonly InPlaceUpdateEnvFromMetadata: boolean;
  readonly PreparingUpdateAsUpdate: boolean;
  readonly StatefulSetStartOrdinal: boolean;
  readonly StatefulSetAutoResizePVCGate: boolean;
  /** ours: a set goes on where OpenKruise's waits for ever */
  readonly StatefulSetUnblocked: boolean;
}

/** OpenKruise's, and ours off. */
export const DEFAULT_STATEFUL_SET_FEATURE_GATES: StatefulSetFeatureGates = {
  StatefulSetAutoDeletePVC: true,
  PodIndexLabel: true,
  InPlaceUpdateEnvFromMetadata: true,
  PreparingUpdateAsUpdate: false,
  StatefulSetStartOrdinal: false,
  StatefulSetAutoResizePVCGate: false,
  StatefulSetUnblocked: false,
};
