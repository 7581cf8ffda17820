/** The list of SidecarSets, one line each, from the stored object alone. SidecarSets that need a person come first. */

import type { ControllerRevision, KubernetesObject } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, HASH_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { isJsonObject } from "../../../go/json/json-object.ts";
import { shownText } from "../../../go/unseen.ts";
import { byVerdict, countedVerdict, type RolloutVerdict, storedVerdict } from "../../rollout/conditions/verdict.ts";
import { lastFailure } from "../../rollout/pass-trouble.ts";
import { compareRevisions } from "../../sidecarset/revision/compare-revisions.ts";
import type { PodStanding } from "./pod-standing.ts";

export interface SetRow {
  readonly name: string;
  readonly images: readonly string[];
  readonly matched: number;
  readonly updated: number;
  readonly ready: number;
  /** number of pods that have the current version and are ready */
  readonly updatedReady: number;
  /** state of the rollout; absent: no pass has seen the last change yet */
  readonly verdict?: RolloutVerdict;
  /** start of the state, RFC3339 */
  readonly since?: string;
  /** the reason in one clause */
  readonly reason: string;
}

export function setRows(sidecarSets: readonly SidecarSet[]): readonly SetRow[] {
  return sidecarSets.map(rowOf).toSorted(byVerdict);
}

function rowOf(sidecarSet: SidecarSet): SetRow {
  const { metadata, spec, status = {} } = sidecarSet;
  const row = {
    name: metadata?.name ?? "",
    images: imagesOf(spec),
    matched: status.matchedPods ?? 0,
    updated: status.updatedPods ?? 0,
    ready: status.readyPods ?? 0,
    updatedReady: status.updatedReadyPods ?? 0,
  };
  return { ...row, ...standingOf(sidecarSet) };
}

function standingOf(sidecarSet: SidecarSet): Pick<SetRow, "verdict" | "since" | "reason"> {
  const { metadata, status = {} } = sidecarSet;
  const stored = storedVerdict(sidecarSet);
  if (stored === undefined && (status.observedGeneration ?? 0) < (metadata?.generation ?? 0))
    return { reason: "no pass has seen its last change yet" };
  const { message, ...known } = stored ?? countedVerdict(sidecarSet);
  const isEmpty = (status.matchedPods ?? 0) === 0 && lastFailure(sidecarSet) === undefined;
  return { ...known, reason: isEmpty ? "it selects no pod that has its sidecars" : message };
}

// The page's rows about the revisions of a SidecarSet.

export interface RevisionRow {
  readonly revision: number;
  readonly name: string;
  /** creation time, RFC3339; undefined: the revision is not stored yet */
  readonly createdAt: string | undefined;
  readonly customVersion: string | undefined;
  /** images of containers, such as `agent fluent-bit:4.1.0` */
  readonly images: readonly string[];
  /** number of pods that have the revision now */
  readonly pods: number;
  /** true: this is the SidecarSet's current revision */
  readonly isCurrent: boolean;
}

/** The rows, newest first. If OpenKruise recorded a revision twice under one hash, the newest row counts its pods. */
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

/** Returns the images in the spec of a SidecarSet or of a recorded revision. */
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

// Chooses the Events that the page shows, and their fields.

/** A core/v1 Event with the fields that are read. */
export interface EventObject extends KubernetesObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly count?: number;
  readonly firstTimestamp?: string | null;
  readonly lastTimestamp?: string | null;
  readonly eventTime?: string | null;
  readonly involvedObject?: {
    readonly kind?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly uid?: string;
  } | null;
}

export interface EventLine {
  /** time of the Event, RFC3339 */
  readonly at: string;
  readonly isWarning: boolean;
  readonly reason: string;
  readonly message: string;
  /** the object of the Event, such as `Pod shop/web-1` */
  readonly about: string;
  readonly count: number;
}

const MAX_LINES = 50;

/** The last 50 Events, newest first. */
export function eventLines(events: readonly EventObject[]): readonly EventLine[] {
  return events
    .map(({ type, reason = "", message = "", count = 1, involvedObject, ...event }) => ({
      at: event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp ?? event.metadata?.creationTimestamp ?? "",
      isWarning: type === "Warning",
      reason,
      message,
      about: aboutOf(involvedObject ?? {}),
      count,
    }))
    .sort((a, b) => compareUtf8(b.at, a.at))
    .slice(0, MAX_LINES);
}

function aboutOf({ kind = "", namespace, name }: NonNullable<EventObject["involvedObject"]>): string {
  return `${kind} ${[namespace, name].filter(Boolean).join("/")}`.trim();
}
