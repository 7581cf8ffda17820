/** Decides which JSON Patch operations put containers, volumes, secrets and annotations into a pod. */
import type { LocalObjectReference, Volume } from "../../../api/kubernetes.ts";
import { celLiteral, celText } from "../../../go/json/cel-literal.ts";
import { pointerStep } from "../../../go/json/json-pointer.ts";
import type { AnnotationExpressions } from "./annotation-expressions.ts";
import type { CompiledContainer } from "./container-expressions.ts";

/** An expression of a list of JSONPatch. */
type Operations = string;

function add(path: string, value: string): string {
  return `JSONPatch{op: "add", path: ${celText(path)}, value: ${value}}`;
}

function onlyIf(condition: string, one: string): Operations {
  return `(${condition} ? [${one}] : [])`;
}

/** A list or map that later operations add to. */
function unlessThere(path: string, empty: "[]" | "{}"): Operations {
  const field = `object${path.replaceAll("/", ".")}`;
  return `(has(${field}) ? [] : [${add(path, empty)}])`;
}

/** Before or after the pod's own; none of these has the name of one that is injected. */
export function containerOperations(
  list: "initContainers" | "containers",
  containers: readonly CompiledContainer[],
): readonly Operations[] {
  if (containers.length === 0) return [];
  const path = `/spec/${list}`;
  const addedAt = (end: string) => (one: CompiledContainer) => add(`${path}/${end}`, `variables.${one.variable}`);
  const after = containers.filter(({ isBeforeApps }) => !isBeforeApps).map(addedAt("-"));
  const before = containers.filter(({ isBeforeApps }) => isBeforeApps).map(addedAt("0"));
  return [unlessThere(path, "[]"), `[${[...after, ...before.reverse()].join(",\n ")}]`];
}

/** The first of a name wins, and the pod's own before any. */
export function volumeOperations(volumes: readonly Volume[]): readonly Operations[] {
  if (volumes.length === 0) return [];
  const first = volumes.filter(({ name }, index) => volumes.findIndex((other) => other.name === name) === index);
  const added = first.map((volume) => {
    const isThere = `object.spec.?volumes.orValue([]).exists(v, v.name == ${celText(volume.name)})`;
    return onlyIf(`!${isThere}`, add("/spec/volumes/-", celLiteral(volume)));
  });
  return [unlessThere("/spec/volumes", "[]"), ...added];
}

/** The pod's own are deduplicated as well. */
export function secretOperations(secrets: readonly LocalObjectReference[]): readonly Operations[] {
  const all = `(object.spec.?imagePullSecrets.orValue([])${secrets.length > 0 ? ` + ${celLiteral(secrets)}` : ""})`;
  const firsts = `${all}.transformList(i, x, ${all}.map(y, y.?name.orValue("")).indexOf(x.?name.orValue("")) == i, x)`;
  return [onlyIf(`size(${all}) > 0`, add("/spec/imagePullSecrets", firsts))];
}

export function annotationOperations(annotations: AnnotationExpressions): readonly Operations[] {
  const added = [...annotations].map(([key, value]) => add(`/metadata/annotations/${pointerStep(key)}`, value));
  return added.length === 0 ? [] : [unlessThere("/metadata/annotations", "{}"), `[${added.join(",\n ")}]`];
}
