/** The annotation of a pod about its update in place: the earlier images of its containers. */
import type { Pod } from "../../api/kubernetes.ts";
import { IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../api/names.ts";
import { byText } from "../../go/by-text.ts";
import { isJsonObject, jsonOf } from "../../go/json/json-object.ts";
import { utcSeconds } from "../../go/rfc3339.ts";

/** Statuses by container name; `{}` for a container without a status at that time. */
export type LastContainerStatuses = Readonly<Record<string, { readonly imageID?: string }>>;

/** The statuses of a pod without a record. */
export const NO_STATUSES: LastContainerStatuses = {};

/** The statuses in the annotation. Undefined if Go's decoder would refuse them: such a pod is never consistent. */
export function lastContainerStatuses(pod: Pod, sidecarSetName: string): LastContainerStatuses | undefined {
  const text = pod.metadata?.annotations?.[IN_PLACE_UPDATE_STATE_ANNOTATION];
  return text === undefined ? NO_STATUSES : statusesIn(text, sidecarSetName);
}

/** The reason why the record cannot be read, which makes the pod inconsistent; undefined: it is readable or absent. */
export function unreadableState(pod: Pod): string | undefined {
  return lastContainerStatuses(pod, "") === undefined
    ? `its annotation ${IN_PLACE_UPDATE_STATE_ANNOTATION} cannot be read`
    : undefined;
}

const statusesIn = byText((text, sidecarSetName): LastContainerStatuses | undefined => {
  const states = jsonOf(text);
  if (states === null) return NO_STATUSES;
  if (!isJsonObject(states) || !Object.values(states).every(isUpdateState)) return undefined;
  const state = states[sidecarSetName];
  return isJsonObject(state) && isJsonObject(state["lastContainerStatuses"])
    ? (state["lastContainerStatuses"] as LastContainerStatuses)
    : NO_STATUSES;
});

/** True for a valid state. Null is one too, because it is a zero value in Go. */
export function isUpdateState(value: unknown): boolean {
  if (value === null) return true;
  if (!isJsonObject(value)) return false;
  const { revision, updateTimestamp, lastContainerStatuses } = value;
  return isText(revision) && isTimestamp(updateTimestamp) && isStatuses(lastContainerStatuses);
}

function isStatuses(value: unknown): boolean {
  if (isAbsent(value)) return true;
  return (
    isJsonObject(value) &&
    Object.values(value).every((status) => status === null || (isJsonObject(status) && isText(status["imageID"])))
  );
}

function isText(value: unknown): boolean {
  return isAbsent(value) || typeof value === "string";
}

/** True for a timestamp, and for an absent value. */
export function isTimestamp(value: unknown): boolean {
  return isAbsent(value) || (typeof value === "string" && utcSeconds(value) !== undefined);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}
