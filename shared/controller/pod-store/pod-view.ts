/** The known pods of a SidecarSet: a list, updated by a watch and by the answers to this pass's own writes. */
import type { Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { withSpecImages } from "../../core/pod/image-alias.ts";
import { type Also, NOTHING_ELSE, projectPod } from "../../core/rollout/upgrade/project-pod.ts";
import { isLater } from "../../go/resource-version.ts";
import { Picked, type Sequence } from "../../go/sequence.ts";
import { PodTable } from "./pod-table.ts";

/**
 * The view never goes back: it drops news older than its state, because a pod at another resourceVersion frees its
 * reservation.
 */
export class PodView {
  readonly #sidecarSet: SidecarSet;
  readonly #also: Also;
  readonly #table = new PodTable();
  /** rows of the table, in the list's order; some may be deleted since */
  #rows = new Uint32Array();
  /** rows added since the list */
  #newRows: number[] = [];
  /** resourceVersion of unselected pods by uid; null for pods that do not exist */
  readonly #others = new Map<string, string | null>();

  constructor(sidecarSet: SidecarSet, also: Also = NOTHING_ELSE) {
    this.#sidecarSet = sidecarSet;
    this.#also = also;
  }

  /** Adds a pod of a list. It is visible only after the list is complete. */
  gather(pod: Pod): number {
    return this.#table.add(this.#project(pod));
  }

  /**
   * Accepts the rows of each complete list, in order. Unfinished lists do not count. A consistent list has each uid
   * once; if not, the last one counts.
   */
  complete(gathered: readonly (readonly number[])[]): void {
    this.#rows = joined(gathered);
    this.#newRows = [];
    const isListed = new Uint8Array(this.#table.length);
    for (const row of this.#rows) isListed[row] = 1;
    for (let row = 0; row < isListed.length; row++) if (isListed[row] === 0) this.#table.drop(row);
    this.#table.settle();
  }

  /**
   * Projected records, in the list's order, new ones at the end. Each is created on access, which throws after the view
   * has changed.
   */
  get pods(): Sequence<Pod> {
    return this.#inOrder((row) => this.#table.at(row));
  }

  /** The pods in half the time, valid until the view changes. Member-wise copies lack name, uid and version. */
  get records(): Sequence<Pod> {
    return this.#inOrder((row) => this.#table.record(row));
  }

  get(uid: string): Pod | undefined {
    const row = this.#table.rowOf(uid);
    return row === undefined ? undefined : this.#table.at(row);
  }

  /** The version of a pod; null: it is gone; undefined: it was never read. */
  versionOf(uid: string): string | null | undefined {
    const row = this.#table.rowOf(uid);
    return (row === undefined ? undefined : this.#table.versionOf(row)) ?? this.#others.get(uid);
  }

  /** The stored form of a pod, for one that is added later. */
  record(pod: Pod): Pod {
    return this.#table.share(this.#project(pod));
  }

  /** Stores a selected pod. True if it changed. */
  put(pod: Pod): boolean {
    const uid = pod.metadata?.uid ?? "";
    const known = this.versionOf(uid);
    if (known === null || (known !== undefined && !isLater(pod.metadata?.resourceVersion, known))) return false;
    this.#others.delete(uid);
    const row = this.#table.rowOf(uid);
    if (row === undefined) this.#newRows.push(this.gather(pod));
    else this.#table.replace(row, this.#project(pod));
    return true;
  }

  /** Stores the pod after this pass's own write. For an unselected pod only the version is stored. */
  see(pod: Pod): void {
    const uid = pod.metadata?.uid ?? "";
    if (this.#table.rowOf(uid) !== undefined) this.put(pod);
    else this.#others.set(uid, pod.metadata?.resourceVersion ?? "");
  }

  /** Removes a pod that is not selected at this resourceVersion, or is gone (null). True if a record was removed. */
  remove(uid: string, resourceVersion: string | null): boolean {
    const known = this.versionOf(uid);
    if (resourceVersion !== null && typeof known === "string" && isLater(known, resourceVersion)) return false;
    this.#others.set(uid, resourceVersion);
    const row = this.#table.rowOf(uid);
    if (row !== undefined) this.#table.drop(row);
    return row !== undefined;
  }

  #inOrder(at: (row: number) => Pod | undefined): Sequence<Pod> {
    this.#leaveOutGone();
    const { writes } = this.#table;
    const find = (row: number) => {
      if (this.#table.writes !== writes) throw new Error("pods of a view were asked for after it had changed");
      return at(row);
    };
    return new Picked(find, this.#rows);
  }

  /**
   * Drops deleted rows in a new array, because earlier sequences use the old one. It avoids `filter`, which needs three
   * times the heap.
   */
  #leaveOutGone(): void {
    const rows = joined([this.#rows, this.#newRows]);
    let end = 0;
    for (const row of rows) if (!this.#table.isGone(row)) rows[end++] = row;
    this.#rows = rows.subarray(0, end);
    this.#newRows = [];
  }

  #project(pod: Pod): Pod {
    return projectPod(withSpecImages(pod), this.#sidecarSet, this.#also);
  }
}

function joined(lists: readonly ArrayLike<number>[]): Uint32Array<ArrayBuffer> {
  const all = new Uint32Array(lists.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const list of lists) {
    all.set(list, end);
    end += list.length;
  }
  return all;
}
