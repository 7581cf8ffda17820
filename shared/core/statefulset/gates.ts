/** Decides nothing: the feature gates that change what becomes of a set, as OpenKruise names them, and one of ours. */

export interface OrderedSetGates {
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
export const DEFAULT_ORDERED_SET_GATES: OrderedSetGates = {
  StatefulSetAutoDeletePVC: true,
  PodIndexLabel: true,
  InPlaceUpdateEnvFromMetadata: true,
  PreparingUpdateAsUpdate: false,
  StatefulSetStartOrdinal: false,
  StatefulSetAutoResizePVCGate: false,
  StatefulSetUnblocked: false,
};
