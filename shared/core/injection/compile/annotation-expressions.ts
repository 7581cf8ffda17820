/** Decides which expressions give the annotations that an injected pod has. */
import {
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../../api/names.ts";
import type { PatchPodMetadata, SidecarSet } from "../../../api/sidecarset.ts";
import { celLiteral, celText } from "../../../go/json/cel-literal.ts";
import { Refusal } from "../../admission/refusal.ts";
import { hotUpgradeAnnotations } from "../hot-upgrade.ts";
import { recordInjection } from "../record-injection.ts";

/** Key → CEL of the value. */
export type AnnotationExpressions = ReadonlyMap<string, string>;

/** A member of the JSON that an annotation holds, as it is always written: names need no escapes, records hold no braces. */
const RECORD = `"[^"]+":\\{[^{}]*\\}`;
const TEXT = `"[^"]+":"[^"]*"`;

/** What a pod may bring in these annotations; of any other form the policy cannot make sense. */
export const READABLE: ReadonlyMap<string, string> = new Map([
  [HASH_ANNOTATION, objectOf(RECORD)],
  [HASH_WITHOUT_IMAGE_ANNOTATION, objectOf(RECORD)],
  [WORKING_HOT_UPGRADE_ANNOTATION, objectOf(TEXT)],
]);

function objectOf(member: string): string {
  return `^(\\{(${member}(,${member})*)?\\})?$`;
}

/** "" where the pod has none. */
export function annotation(key: string): string {
  return `object.metadata.?annotations[?${celText(key)}].orValue("")`;
}

function has(key: string): string {
  return `object.metadata.?annotations[?${celText(key)}].hasValue()`;
}

function patched(
  before: string,
  isThere: string,
  { value, policy }: { readonly value: string; readonly policy: string },
) {
  switch (policy) {
    case "Overwrite":
      return value;
    case "MergePatchJson":
      return `(${before} == "" ? ${value} : ${before})`;
    default:
      return `(${isThere} ? ${before} : ${value})`;
  }
}

const POLICIES = ["", "Retain", "Overwrite", "MergePatchJson"];

/** What the pod's annotations become before anything is injected; an unknown policy patches nothing. */
export function patchedAnnotations(patches: readonly PatchPodMetadata[]): AnnotationExpressions {
  const expressions = new Map<string, string>();
  for (const { annotations = {}, patchPolicy: policy = "" } of patches) {
    if (!POLICIES.includes(policy)) continue;
    for (const [key, value] of Object.entries(annotations)) {
      const before = expressions.get(key);
      const isThere = before === undefined ? has(key) : "true";
      expressions.set(key, patched(before ?? annotation(key), isThere, { value: celText(value), policy }));
    }
  }
  return expressions;
}

/** The members of a JSON object, these among them, in the order of their names. */
function withMembers(key: string, pattern: string, members: Readonly<Record<string, string>>): string {
  const own = Object.keys(members).map((name) => `${JSON.stringify(name)}:`);
  const added = Object.entries(members).map(([name, json]) => `${JSON.stringify(name)}:${json}`);
  const kept = `${annotation(key)}.findAll(${celText(pattern)}).filter(m, !${celLiteral(own)}.exists(o, m.startsWith(o)))`;
  return `"{" + (${kept} + ${celLiteral(added)}).sort().join(",") + "}"`;
}

function memberOf(text: string | undefined, name: string): Readonly<Record<string, string>> {
  return { [name]: (text ?? "").slice(`{${JSON.stringify(name)}:`.length, -1) };
}

/** The records of one injection. `now` is RFC 3339, UTC, in whole seconds. */
export function recordedAnnotations(sidecarSet: SidecarSet, now: string): AnnotationExpressions {
  const name = sidecarSet.metadata?.name ?? "";
  const recorded = recordInjection({ withImage: {}, withoutImage: {} }, undefined, [sidecarSet], now);
  const records = [HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION].map(
    (key) => [key, withMembers(key, RECORD, memberOf(recorded[key], name))] as const,
  );
  const list = annotation(INJECTED_LIST_ANNOTATION);
  const names = `((${list} == "" ? [] : ${list}.split(",")) + ${celLiteral([name])}).distinct().sort().join(",")`;
  return new Map([...records, [INJECTED_LIST_ANNOTATION, names]]);
}

/** Of hot-upgrade sidecars: which of each pair works. */
export function hotAnnotations(sidecars: readonly string[]): AnnotationExpressions {
  const annotations = sidecars.length > 0 ? hotUpgradeAnnotations(sidecars, {}) : {};
  if (annotations instanceof Refusal) return new Map();
  const { [WORKING_HOT_UPGRADE_ANNOTATION]: working, ...versions } = annotations;
  const texts = Object.entries(versions).map(([key, value]) => [key, celText(value)] as const);
  if (working === undefined) return new Map(texts);
  const members = Object.entries(JSON.parse(working) as Readonly<Record<string, string>>);
  const expression = withMembers(
    WORKING_HOT_UPGRADE_ANNOTATION,
    TEXT,
    Object.fromEntries(members.map(([name, slot]) => [name, JSON.stringify(slot)])),
  );
  return new Map([...texts, [WORKING_HOT_UPGRADE_ANNOTATION, expression]]);
}
