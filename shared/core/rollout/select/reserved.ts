/** What a decision has to know of a ledger: which pods are reserved, for what there is room, and which evicted ones are awaited. */
import type { Departure } from "../../actions.ts";
import { areReservedFor, type Ledger, MAX_RESERVATIONS, type Reservation, type Subject } from "../../ledger.ts";
import { NONE_PASSED_OVER, type PassedOver, type RefusedPod } from "../../refused-pods.ts";

/** Pods to which writes were refused, and who is not written to because of that now. */
export interface Refused {
  /** without the pods that this pass tries again now, if the API server accepts writes to other pods */
  readonly named: readonly RefusedPod[];
  readonly passedOver: PassedOver;
  /** a plan takes every image to be refused; absent: only what was tried is known */
  readonly areImagesFixed?: true;
}

const NONE_REFUSED: Refused = { named: [], passedOver: NONE_PASSED_OVER };

/** What reservations mean for a decision. */
export interface Reserved {
  /** of pods that may be written to at any moment: they use budget although still seen not updated */
  readonly uids: ReadonlySet<string>;
  /** all of them were reserved for the generation and hash that are decided on */
  readonly areForThis: boolean;
  /** how many lines can be written beside theirs: for other pods nothing is planned */
  readonly room: number;
  /** evicted pods that may have no successor yet */
  readonly departed: readonly Departure[];
  /** keys of controllers and namespaces of which evictions were refused a moment ago: none of their pods is asked for now */
  readonly keptOwners: ReadonlySet<string>;
  readonly refused: Refused;
  /** uids of reserved pods to which this pass could not write a fence */
  readonly unfenced: ReadonlySet<string>;
}

/** `kept`: reservations that hold on. `keptOwners`, `refused`, `unfenced`: absent where nothing was refused. */
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
