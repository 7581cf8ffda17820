/** The part of a ledger that a decision needs: reserved pods, room for more, and evicted pods that are awaited. */
import type { Departure } from "../../actions.ts";
import { areReservedFor, type Ledger, MAX_RESERVATIONS, type Reservation, type Subject } from "../../ledger.ts";
import { NONE_PASSED_OVER, type PassedOver, type RefusedPod } from "../../refused-pods.ts";

/** Pods with refused writes, and pods that are skipped now because of that. */
export interface Refused {
  /** refused pods, without pods that this pass tries again now, if the API server accepts writes to other pods */
  readonly named: readonly RefusedPod[];
  readonly passedOver: PassedOver;
  /** a plan assumes that every change of an image is refused; absent: only tried writes are known */
  readonly areImagesFixed?: true;
}

const NONE_REFUSED: Refused = { named: [], passedOver: NONE_PASSED_OVER };

/** The reservations that a decision respects. */
export interface Reserved {
  /** uids of pods that may be written to at any moment: they use budget although they do not look updated yet */
  readonly uids: ReadonlySet<string>;
  /** true: all were reserved for the current generation and hash */
  readonly areForThis: boolean;
  /** number of lines that fit into the ledger: no more pods are planned */
  readonly room: number;
  /** evicted pods that may have no successor yet */
  readonly departed: readonly Departure[];
  /** keys of controllers and namespaces whose evictions were refused a moment ago: none of their pods is evicted now */
  readonly keptOwners: ReadonlySet<string>;
  readonly refused: Refused;
  /** uids of reserved pods to which this pass could not write a fence */
  readonly unfenced: ReadonlySet<string>;
}

/** The reservations. `kept`: valid ones. `keptOwners`, `refused`, `unfenced`: absent if nothing was refused. */
export function reservedOf(
  kept: readonly Reservation[],
  subject: Subject,
  {
    departed = [],
    keptOwners = new Set(),
    refused = NONE_REFUSED,
    unfenced = new Set(),
  }: Pick<Ledger, "departed"> & Partial<Pick<Reserved, "keptOwners" | "refused" | "unfenced">>,
): Reserved {
  const uids = new Set(kept.map(({ uid }) => uid));
  const room = Math.max(0, MAX_RESERVATIONS - kept.length - departed.length);
  return { uids, areForThis: areReservedFor(kept, subject), room, departed, keptOwners, refused, unfenced };
}

export const NOTHING_RESERVED: Reserved = reservedOf([], { uid: "", generation: 0, revision: "" }, {});
