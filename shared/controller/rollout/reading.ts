/** Unfinished readings of pods, so that the next pass of the process continues where one ended. */
import type { Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { type Also, isProjectedAlike } from "../../core/rollout/upgrade/project-pod.ts";
import { type Cluster, type ListOptions, PODS } from "../../kube/port.ts";
import type { Clock } from "../loop/clock.ts";
import { noPages, type Pages, readPages } from "../loop/pages.ts";
import { PodView } from "../pod-store/pod-view.ts";
import type { StoredLedger } from "./ledger-store.ts";

/** Milliseconds of reuse. API servers forget page tokens, and versions for watches, after five minutes by default. */
const BELIEVED_MS = 240_000;

export class Reading {
  readonly view: PodView;
  readonly also: Also;
  /** duration so far, over all passes */
  lastedMs = 0;
  /** the read part of each list, as rows of the view, by namespace or "" */
  readonly #lists = new Map<string, Pages<number>>();
  #turn = 0;

  constructor(sidecarSet: SidecarSet, also: Also) {
    this.view = new PodView(sidecarSet, also);
    this.also = also;
  }

  /** The number of pods that were read. */
  get pods(): number {
    return [...this.#lists.values()].reduce((sum, { items }) => sum + items.length, 0);
  }

  /**
   * Lets another pass continue the reading. Late results for the former pass are dropped, because they would add the
   * same pods again.
   */
  takeUp(): void {
    this.#turn++;
  }

  /** Reads the rest of the list of this name, or a part of it if `isOver` says so. @throws KubeError */
  async readList(
    cluster: Cluster,
    name: string,
    options: ListOptions,
    { isSelected, isOver }: { readonly isSelected: (pod: Pod) => boolean; readonly isOver: () => boolean },
  ): Promise<Pages<number>> {
    const turn = this.#turn;
    const keep = (pod: Pod) => (turn === this.#turn && isSelected(pod) ? this.view.gather(pod) : undefined);
    const pages = this.#lists.get(name) ?? noPages();
    this.#lists.set(name, pages);
    return await readPages(cluster, { resource: PODS, options, keep, isOver }, pages);
  }
}

/** Unfinished readings by SidecarSet. */
export type Readings = Map<string, Begun>;

interface Begun {
  readonly reading: Reading;
  readonly sidecarSet: SidecarSet;
  /** version of the ledger, which was read before the first pod */
  readonly ledgerVersion: string | undefined;
  readonly beganAtMs: number;
}

/**
 * The unfinished reading of this SidecarSet, unless a write since then requires a new one. Rule 1 of the ledger holds:
 * the ledger is as it was before the first pod was read.
 */
export function takeUpReading(
  readings: Readings,
  clock: Clock,
  sidecarSet: SidecarSet,
  { stored, also }: { readonly stored: StoredLedger; readonly also: Also },
): Reading {
  const { name = "" } = sidecarSet.metadata ?? {};
  for (const [key, { beganAtMs }] of readings) if (clock.now() - beganAtMs >= BELIEVED_MS) readings.delete(key);
  const ledgerVersion = stored.resourceVersion;
  const begun = readings.get(name);
  const isGood =
    begun !== undefined &&
    begun.ledgerVersion === ledgerVersion &&
    isKeptAlike(begun, also) &&
    isSame(begun, sidecarSet);
  if (isGood) {
    begun.reading.takeUp();
    return begun.reading;
  }
  const reading = new Reading(sidecarSet, also);
  readings.set(name, { reading, sidecarSet, ledgerVersion, beganAtMs: clock.now() });
  return reading;
}

/** True if the kept label keys fit. A budget with a new key only holds the pods of its namespace. */
function isKeptAlike({ reading: { also: one } }: Begun, other: Also): boolean {
  const isAsked = (also: Also) => also.budgetLabels !== undefined;
  return one.resources === other.resources && one.workloads === other.workloads && isAsked(one) === isAsked(other);
}

function isSame({ sidecarSet: before }: Begun, now: SidecarSet): boolean {
  const isSameSpec =
    before.metadata?.uid === now.metadata?.uid && before.metadata?.generation === now.metadata?.generation;
  return isSameSpec && isProjectedAlike(before, now);
}
