/** A replacement for `PodTable` without the pod store: records of pods are objects in an array. */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { SharedParts } from "../../../shared/controller/pod-store/shared-parts.ts";

/** Set by the build. true: equal parts of records are stored once, as in the pod store. */
declare const SHARES_PARTS: boolean;

export class PodTable {
  readonly #parts = new SharedParts();
  readonly #pods: (Pod | undefined)[] = [];
  readonly #rows = new Map<string, number>();
  #writes = 0;

  get length(): number {
    return this.#pods.length;
  }

  get writes(): number {
    return this.#writes;
  }

  rowOf(uid: string): number | undefined {
    return this.#rows.get(uid);
  }

  isGone(row: number): boolean {
    return this.#pods[row] === undefined;
  }

  add(pod: Pod): number {
    this.#writes++;
    const row = this.#pods.push(this.share(pod)) - 1;
    this.#rows.set(pod.metadata?.uid ?? "", row);
    return row;
  }

  replace(row: number, pod: Pod): void {
    this.#writes++;
    this.#pods[row] = this.share(pod);
  }

  drop(row: number): void {
    this.#writes++;
    this.#rows.delete(this.#pods[row]?.metadata?.uid ?? "");
    this.#pods[row] = undefined;
  }

  at(row: number): Pod | undefined {
    return this.#pods[row];
  }

  record(row: number): Pod | undefined {
    return this.#pods[row];
  }

  versionOf(row: number): string | undefined {
    return this.#pods[row]?.metadata?.resourceVersion;
  }

  share(pod: Pod): Pod {
    if (!SHARES_PARTS) return pod;
    const { metadata = {}, spec, status } = pod;
    const { labels, annotations } = metadata;
    const own = {
      ...metadata,
      labels: this.#parts.share(labels ?? {}),
      annotations: this.#parts.share(annotations ?? {}),
    };
    return { ...pod, metadata: own, spec: this.#parts.share(spec), status: this.#parts.share(status ?? {}) };
  }

  settle(): void {
    this.#parts.forget();
  }
}
