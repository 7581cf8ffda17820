/** Decides what a pod remembers of containers that were recreated: by which request, and their images as first written. */
import type { Pod } from "../../api/kubernetes.ts";
import { RECREATED_CONTAINERS_ANNOTATION } from "../../api/names.ts";
import type { ImageChange } from "../lib/action.ts";
import { sortedGoJson } from "../lib/go-json.ts";
import { isJsonObject, jsonObjectOf } from "../lib/json-object.ts";

/** By name of the container. */
export type Recreated = Readonly<Record<string, { readonly request: string; readonly image: string }>>;

/** Entries that say nothing are left out. */
export function recreatedBy({ metadata }: Pod): Recreated {
  const said = jsonObjectOf(metadata?.annotations?.[RECREATED_CONTAINERS_ANNOTATION]) ?? {};
  const entries = Object.entries(said).flatMap(([name, entry]) => {
    if (!isJsonObject(entry)) return [];
    const { request, image } = entry;
    return typeof request === "string" && typeof image === "string" ? [[name, { request, image }] as const] : [];
  });
  return Object.fromEntries(entries);
}

/** The annotation after a request has written images. */
export function withRecreated(before: Recreated, images: readonly ImageChange[], request: string) {
  const news = images.map(({ container, from }) => [container, { request, image: before[container]?.image ?? from }]);
  return { [RECREATED_CONTAINERS_ANNOTATION]: sortedGoJson({ ...before, ...Object.fromEntries(news) }) };
}
