/** Decides which labels and annotations of its pod a container reads into its environment. */
import type { EnvVar } from "../../../api/kubernetes.ts";
import { SIDECARSET_VERSION_ALT_ENV, SIDECARSET_VERSION_ENV } from "../../../api/names.ts";

export interface MetadataReference {
  /** of the environment variable */
  readonly name: string;
  readonly map: "labels" | "annotations";
  readonly key: string;
}

const SUBSCRIPTED = /^metadata\.(labels|annotations)\['(.*)'\]$/s;
/** The versions of hot-upgrade sidecars change while their container runs, and are read from a file then. */
const EXCLUDED: ReadonlySet<string> = new Set([SIDECARSET_VERSION_ENV, SIDECARSET_VERSION_ALT_ENV]);

/** In the order of the environment. */
export function metadataReferences(env: readonly EnvVar[] = []): readonly MetadataReference[] {
  return env.flatMap(({ name, valueFrom }) => {
    const [, map, key = ""] = SUBSCRIPTED.exec(valueFrom?.fieldRef?.fieldPath ?? "") ?? [];
    if (EXCLUDED.has(name) || (map !== "labels" && map !== "annotations")) return [];
    return [{ name, map, key }];
  });
}
