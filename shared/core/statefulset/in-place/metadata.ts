/** How a template's metadata reaches running pods: the writes, the restarts, and their completion. */
import type { Container, EnvVar, Labels, Pod } from "../../../api/kubernetes.ts";
import {
  RUNTIME_CONTAINERS_ANNOTATION,
  SIDECARSET_VERSION_ALT_ENV,
  SIDECARSET_VERSION_ENV,
} from "../../../api/names.ts";
import { goJson, sortedGoJson } from "../../../go/json/go-json.ts";
import { diffJson, type JsonChange } from "../../../go/json/json-diff.ts";
import { isJsonObject, type JsonObject, jsonObjectOf, jsonOf } from "../../../go/json/json-object.ts";
import { jsonProblem } from "../../../go/json/json-problem.ts";
import { CONTAINER_FIELDS } from "../../../go/types/container.ts";
import { decodeGo } from "../../../go/types/decode-go.ts";
import { struct } from "../../../go/types/go-type.ts";
import type { PodTemplate, RefMetadata, UpdateSpec } from "./update-spec.ts";

type MetadataParts = Pick<UpdateSpec, "containerRefMetadata" | "updateEnvFromMetadata" | "metaDataPatch">;

const MAPS = ["labels", "annotations"] as const;
const MERGED: readonly string[] = [...MAPS, "finalizers"];
/** The key for values removed from a pod's own list. */
export const REMOVED_FINALIZERS = "$deleteFromPrimitiveList/finalizers";
type MapName = (typeof MAPS)[number];

interface Reference {
  readonly container: string;
  readonly map: MapName;
  readonly key: string;
  readonly value: string;
}

/**
 * Undefined for a changed list in the metadata that is not empty afterwards, except finalizers: it cannot be merged
 * into a pod's own.
 */
export function planMetadata(
  before: PodTemplate,
  after: PodTemplate,
  changes: readonly JsonChange[],
  isEnvFromMetadataUpdated: boolean,
): MetadataParts | undefined {
  if (changes.length === 0) return { containerRefMetadata: {}, updateEnvFromMetadata: false };
  const fields = changes.map(({ path: [, field = ""] }) => field).filter((field) => field !== "finalizers");
  if (fields.some((field) => isFilledList(membersOf(after)[field]))) return undefined;
  const references = isEnvFromMetadataUpdated ? changes.flatMap((change) => referencesTo(change, after)) : [];
  return {
    containerRefMetadata: byContainer(references),
    updateEnvFromMetadata: references.length > 0,
    metaDataPatch: sortedGoJson(patchOf(changes, { before, after, references })),
  };
}

/** The containers whose environment reads the label or annotation. If the value is removed, none restarts. */
function referencesTo({ path, value }: JsonChange, { containers }: PodTemplate): readonly Reference[] {
  const [, changedMap, changedKey] = path;
  if (typeof value !== "string") return [];
  return containers.flatMap(({ name, env }) => {
    const read = metadataReferences(env).find(({ map, key }) => map === changedMap && key === changedKey);
    return read ? [{ container: name, map: read.map, key: read.key, value }] : [];
  });
}

function byContainer(references: readonly Reference[]): Readonly<Record<string, RefMetadata>> {
  const grouped = new Map<string, { labels?: Labels; annotations?: Labels }>();
  for (const { container, map, key, value } of references) {
    const metadata = grouped.get(container) ?? {};
    grouped.set(container, { ...metadata, [map]: { ...metadata[map], [key]: value } });
  }
  return Object.fromEntries(grouped);
}

interface Sides {
  readonly before: PodTemplate;
  readonly after: PodTemplate;
  readonly references: readonly Reference[];
}

/** A strategic merge patch, without what containers refer to: null removes. */
function patchOf(changes: readonly JsonChange[], sides: Sides): JsonObject {
  const maps = MAPS.map((map) => [map, patchOfMap(map, sides)] as const);
  const others = changes.flatMap(({ path: [, field = ""], op, value }) =>
    MERGED.includes(field) || isNowhere(field, sides) ? [] : [[field, op === "remove" ? null : value] as const],
  );
  const merged = [...maps, ...others, ...patchOfFinalizers(sides)];
  const metadata = Object.fromEntries(merged.filter(([, change]) => change !== undefined));
  return Object.keys(metadata).length === 0 ? {} : { metadata };
}

/**
 * Go's patch of a list that is merged into the pod's own. Compat: an emptied list is removed as a whole, together with
 * others' values.
 */
function patchOfFinalizers({ before, after }: Sides): readonly (readonly [string, unknown])[] {
  const [old, wanted] = [before, after].map((template) => finalizersOf(template));
  if (!old || !wanted || sortedGoJson(old) === sortedGoJson(wanted)) return [];
  if (wanted.length === 0) return [["finalizers", null]];
  const added = wanted.filter((finalizer) => !old.includes(finalizer));
  const removed = old.filter((finalizer) => !wanted.includes(finalizer)).sort();
  return [
    ...(old.length > 0 ? [["$setElementOrder/finalizers", wanted] as const] : []),
    ...(removed.length > 0 ? [[REMOVED_FINALIZERS, removed] as const] : []),
    ...(added.length > 0 ? [["finalizers", added] as const] : []),
  ];
}

function finalizersOf(template: PodTemplate): readonly string[] {
  const { finalizers } = membersOf(template);
  return Array.isArray(finalizers) ? finalizers.filter((finalizer) => typeof finalizer === "string") : [];
}

/** True for null and an empty list, which Go's types treat as absent, such as a creationTimestamp. */
function isNowhere(field: string, { before, after }: Sides): boolean {
  return [before, after].every((template) => {
    const value = membersOf(template)[field] ?? [];
    return Array.isArray(value) && value.length === 0;
  });
}

function isFilledList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

function membersOf({ metadata }: PodTemplate): JsonObject {
  return metadata;
}

/**
 * Undefined when nothing changes.
 * Compat: a map that is left empty is removed as a whole, with what others wrote into the pod's
 * (inplace-update, rand/10).
 */
function patchOfMap(map: MapName, { before, after, references }: Sides): JsonObject | null | undefined {
  const taken = new Set(references.filter((reference) => reference.map === map).map(({ key }) => key));
  const [old, wanted] = [before, after].map(({ metadata }) =>
    Object.fromEntries(Object.entries(metadata[map] ?? {}).filter(([key]) => !taken.has(key))),
  );
  const changes = diffJson(old, wanted).map(({ path: [key = ""], value = null }) => [key, value]);
  if (changes.length === 0) return undefined;
  return Object.keys(wanted ?? {}).length === 0 ? null : Object.fromEntries(changes);
}

// Tells which labels and annotations of its pod a container reads into its environment.

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

// Tells whether the containers of a pod were started as its spec says, by the hashes that a node agent reports.

const CONTAINER = struct<Container>(CONTAINER_FIELDS);
const OFFSET_BASIS = 0x811c9dc5;
const PRIME = 0x01000193;

export function hasRuntimeMeta(pod: Pod): boolean {
  return jsonObjectOf(pod.metadata?.annotations?.[RUNTIME_CONTAINERS_ANNOTATION]) !== undefined;
}

/** Why the annotation cannot be read, in Go's words; undefined: it can, or does not exist. */
export function runtimeMetaProblem({ metadata }: Pod): string | undefined {
  const text = metadata?.annotations?.[RUNTIME_CONTAINERS_ANNOTATION];
  if (text === undefined) return undefined;
  const value = jsonOf(text);
  if (value === null || isJsonObject(value)) return undefined;
  return jsonProblem(text) ?? `annotation ${RUNTIME_CONTAINERS_ANNOTATION} is not a JSON object`;
}

/** "plain": name and image; "environment": values read from labels and annotations. Every container must agree. */
export function areHashesConsistent(pod: Pod, kind: "plain" | "environment"): boolean {
  const reported = jsonObjectOf(pod.metadata?.annotations?.[RUNTIME_CONTAINERS_ANNOTATION])?.["containers"];
  const metas: readonly unknown[] = Array.isArray(reported) ? reported : [];
  return pod.spec.containers.every((container) => {
    const status = pod.status?.containerStatuses?.find(({ name }) => name === container.name);
    const meta = metas.find(
      (candidate): candidate is JsonObject => isJsonObject(candidate) && candidate["name"] === container.name,
    );
    if (!status || !meta || (meta["containerID"] ?? "") !== (status.containerID ?? "")) return false;
    const hashes = isJsonObject(meta["hashes"]) ? meta["hashes"] : {};
    return kind === "plain"
      ? [plainHash(container), wholeHash(container)].includes(hashes["plainHash"] as number)
      : (hashes["extractedEnvFromMetadataHash"] ?? 0) === environmentHash(container, pod);
  });
}

/** Source: Kubernetes pkg/kubelet/container, HashContainer (1.32). */
function plainHash({ name, image = "" }: Container): number {
  return hashObject(sortedGoJson({ name, image }));
}

/** The same before 1.31: of all that the container is. */
function wholeHash(container: Container): number {
  const decoded = decodeGo(CONTAINER, container);
  return decoded.kind === "Decoded" ? hashObject(goJson(decoded.value)) : plainHash(container);
}

/** 0 for a container that reads none. */
function environmentHash({ env }: Container, { metadata }: Pod): number {
  const read = metadataReferences(env).map(({ name, map, key }) => {
    const value = metadata?.[map]?.[key];
    return value ? { name, value } : { name };
  });
  return read.length === 0 ? 0 : hashObject(goJson(read));
}

/** FNV-1a, 32 bits, over the bytes as Go's spew prints them. Source: Kubernetes pkg/util/hash, DeepHashObject. */
function hashObject(json: string): number {
  const printed = `([]uint8)[${new TextEncoder().encode(json).join(" ")}]`;
  let hash = OFFSET_BASIS;
  for (const byte of new TextEncoder().encode(printed)) hash = Math.imul(hash ^ byte, PRIME) >>> 0;
  return hash;
}
