/** What is known of a SidecarSet's pods: a list, kept up to date by a watch and by the answers to our own writes. */
import type { Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { withSpecImages } from "../../core/pod/image-names.ts";
import { type Also, NOTHING_ELSE, projectPod } from "../../core/rollout/upgrade/project-pod.ts";
import { isLater } from "../../go/resource-version.ts";
import { Picked, type Sequence } from "../../go/sequence.ts";
import { PodTable } from "./pod-table.ts";

/**
 * Never goes back: news that is older than what is known is dropped, since a reservation is freed when its pod is seen
 * at another resourceVersion.
 */
export class PodView {
  readonly #sidecarSet: SidecarSet;
  readonly #also: Also;
  readonly #table = new PodTable();
  /** of the table, in the list's order; some may be gone since */
  #rows = new Uint32Array();
  /** those that came after them */
  #newRows: number[] = [];
  /** uid → resourceVersion of pods that are not selected (any more), null for those that do not exist */
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
   * What was gathered of each list that is complete, in their order. Those that were begun and not ended do not count. A
   * list that is consistent has each uid once; of two the last one holds.
   */
  complete(gathered: readonly (readonly number[])[]): void {
    this.#rows = joined(gathered);
    this.#newRows = [];
    const isListed = new Uint8Array(this.#table.length);
    for (const row of this.#rows) isListed[row] = 1;
    for (let row = 0; row < isListed.length; row++) if (isListed[row] === 0) this.#table.drop(row);
    this.#table.settle();
  }

  /** Projected records, in the list's order, new ones at the end. They are made when they are asked for, which throws once the view has changed. */
  get pods(): Sequence<Pod> {
    return this.#inOrder((row) => this.#table.at(row));
  }

  /** The same, in half the time, for who is through with them before the view changes. Copies made member by member lack name, uid and version. */
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

  /** What is kept of a pod, for one that waits for its turn to be put here. */
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

  /** What our own write made of a pod; of one that is not selected only the version is kept. */
  see(pod: Pod): void {
    const uid = pod.metadata?.uid ?? "";
    if (this.#table.rowOf(uid) !== undefined) this.put(pod);
    else this.#others.set(uid, pod.metadata?.resourceVersion ?? "");
  }

  /** Not selected any more, at this resourceVersion, or gone (null). True when a record went. */
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

  /** Anew, since sequences that were handed out hold the old ones. No `filter`: on its way to a new array it takes three times as much of the heap. */
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
