/** The records of an upgrade or a flip in a pod's annotations, so that the next pass needs no other memory. */
import type { Pod } from "../../../api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
} from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { compareUtf8, goJson } from "../../../go/json/go-json.ts";
import { isJsonObject, type JsonObject, jsonObjectOf, jsonOf } from "../../../go/json/json-object.ts";
import { storedTime } from "../../../go/rfc3339.ts";
import {
  formatUpgradeRecords,
  parseUpgradeRecords,
  type UpgradeRecord,
  type UpgradeRecords,
} from "../../pod/pod-records.ts";
import { isTimestamp } from "../../pod/update-state.ts";
import type { Annotations } from "./pod-change.ts";

export interface UpgradeFacts {
  /** RFC3339, whole seconds, UTC */
  readonly now: string;
  /** name of the ControllerRevision that the pod gets */
  readonly latestRevision: string;
  /** gate NativeSidecarInPlaceUpdate */
  readonly withNatives?: boolean;
}

/**
 * The hash annotation with this SidecarSet's new entry. An annotation in the old form is migrated, and so is the other
 * hash annotation if it is old. Compat: the other one also gets the entries that only this one has (OpenKruise's
 * UpdatePodSidecarSetHash reads both into one map).
 */
export function recordHash(pod: Pod, sidecarSet: SidecarSet, { now, latestRevision }: UpgradeFacts): Annotations {
  const name = sidecarSet.metadata?.name ?? "";
  const before = parseUpgradeRecords(pod.metadata?.annotations?.[HASH_ANNOTATION]);
  const withoutImage = jsonOf(pod.metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION]);
  const record = {
    updateTimestamp: now,
    hash: sidecarSet.metadata?.annotations?.[HASH_ANNOTATION] ?? "",
    sidecarSetName: name,
    sidecarList: sidecarListOf(sidecarSet),
    controllerRevision: latestRevision,
  };
  if (before.form === "current")
    return { [HASH_ANNOTATION]: formatUpgradeRecords({ ...before.records, [name]: record }) };
  const text = pod.metadata?.annotations?.[HASH_ANNOTATION];
  const others = migrate(text, name, now);
  const read = before.form === "malformed" ? readableRecords(text) : others;
  return {
    [HASH_ANNOTATION]: formatUpgradeRecords({ ...read, [name]: record }),
    ...(isOldForm(withoutImage)
      ? {
          [HASH_WITHOUT_IMAGE_ANNOTATION]: formatUpgradeRecords(
            withoutImage === null
              ? {}
              : { ...others, ...migrate(pod.metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION], name, now) },
          ),
        }
      : {}),
  };
}

/** True for the old form. An empty map has either form, and so has null, as the map or as a hash. */
function isOldForm(hashes: unknown): boolean {
  if (!isJsonObject(hashes)) return hashes === null;
  return Object.values(hashes).every((hash) => hash === null || typeof hash === "string");
}

/** The other hash annotation, for a pod that got more than images in place. */
export function recordWithoutImage(pod: Pod, sidecarSet: SidecarSet, { now }: UpgradeFacts): Annotations {
  const name = sidecarSet.metadata?.name ?? "";
  const { records } = parseUpgradeRecords(pod.metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION]);
  const hash = sidecarSet.metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION] ?? "";
  const record = { updateTimestamp: now, hash, sidecarSetName: name, sidecarList: sidecarListOf(sidecarSet) };
  return { [HASH_WITHOUT_IMAGE_ANNOTATION]: formatUpgradeRecords({ ...records, [name]: record }) };
}

/**
 * Reads the map as a map of hashes; a value that is not a text becomes "". Compat: every entry gets the name of the
 * current SidecarSet (pod-update, cold/old-format-hash-map).
 */
function migrate(text: string | undefined, sidecarSetName: string, now: string): UpgradeRecords {
  const migrated = Object.entries(jsonObjectOf(text) ?? {}).map(([name, hash]) => {
    return [name, { updateTimestamp: now, hash: textOf(hash), sidecarSetName, sidecarList: null }];
  });
  return Object.fromEntries(migrated);
}

/** A map of neither form, as far as Go reads it as a map of records: an invalid time ends the reading. */
function readableRecords(text: string | undefined): UpgradeRecords {
  const records: Record<string, UpgradeRecord> = Object.create(null);
  for (const [name, value] of Object.entries(jsonObjectOf(text) ?? {})) {
    const fields = isJsonObject(value) ? value : {};
    if (!isTimestamp(fields["updateTimestamp"])) break;
    records[name] = readableRecord(fields);
  }
  return records;
}

/** Treats a field of the wrong type as absent. */
function readableRecord(fields: JsonObject): UpgradeRecord {
  const { updateTimestamp, hash, sidecarSetName, sidecarList, controllerRevision } = fields;
  return {
    updateTimestamp: storedTime(textOf(updateTimestamp)) ?? null,
    hash: textOf(hash),
    sidecarSetName: textOf(sidecarSetName),
    sidecarList: Array.isArray(sidecarList) ? sidecarList.map(textOf) : null,
    controllerRevision: textOf(controllerRevision),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Names of the containers and native sidecars in the spec, sorted, without duplicates. */
function sidecarListOf({ spec }: SidecarSet): readonly string[] {
  const native = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  return [...new Set([...(spec.containers ?? []), ...native].map(({ name }) => name))].sort(compareUtf8);
}

/**
 * The state annotation with the current imageIDs of `changed` containers, before their images change. Compat: revision
 * and timestamp stay those of the first upgrade (pod-update, cold/second-upgrade-keeps-first-revision-and-timestamp).
 */
export function recordState(pod: Pod, sidecarSet: SidecarSet, changed: readonly string[], now: string): Annotations {
  const name = sidecarSet.metadata?.name ?? "";
  const states = readableStates(pod.metadata?.annotations?.[IN_PLACE_UPDATE_STATE_ANNOTATION]);
  const state = states[name] ?? {
    revision: sidecarSet.metadata?.annotations?.[HASH_ANNOTATION] ?? "",
    updateTimestamp: now,
  };
  const before = state["lastContainerStatuses"];
  const statuses = {
    ...(isJsonObject(before) ? before : {}),
    ...Object.fromEntries(changed.map((container) => [container, imageStatusOf(pod, container)])),
  };
  const after = { ...states, [name]: { ...state, lastContainerStatuses: sortKeys(statuses) } };
  return { [IN_PLACE_UPDATE_STATE_ANNOTATION]: goJson(sortKeys(after)) };
}

/**
 * The entries as far as Go reads them: a field of the wrong type counts as absent, and an invalid time ends the
 * reading. Every written entry must be readable: one bad entry would make the pod inconsistent for good.
 */
function readableStates(text: string | undefined): Readonly<Record<string, JsonObject | null>> {
  const states: Record<string, JsonObject | null> = Object.create(null);
  for (const [name, state] of Object.entries(jsonObjectOf(text) ?? {})) {
    const fields = isJsonObject(state) ? state : {};
    if (!isTimestamp(fields["updateTimestamp"])) break;
    states[name] = state === null ? null : asGoPrints(fields);
  }
  return states;
}

/** An entry as Go prints it: missing fields have their zero values, times are in UTC. */
function asGoPrints({ revision, updateTimestamp, lastContainerStatuses, ...others }: JsonObject): JsonObject {
  const statuses = isJsonObject(lastContainerStatuses)
    ? Object.entries(lastContainerStatuses).map(([container, status]) => {
        const imageID = isJsonObject(status) ? status["imageID"] : undefined;
        return [container, typeof imageID === "string" && imageID !== "" ? { imageID } : {}] as const;
      })
    : undefined;
  return {
    revision: typeof revision === "string" ? revision : "",
    updateTimestamp: typeof updateTimestamp === "string" ? storedTime(updateTimestamp) : null,
    lastContainerStatuses: statuses ? sortKeys(Object.fromEntries(statuses)) : null,
    ...others,
  };
}

function imageStatusOf(pod: Pod, container: string) {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const imageID = [...containerStatuses, ...initContainerStatuses].find(({ name }) => name === container)?.imageID;
  return imageID ? { imageID } : {};
}

function sortKeys(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => compareUtf8(a, b)));
}
