/** The known pods of a SidecarSet: a list, updated by a watch and by the answers to this pass's own writes. */
import type { Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { withSpecImages } from "../../core/pod/image-alias.ts";
import { type Also, NOTHING_ELSE, projectPod } from "../../core/rollout/upgrade/project-pod.ts";
import { isLater } from "../../go/resource-version.ts";
import { Picked, type Sequence } from "../../go/sequence.ts";
import { PodTable } from "./pod-table.ts";

/**
 * The view never goes back: it drops news older than its state, because a reservation is freed when its pod is seen at
 * another resourceVersion.
 */
export class PodView {
  readonly #sidecarSet: SidecarSet;
  readonly #also: Also;
  readonly #table = new PodTable();
  /** of the table, in the list's order; some may be gone since */
  #rows = new Uint32Array();
  /** rows added since then */
  #newRows: number[] = [];
  /** uid → resourceVersion of unselected pods, null for pods that do not exist */
  readonly #others = new Map<string, string | null>();

  constructor(sidecarSet: SidecarSet, also: Also = NOTHING_ELSE) {
    this.#sidecarSet = sidecarSet;
    this.#also = also;
  }

  /** A pod of a list; nobody sees it before the list is complete. */
  gather(pod: Pod): number {
    return this.#table.add(this.#project(pod));
  }

  /**
   * Accepts the rows of each complete list, in order; unfinished lists do not count. A consistent list has each uid
   * once; of two the last one counts.
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

  /** The pods in half the time, for use before the view changes. Member-wise copies lack name, uid and version. */
  get records(): Sequence<Pod> {
    return this.#inOrder((row) => this.#table.record(row));
  }

  get(uid: string): Pod | undefined {
    const row = this.#table.rowOf(uid);
    return row === undefined ? undefined : this.#table.at(row);
  }

  /** null: gone; undefined: never looked for */
  versionOf(uid: string): string | null | undefined {
    const row = this.#table.rowOf(uid);
    return (row === undefined ? undefined : this.#table.versionOf(row)) ?? this.#others.get(uid);
  }

  /** The stored form of a pod, for one that is added later. */
  record(pod: Pod): Pod {
    return this.#table.share(this.#project(pod));
  }

  /** A selected pod as it is now. True when that is news. */
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

  /** Takes the pod after this pass's own write; of an unselected pod only the version is kept. */
  see(pod: Pod): void {
    const uid = pod.metadata?.uid ?? "";
    if (this.#table.rowOf(uid) !== undefined) this.put(pod);
    else this.#others.set(uid, pod.metadata?.resourceVersion ?? "");
  }

  /** Removes a pod that is not selected at this resourceVersion, or gone (null). True when a record was removed. */
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
