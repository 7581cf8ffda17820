/** Decides nothing: the feature gates that change what becomes of a set, as OpenKruise names them. */

export interface OrderedSetGates {
  readonly StatefulSetAutoDeletePVC: boolean;
  readonly PodIndexLabel: boolean;
  readonly InPlaceUpdateEnvFromMetadata: boolean;
  readonly StatefulSetStartOrdinal: boolean;
  readonly StatefulSetAutoResizePVCGate: boolean;
}

/** OpenKruise's. */
export const DEFAULT_ORDERED_SET_GATES: OrderedSetGates = {
  StatefulSetAutoDeletePVC: true,
  PodIndexLabel: true,
  InPlaceUpdateEnvFromMetadata: true,
  StatefulSetStartOrdinal: false,
  StatefulSetAutoResizePVCGate: false,
};
