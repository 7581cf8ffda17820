/** Decides what a changed field of a SidecarSet means for the pods that run. */

import { IN_PLACE_ANNOTATION } from "../../../api/names.ts";
import type { SidecarContainer, SidecarSet } from "../../../api/sidecarset.ts";
import { sortedGoJson } from "../../../go/json/go-json.ts";
import { nativeSidecars } from "../../pod/native-sidecars.ts";
import { hasValuesInPlace, valuesInPlace, withValuesInPlace } from "../../pod/values-in-place.ts";
import { isNative } from "../../sidecarset/hash/sidecarset-hash.ts";

/** What comes of a change, in the order of how much trouble it is. */
export type Effect =
  /** pods that run keep what they have for good: only new pods get it */
  | "recreate"
  /** pods that run are updated in place */
  | "inPlace"
  /** other pods are meant */
  | "selection"
  /** when, which and how many pods are updated */
  | "rollout"
  /** new pods get it; pods that run do without, and are not held up by it */
  | "newPods"
  /** new pods get it, and a pod that runs when a pass next writes a release to it: no pod waits for it */
  | "nextUpdate"
  /** records only */
  | "none";

export interface SpecChange {
  /** such as `spec.containers{agent}.env`; containers are named, not counted */
  readonly path: string;
  /** undefined: it was not there */
  readonly before?: unknown;
  /** undefined: it is gone */
  readonly after?: unknown;
  readonly effect: Effect;
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

/** Their members are told one by one. */
const SPREAD: ReadonlySet<string> = new Set(["updateStrategy", "injectionStrategy"]);

/** Which gates let more than images of containers be changed in place. */
interface InPlace {
  readonly NativeSidecarInPlaceUpdate: boolean;
  /** the gate InPlaceResize, and an API server that serves it */
  readonly canResize: boolean;
}

/** Both with defaults, as they are stored. By path. */
export function specChanges(before: SidecarSet, after: SidecarSet, inPlace: InPlace): readonly SpecChange[] {
  const changes = allChanges(before, after);
  const natives = new Set(nativeSidecars(before).map(({ name }) => `spec.initContainers{${name}}.image`));
  const isResources = ({ path }: SpecChange) => /^spec\.containers\{.+\}\.resources$/.test(path);
  // What can be resized goes in place only while nothing else needs a new pod.
  const canResize = inPlace.canResize && changes.every((one) => one.effect !== "recreate" || isResources(one));
  const areValues = valueChanges(before, after);
  const isInPlace = (one: SpecChange) =>
    areValues.has(one.path) ||
    (inPlace.NativeSidecarInPlaceUpdate && natives.has(one.path)) ||
    (canResize && isResources(one));
  return changes.map((one) => (isInPlace(one) ? { ...one, effect: "inPlace" } : one));
}

/** Paths of variables that are injected alike before and after: only their values differ, which are annotations of the pod. */
function valueChanges(before: SidecarSet, after: SidecarSet): ReadonlySet<string> {
  const envOf = (sidecarSet: SidecarSet) =>
    new Map(
      (withValuesInPlace(sidecarSet).spec.containers ?? []).map(({ name, env }) => [name, sortedGoJson(env ?? null)]),
    );
  const [old, young] = [envOf(before), envOf(after)];
  return new Set([...young].flatMap(([name, env]) => (old.get(name) === env ? [`spec.containers{${name}}.env`] : [])));
}

/** Pods that run have their variables in the other form: until they are recreated they get no image either. */
function formChange(before: SidecarSet, after: SidecarSet): readonly SpecChange[] {
  const [old, young] = [before, after].map(hasValuesInPlace);
  const hasValues = [before, after].some((one) => (valuesInPlace(one)?.keysOf.size ?? 0) > 0);
  if (old === young || !hasValues) return [];
  const wordOf = ({ metadata }: SidecarSet) => metadata?.annotations?.[IN_PLACE_ANNOTATION];
  const path = `metadata.annotations{${IN_PLACE_ANNOTATION}}`;
  return [{ path, before: wordOf(before), after: wordOf(after), effect: "recreate" }];
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

/** The effect is that of the top-level field. */
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
