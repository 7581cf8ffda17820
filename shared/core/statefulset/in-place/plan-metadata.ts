/** Decides which changes of a template's labels and annotations restart a container, and which are merely written. */
import type { Labels } from "../../../api/kubernetes.ts";
import { sortedGoJson } from "../../../go/json/go-json.ts";
import { diffJson, type JsonChange } from "../../../go/json/json-diff.ts";
import type { JsonObject } from "../../../go/json/json-object.ts";
import { metadataReferences } from "./metadata-references.ts";
import type { PodTemplate, RefMetadata, UpdateSpec } from "./update-spec.ts";

type MetadataParts = Pick<UpdateSpec, "containerRefMetadata" | "updateEnvFromMetadata" | "metaDataPatch">;

const MAPS = ["labels", "annotations"] as const;
const MERGED: readonly string[] = [...MAPS, "finalizers"];
/** What a pod's own list loses. */
export const REMOVED_FINALIZERS = "$deleteFromPrimitiveList/finalizers";
type MapName = (typeof MAPS)[number];

interface Reference {
  readonly container: string;
  readonly map: MapName;
  readonly key: string;
  readonly value: string;
}

/** Undefined for a change of a list in the metadata that is not empty then, but for finalizers: it cannot be merged into a pod's own. */
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

/** The containers that read the label or annotation into their environment. A removal restarts nobody. */
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
 * As Go writes a patch of a list that is merged into the pod's own. Compat: one that is left empty is removed as a whole,
 * with what others put into the pod's.
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

/** In Go's types null is as good as absent, such as a creationTimestamp, and so is an empty list. */
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
