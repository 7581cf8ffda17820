/** Decides what the page says about the revisions of a SidecarSet. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, HASH_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { isJsonObject } from "../../../go/json/json-object.ts";
import { shownText } from "../../../go/unseen.ts";
import { compareRevisions } from "../../sidecarset/revision/compare-revisions.ts";
import type { PodStanding } from "./pod-standing.ts";

export interface RevisionRow {
  readonly revision: number;
  readonly name: string;
  /** RFC3339; undefined: not stored yet */
  readonly createdAt: string | undefined;
  readonly customVersion: string | undefined;
  /** such as `agent fluent-bit:4.1.0` */
  readonly images: readonly string[];
  /** that have it now */
  readonly pods: number;
  /** what the SidecarSet says now */
  readonly isCurrent: boolean;
}

/** Newest first. A revision that OpenKruise recorded twice under one hash gets its pods once, at its newest. */
export function revisionRows(
  sidecarSet: SidecarSet,
  revisions: readonly ControllerRevision[],
  pods: readonly PodStanding[],
): readonly RevisionRow[] {
  const podsOf = Map.groupBy(pods, ({ hash }) => hash);
  const seen = new Set<string>();
  return revisions
    .toSorted((a, b) => compareRevisions(b, a))
    .map(({ metadata, revision, data }) => {
      const hash = metadata?.annotations?.[HASH_ANNOTATION] ?? "";
      const isFirst = hash !== "" && !seen.has(hash);
      seen.add(hash);
      return {
        revision,
        name: metadata?.name ?? "",
        createdAt: metadata?.creationTimestamp ?? undefined,
        customVersion: metadata?.labels?.[CUSTOM_VERSION_LABEL],
        images: imagesOf(isJsonObject(data) ? data["spec"] : undefined),
        pods: isFirst ? (podsOf.get(hash)?.length ?? 0) : 0,
        isCurrent: isFirst && hash === sidecarSet.metadata?.annotations?.[HASH_ANNOTATION],
      };
    });
}

/** Of a SidecarSet's spec, or what a revision recorded of it. */
export function imagesOf(spec: unknown): readonly string[] {
  if (!isJsonObject(spec)) return [];
  return [spec["initContainers"], spec["containers"]].flatMap((list) =>
    Array.isArray(list)
      ? list
          .filter(isJsonObject)
          .map(({ name, image }) => `${shownText(name)} ${image === undefined ? "" : shownText(image)}`.trim())
      : [],
  );
}
