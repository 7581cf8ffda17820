/** Decides what a pod remembers of containers that were recreated: by which request, and their images as first written. */
import type { Pod } from "../../api/kubernetes.ts";
import { RECREATED_CONTAINERS_ANNOTATION } from "../../api/names.ts";
import { sortedGoJson } from "../../go/json/go-json.ts";
import { isJsonObject, jsonObjectOf } from "../../go/json/json-object.ts";
import type { ImageChange } from "../actions.ts";

interface RecreatedContainer {
  readonly request: string;
  readonly image: string;
  /** what ran when its image was written; absent: it is not known */
  readonly containerID?: string;
}

/** By name of the container. */
export type Recreated = Readonly<Record<string, RecreatedContainer>>;

/** Entries that say nothing are left out. */
export function recreatedBy({ metadata }: Pod): Recreated {
  const said = jsonObjectOf(metadata?.annotations?.[RECREATED_CONTAINERS_ANNOTATION]) ?? {};
  const entries = Object.entries(said).flatMap(([name, entry]) => {
    if (!isJsonObject(entry)) return [];
    const { request, image, containerID } = entry;
    if (typeof request !== "string" || typeof image !== "string") return [];
    return [[name, { request, image, ...(typeof containerID === "string" ? { containerID } : {}) }] as const];
  });
  return Object.fromEntries(entries);
}

/** The annotation after a request has written images of the pod. */
export function withRecreated(pod: Pod, images: readonly ImageChange[], request: string) {
  const before = recreatedBy(pod);
  const news = images.map(({ container, from }) => {
    const { containerID } = pod.status?.containerStatuses?.find(({ name }) => name === container) ?? {};
    return [container, { request, image: before[container]?.image ?? from, ...(containerID ? { containerID } : {}) }];
  });
  return { [RECREATED_CONTAINERS_ANNOTATION]: sortedGoJson({ ...before, ...Object.fromEntries(news) }) };
}
