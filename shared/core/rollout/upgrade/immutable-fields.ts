/** Tells which fields prevent an in-place upgrade: all differences from the injected ones, except images. */
import type { ControllerRevision, Pod } from "../../../api/kubernetes.ts";
import { HASH_WITHOUT_IMAGE_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { sortedGoJson } from "../../../go/json/go-json.ts";
import { isJsonObject, type JsonObject } from "../../../go/json/json-object.ts";
import { recordedHash } from "../../pod/pod-state.ts";
import { withValuesInPlace } from "../../pod/values-in-place.ts";
import { revisionData } from "../../sidecarset/revision/recorded-revision.ts";

/**
 * Paths such as `spec.containers{agent}.env`, sorted. An added or removed container is named without a field, another
 * order by the list alone. Empty when no revision has the pod's origin. @param pods pods that cannot be upgraded in
 * place
 */
export function immutableFields(
  sidecarSet: SidecarSet,
  pods: Iterable<Pod>,
  revisions: readonly ControllerRevision[],
): readonly string[] {
  const name = sidecarSet.metadata?.name ?? "";
  const madeWith = new Set<string>();
  for (const { metadata } of pods) {
    const text = metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION];
    madeWith.add(recordedHash(text, name));
  }
  if (madeWith.size === 0) return [];
  const now = partOf(sidecarSet);
  const before = [...madeWith].flatMap(
    (hash) => revisions.findLast((revision) => hash !== "" && hash === hashOf(revision)) ?? [],
  );
  return [...new Set(before.flatMap((revision) => differences(partIn(revision, name), now)))].sort();
}

/** The difference between the SidecarSet and the version that the pod was created with; undefined: unknown. */
export function madeWith(
  sidecarSet: SidecarSet,
  pod: Pod,
  revisions: readonly ControllerRevision[],
): { readonly fields: readonly string[]; readonly resources: ReadonlyMap<string, unknown> } | undefined {
  const { name = "" } = sidecarSet.metadata ?? {};
  const hash = recordedHash(pod.metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION], name);
  const revision = revisions.findLast((one) => hash !== "" && hash === hashOf(one));
  if (revision === undefined) return undefined;
  const before = partIn(revision, name);
  const resources = new Map(before.containers.map((one) => [String(one["name"]), one["resources"]]));
  return { fields: differences(before, partOf(sidecarSet)), resources };
}

function hashOf({ metadata }: ControllerRevision): string | undefined {
  return metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION];
}

interface HashedPart {
  readonly containers: readonly JsonObject[];
  readonly initContainers: readonly JsonObject[];
}

/** The hashed part as injected: values that change in place are no difference. */
function partOf(sidecarSet: SidecarSet): HashedPart {
  return hashedPart(revisionData(withValuesInPlace(sidecarSet)));
}

function partIn({ metadata, data }: ControllerRevision, name: string): HashedPart {
  const spec = isJsonObject(data) && isJsonObject(data["spec"]) ? data["spec"] : {};
  return hashedPart(withValuesInPlace({ metadata: { ...metadata, name }, spec: spec as SidecarSet["spec"] }));
}

/** Init containers count only when one of them is a native sidecar, as in the hash. */
function hashedPart(data: unknown): HashedPart {
  const spec = isJsonObject(data) && isJsonObject(data["spec"]) ? data["spec"] : {};
  const initContainers = objectsIn(spec["initContainers"]);
  const hasNative = initContainers.some(({ restartPolicy }) => restartPolicy === "Always");
  return { containers: objectsIn(spec["containers"]), initContainers: hasNative ? initContainers : [] };
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function differences(before: HashedPart, now: HashedPart): readonly string[] {
  return (["containers", "initContainers"] as const).flatMap((list) => {
    const [old, young] = [byName(before[list]), byName(now[list])];
    const names = [...new Set([...old.keys(), ...young.keys()])];
    const changes = names.flatMap((name) => changesOf(old.get(name), young.get(name), `spec.${list}{${name}}`));
    const isReordered = changes.length === 0 && [...old.keys()].join() !== [...young.keys()].join();
    return isReordered ? [`spec.${list}`] : changes;
  });
}

function byName(containers: readonly JsonObject[]): ReadonlyMap<string, JsonObject> {
  return new Map(containers.map((container) => [String(container["name"]), container]));
}

function changesOf(before: JsonObject | undefined, now: JsonObject | undefined, path: string): readonly string[] {
  if (!before || !now) return [path];
  const fields = new Set([...Object.keys(before), ...Object.keys(now)]);
  fields.delete("image");
  return [...fields]
    .filter((field) => sortedGoJson(before[field] ?? null) !== sortedGoJson(now[field] ?? null))
    .map((field) => `${path}.${field}`);
}
