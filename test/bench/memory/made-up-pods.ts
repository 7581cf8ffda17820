/** Creates any number of pods when they are read. Stores only pods that were written. */
import { applyJsonPatch } from "../../../infra/local/patch/json-patch.ts";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { rolloutPod } from "../fixture.ts";

export interface MadeUpPods {
  readonly count: number;
  readonly at: (index: number) => Pod;
  /** Returns the patched pod; undefined: no pod has this name. Throws if a test of the patch fails. */
  readonly patch: (name: string, patch: unknown) => Pod | undefined;
  readonly get: (name: string) => Pod | undefined;
}

export interface PodsOptions {
  readonly count: number;
  readonly sidecarSet: SidecarSet;
  readonly nextVersion: () => string;
  /** called with each new state of a pod */
  readonly onChange: (pod: Pod, index: number) => void;
}

/** Milliseconds until the kubelet runs a new image. */
const RESTART_MS = 2_000;

export function madeUpPods({ count, sidecarSet, nextVersion, onChange }: PodsOptions): MadeUpPods {
  const written = new Map<number, Pod>();
  const indexOf = new Map(
    Array.from({ length: count }, (_, index) => [rolloutPod(index, sidecarSet).metadata?.name ?? "", index]),
  );
  const at = (index: number) => written.get(index) ?? rolloutPod(index, sidecarSet);
  const write = (index: number, pod: Pod) => {
    const stored = { ...pod, metadata: { ...pod.metadata, resourceVersion: nextVersion() } };
    written.set(index, stored);
    onChange(stored, index);
    return stored;
  };
  const run = (index: number) => write(index, runningAsSpecified(at(index)));
  return {
    count,
    at,
    get: (name) => {
      const index = indexOf.get(name);
      return index === undefined ? undefined : at(index);
    },
    patch: (name, patch) => {
      const index = indexOf.get(name);
      if (index === undefined) return undefined;
      const stored = write(index, applyJsonPatch(at(index), patch) as Pod);
      if (!isRunningAsSpecified(stored)) setTimeout(run, RESTART_MS, index);
      return stored;
    },
  };
}

function isRunningAsSpecified({ spec, status }: Pod): boolean {
  return (status?.containerStatuses ?? []).every(({ image }, place) => image === spec.containers[place]?.image);
}

function runningAsSpecified(pod: Pod): Pod {
  const containerStatuses = (pod.status?.containerStatuses ?? []).map((status, place) => {
    const { image = "" } = pod.spec.containers[place] ?? {};
    if (image === status.image) return status;
    const digest = Buffer.from(image.padEnd(32, "0").slice(-32)).toString("hex");
    return { ...status, image, imageID: `docker.io/${image}@sha256:${digest}`, restartCount: 1 };
  });
  return { ...pod, status: { ...pod.status, containerStatuses } } as Pod;
}
