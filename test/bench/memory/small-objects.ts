/** Stores by path everything that a pass reads and writes except pods. */
import { applyJsonPatch } from "../../../infra/local/patch/json-patch.ts";
import { applyMergePatch } from "../../../infra/local/patch/patch.ts";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";

export interface SmallObjects {
  readonly get: (path: string) => KubernetesObject | undefined;
  readonly create: (folder: string, object: KubernetesObject) => KubernetesObject;
  /** Returns the patched object; undefined: it does not exist. Throws if a test of a JSON patch fails. */
  readonly patch: (path: string, patch: unknown) => KubernetesObject | undefined;
  readonly list: (folder: string) => readonly KubernetesObject[];
}

export function smallObjects(nextVersion: () => string): SmallObjects {
  const objects = new Map<string, KubernetesObject>();
  const write = (path: string, object: KubernetesObject) => {
    const stored = { ...object, metadata: { uid: path, ...object.metadata, resourceVersion: nextVersion() } };
    objects.set(path, stored);
    return stored;
  };
  return {
    get: (path) => objects.get(path),
    create: (folder, object) => write(`${folder}/${object.metadata?.name}`, object),
    patch: (path, patch) => {
      const known = objects.get(path);
      if (known === undefined) return undefined;
      const apply = Array.isArray(patch) ? applyJsonPatch : applyMergePatch;
      return write(path, apply(known, patch) as KubernetesObject);
    },
    list: (folder) => {
      const isWithin = (path: string) => path.startsWith(`${folder}/`) && !path.slice(folder.length + 1).includes("/");
      return [...objects].filter(([path]) => isWithin(path)).map(([, object]) => object);
    },
  };
}
