/** What is known of a SidecarSet's pods: a list, kept up to date by a watch and by the answers to our own writes. */
import type { Pod } from "../api/kubernetes.ts";
import type { SidecarSet } from "../api/sidecarset.ts";
import { projectPod } from "../core/upgrade/project-pod.ts";
import { partSharing } from "./shared-parts.ts";

/** What is kept of a pod. */
export type RecordPod = (pod: Pod) => Pod;

/** Records of one SidecarSet's pods. They share what is equal in them. */
export function podRecords(sidecarSet: SidecarSet, withResources = false): RecordPod {
  const share = partSharing();
  return (pod) => share(projectPod(pod, sidecarSet, withResources));
}

/**
 * Never goes back: news that is older than what is known is dropped, since a reservation is freed when its pod is seen
 * at another resourceVersion.
 */
export class PodView {
  /** what is kept of a pod here */
  readonly record: RecordPod;
  readonly #pods = new Map<string, Pod>();
  /** uid → resourceVersion of pods that are not selected (any more), null for those that do not exist */
  readonly #others = new Map<string, string | null>();

  /** `pods` are records already. */
  constructor(record: RecordPod, pods: readonly Pod[]) {
    this.record = record;
    for (const pod of pods) this.#pods.set(pod.metadata?.uid ?? "", pod);
  }

  /** Projected records, in the list's order, new ones at the end. */
  get pods(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  get(uid: string): Pod | undefined {
    return this.#pods.get(uid);
  }

  /** null: gone; undefined: never looked for */
  versionOf(uid: string): string | null | undefined {
    return this.#pods.get(uid)?.metadata?.resourceVersion ?? this.#others.get(uid);
  }

  /** A selected pod as it is now. True when that is news. */
  put(pod: Pod): boolean {
    const uid = pod.metadata?.uid ?? "";
    const known = this.versionOf(uid);
    if (known === null || (known !== undefined && !isLater(pod.metadata?.resourceVersion, known))) return false;
    this.#others.delete(uid);
    this.#pods.set(uid, this.record(pod));
    return true;
  }

  /** What our own write made of a pod; of one that is not selected only the version is kept. */
  see(pod: Pod): void {
    const uid = pod.metadata?.uid ?? "";
    if (this.#pods.has(uid)) this.put(pod);
    else this.#others.set(uid, pod.metadata?.resourceVersion ?? "");
  }

  /** Not selected any more, at this resourceVersion, or gone (null). True when a record went. */
  remove(uid: string, resourceVersion: string | null): boolean {
    const known = this.versionOf(uid);
    if (resourceVersion !== null && typeof known === "string" && isLater(known, resourceVersion)) return false;
    this.#others.set(uid, resourceVersion);
    return this.#pods.delete(uid);
  }
}

/** resourceVersions are decimal numbers of any length. Source: Kubernetes API concepts, "Resource versions". */
export function isLater(version: string | undefined, than: string): boolean {
  if (version === undefined) return false;
  return version.length === than.length ? version > than : version.length > than.length;
}
