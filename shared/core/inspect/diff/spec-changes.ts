/** The effect of each changed field of a SidecarSet on running pods. */

import { IN_PLACE_ANNOTATION } from "../../../api/names.ts";
import type { SidecarContainer, SidecarSet } from "../../../api/sidecarset.ts";
import { sortedGoJson } from "../../../go/json/go-json.ts";
import { nativeSidecars } from "../../pod/native-sidecars.ts";
import { isHotUpgrade } from "../../pod/sidecar-containers.ts";
import { hasValuesInPlace, valuesInPlace, withValuesInPlace } from "../../pod/values-in-place.ts";
import { isStillThere, type Resources } from "../../rollout/rules/resize/resize.ts";
import { isNative } from "../../sidecarset/hash/sidecarset-hash.ts";

/** The effect of a change, ordered by how much trouble it makes. */
export type Effect =
  /** running pods keep the old value for good: only new pods get the new one */
  | "recreate"
  /** running pods are updated in place */
  | "inPlace"
  /** it selects other pods */
  | "selection"
  /** it changes when, which and how many pods are updated */
  | "rollout"
  /** new pods get it; running pods neither get it nor wait for it */
  | "newPods"
  /** new pods get it, and running pods together with their next release: no pod waits for it */
  | "nextUpdate"
  /** no container changes; only the records of pods do */
  | "none";

export interface SpecChange {
  /** such as `spec.containers{agent}.env`; containers appear by name, not by index */
  readonly path: string;
  /** undefined: it did not exist */
  readonly before?: unknown;
  /** undefined: it was removed */
  readonly after?: unknown;
  readonly effect: Effect;
  /** how this change or the next one goes in place, or what is not updated until then; absent: nothing to say */
  readonly advice?: string;
}

type Json = Readonly<Record<string, unknown>>;

const EFFECTS: Readonly<Record<string, Effect>> = {
  selector: "selection",
  namespaceSelector: "selection",
  updateStrategy: "rollout",
  injectionStrategy: "newPods",
  volumes: "newPods",
  imagePullSecrets: "newPods",
  patchPodMetadata: "nextUpdate",
  customVersion: "none",
  revisionHistoryLimit: "none",
};

/** Changes of these fields are listed member by member. */
const SPREAD: ReadonlySet<string> = new Set(["updateStrategy", "injectionStrategy"]);

/** Gates that let more than images change in place. */
interface InPlace {
  readonly NativeSidecarInPlaceUpdate: boolean;
  /** the gate InPlaceResize is on, and the API server serves it */
  readonly canResize: boolean;
}

/** The changes sorted by path. Both SidecarSets with defaults, as stored. */
export function specChanges(before: SidecarSet, after: SidecarSet, inPlace: InPlace): readonly SpecChange[] {
  const changes = allChanges(before, after);
  const natives = new Set(nativeSidecars(before).map(({ name }) => `spec.initContainers{${name}}.image`));
  const isResized = resizedIn(after);
  // A resize happens in place only while no other change needs a new pod.
  const isOnlyResized = changes.every((one) => one.effect !== "recreate" || isResized(one));
  const areValues = valueChanges(before, after);
  const isInPlace = (one: SpecChange) =>
    one.effect === "inPlace" ||
    areValues.has(one.path) ||
    (inPlace.NativeSidecarInPlaceUpdate && natives.has(one.path)) ||
    (inPlace.canResize && isOnlyResized && isResized(one));
  const moved = isHeld(after) ? "newPods" : "inPlace";
  return changes.map((one) => {
    if (isInPlace(one)) return { ...one, effect: moved };
    if (isOnlyResized && isResized(one)) return { ...one, advice: BY_GATE };
    return argumentPaths(after).has(one.path) && hasNewLiteral(one) ? { ...one, advice: AS_VARIABLE } : one;
  });
}

/** True if passes write to no running pod. */
export const isHeld = ({ spec }: SidecarSet) => spec.updateStrategy?.type === "NotUpdate";

const AS_VARIABLE = "put what changes into a variable, and write $(NAME) here: its next change goes in place";
const BY_GATE = "with the feature gate InPlaceResize, and Kubernetes 1.33 or newer, this goes in place";
const NEW_FORM = "nothing restarts, but running pods get no new image and no new value until they are recreated";

/** Recognizes changed cpu and memory that a resize can bring to running pods. */
function resizedIn({ spec }: SidecarSet): (change: SpecChange) => boolean {
  const cold = (spec.containers ?? []).filter((sidecar) => !isHotUpgrade(sidecar));
  const paths = new Set(cold.map(({ name }) => `spec.containers{${name}}.resources`));
  return ({ path, before, after }) => paths.has(path) && isStillThere(before, after as Resources | undefined);
}

/** True if the list has a word that it had not, and that neither names a variable nor is an option before one. */
function hasNewLiteral({ before, after }: SpecChange): boolean {
  const [old, young] = [before, after].map((list) => (Array.isArray(list) ? list.map(String) : []));
  const isVariable = (word = "") => word.includes("$(");
  const isLiteral = (word: string, next?: string) =>
    !isVariable(word) && !old?.includes(word) && !(word.startsWith("-") && isVariable(next));
  return young?.some((word, index) => isLiteral(word, young[index + 1])) === true;
}

/** Paths of commands and arguments that follow variables whose values change in place. */
function argumentPaths(sidecarSet: SidecarSet): ReadonlySet<string> {
  const containers = hasValuesInPlace(sidecarSet) ? (sidecarSet.spec.containers ?? []) : [];
  const cold = containers.filter((sidecar) => !isHotUpgrade(sidecar));
  return new Set(cold.flatMap(({ name }) => ["command", "args"].map((field) => `spec.containers{${name}}.${field}`)));
}

/**
 * Paths of variables that are injected in the same form before and after: only their values differ, which are
 * annotations of the pod.
 */
function valueChanges(before: SidecarSet, after: SidecarSet): ReadonlySet<string> {
  const envOf = (sidecarSet: SidecarSet) =>
    new Map(
      (withValuesInPlace(sidecarSet).spec.containers ?? []).map(({ name, env }) => [name, sortedGoJson(env ?? null)]),
    );
  const [old, young] = [envOf(before), envOf(after)];
  return new Set([...young].flatMap(([name, env]) => (old.get(name) === env ? [`spec.containers{${name}}.env`] : [])));
}

/** Running pods have their variables in the other form: they get no new image until they are recreated. */
function formChange(before: SidecarSet, after: SidecarSet): readonly SpecChange[] {
  const [old, young] = [before, after].map(hasValuesInPlace);
  const hasValues = [before, after].some((one) => (valuesInPlace(one)?.keysOf.size ?? 0) > 0);
  if (old === young || !hasValues) return [];
  const wordOf = ({ metadata }: SidecarSet) => metadata?.annotations?.[IN_PLACE_ANNOTATION];
  const path = `metadata.annotations{${IN_PLACE_ANNOTATION}}`;
  return [{ path, before: wordOf(before), after: wordOf(after), effect: "recreate", advice: NEW_FORM }];
}

function allChanges(before: SidecarSet, after: SidecarSet): readonly SpecChange[] {
  const isInitHashed = [before, after].some(({ spec }) => spec.initContainers?.some(isNative));
  const { containers: _c, initContainers: _i, ...restBefore } = before.spec;
  const { containers: _d, initContainers: _j, ...restAfter } = after.spec;
  return [
    ...containerChanges("spec.containers", before.spec.containers, after.spec.containers, "recreate"),
    ...containerChanges(
      "spec.initContainers",
      before.spec.initContainers,
      after.spec.initContainers,
      isInitHashed ? "recreate" : "newPods",
    ),
    ...memberChanges("spec", restBefore, restAfter).flatMap(spread),
    ...formChange(before, after),
  ].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

function containerChanges(
  path: string,
  before: readonly SidecarContainer[] = [],
  after: readonly SidecarContainer[] = [],
  effect: Effect,
): readonly SpecChange[] {
  const [old, young] = [byName(before), byName(after)];
  const names = [...new Set([...old.keys(), ...young.keys()])];
  const changes = names.flatMap((name) => containerChange(`${path}{${name}}`, old.get(name), young.get(name), effect));
  const isReordered = changes.length === 0 && [...old.keys()].join() !== [...young.keys()].join();
  return isReordered ? [{ path, before: [...old.keys()], after: [...young.keys()], effect }] : changes;
}

function byName(containers: readonly SidecarContainer[]): ReadonlyMap<string, SidecarContainer> {
  return new Map(containers.map((container) => [container.name, container]));
}

function containerChange(
  path: string,
  before: SidecarContainer | undefined,
  after: SidecarContainer | undefined,
  effect: Effect,
): readonly SpecChange[] {
  if (!before || !after) return [{ path, before, after, effect }];
  return memberChanges(path, { ...before }, { ...after }).map((change) => {
    const isImage = change.path === `${path}.image` && effect === "recreate" && path.startsWith("spec.containers");
    return { ...change, effect: isImage ? "inPlace" : effect };
  });
}

/** Lists changed members; each has the effect of the top-level field. */
function memberChanges(path: string, before: Json, after: Json): readonly SpecChange[] {
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return fields
    .filter((field) => sortedGoJson(before[field] ?? null) !== sortedGoJson(after[field] ?? null))
    .map((field) => {
      const effect = EFFECTS[field] ?? "recreate";
      return { path: `${path}.${field}`, before: before[field], after: after[field], effect };
    });
}

function spread(change: SpecChange): readonly SpecChange[] {
  if (!SPREAD.has(change.path.slice("spec.".length))) return [change];
  const { path, before = {}, after = {}, effect } = change;
  return memberChanges(path, before as Json, after as Json).map((member) => ({ ...member, effect }));
}
