/** Decides which variables of a SidecarSet's containers read their values from annotations of the pod, so that the values change in place. */
import { hash } from "node:crypto";
import type { ContainerStatus, EnvVar, Pod } from "../../api/kubernetes.ts";
import {
  IN_PLACE_ANNOTATION,
  IN_PLACE_VALUES,
  VALUE_ANNOTATION_SUFFIX,
  VALUES_ANNOTATION_PREFIX,
} from "../../api/names.ts";
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../api/sidecarset.ts";
import { isJsonObject, jsonObjectOf } from "../../go/json/json-object.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import { isHotUpgrade } from "./sidecar-containers.ts";

type Texts = Readonly<Record<string, string>>;

interface ValuesInPlace {
  /** as the webhook injects it: with references, and the values as a patch of the pod's annotations */
  readonly spec: SidecarSetSpec;
  /** of the pod, by key */
  readonly values: Texts;
  /** container → its keys */
  readonly keysOf: ReadonlyMap<string, readonly string[]>;
  readonly digest: string;
}

/** What the pod's record says of one SidecarSet. */
export interface ValuesRecord {
  readonly digest: string;
  /** container → what ran when its last restart was written; none: it runs since it was injected */
  readonly before: Readonly<Record<string, RanBefore>>;
}

export interface RanBefore {
  /** "": nothing did */
  readonly id: string;
  /** as its image was written when it started */
  readonly image: string;
  /** RFC3339: when the restart was written */
  readonly since: string;
}

/** A legal name of an annotation, without its prefix. */
const LEGAL = /^[A-Za-z0-9](?:[-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$/;
const READABLE_LETTERS = 50;
/** Controllers read these variables from the pod's spec. */
const READ_IN_SPEC = /^(?:KRUISE_|SIDECARSET_VERSION|IS_INJECTED$)/;

export function hasValuesInPlace({ metadata }: Pick<SidecarSet, "metadata">): boolean {
  return metadata?.annotations?.[IN_PLACE_ANNOTATION]?.trim() === IN_PLACE_VALUES;
}

const known = new WeakMap<SidecarSetSpec, { readonly name: string; readonly values: ValuesInPlace }>();

/** Undefined where the SidecarSet does not ask for it. */
export function valuesInPlace(sidecarSet: SidecarSet): ValuesInPlace | undefined {
  if (!hasValuesInPlace(sidecarSet)) return undefined;
  const { metadata: { name = "" } = {}, spec } = sidecarSet;
  const before = known.get(spec);
  if (before?.name === name) return before.values;
  const values = valuesOf(name, spec);
  known.set(spec, { name, values });
  return values;
}

const injected = new WeakMap<SidecarSet, SidecarSet>();

/** The SidecarSet as it is injected: the same object where it does not ask for values in place. */
export function withValuesInPlace(sidecarSet: SidecarSet): SidecarSet {
  const before = injected.get(sidecarSet);
  if (before) return before;
  const spec = valuesInPlace(sidecarSet)?.spec;
  const after = spec ? { ...sidecarSet, spec } : sidecarSet;
  injected.set(sidecarSet, after);
  return after;
}

function valuesOf(name: string, spec: SidecarSetSpec): ValuesInPlace {
  const values: Record<string, string> = {};
  const keysOf = new Map<string, readonly string[]>();
  const containers = spec.containers?.map((sidecar) => {
    const own = isHotUpgrade(sidecar) ? new Map<string, string>() : literals(name, sidecar);
    if (own.size === 0) return sidecar;
    keysOf.set(sidecar.name, [...own.keys()]);
    Object.assign(values, Object.fromEntries(own));
    return {
      ...sidecar,
      env: (sidecar.env ?? []).map((one) => reference(one, keyOf(name, sidecar.name, one.name), own)),
    };
  });
  const digest = digestOf(values);
  const annotations = { ...values, [recordKey(name)]: JSON.stringify({ digest }) };
  const patches = [...(spec.patchPodMetadata ?? []), { annotations, patchPolicy: "Overwrite" as const }];
  const changed = { ...(containers ? { containers } : {}), patchPodMetadata: patches };
  return { spec: { ...spec, ...changed }, values, keysOf, digest };
}

/** Key → value, of the variables that may be read from an annotation. */
function literals(sidecarSet: string, { name: container, env = [] }: SidecarContainer): ReadonlyMap<string, string> {
  const counts = Map.groupBy(env, ({ name }) => name);
  return new Map(
    env.flatMap(({ name, value = "", valueFrom }) => {
      const text = valueFrom || READ_IN_SPEC.test(name) || counts.get(name)?.length !== 1 ? undefined : expanded(value);
      return text === undefined ? [] : [[keyOf(sidecarSet, container, name), text] as const];
    }),
  );
}

/** As kubelets expand a literal: `$$` is `$`. Undefined: it names another variable, and only a literal is expanded. */
function expanded(value: string): string | undefined {
  return value.replaceAll("$$", "").includes("$(") ? undefined : value.replaceAll("$$", () => "$");
}

function reference(variable: EnvVar, key: string, own: ReadonlyMap<string, string>): EnvVar {
  if (!own.has(key)) return variable;
  return { name: variable.name, valueFrom: { fieldRef: { fieldPath: `metadata.annotations['${key}']` } } };
}

/** Such as `log-agent.value.sidecarset.kruise.io/fluent-bit.LEVEL`; a name that is too long, or not legal there, ends with a digest. */
function keyOf(sidecarSet: string, container: string, variable: string): string {
  const text = `${container}.${variable}`;
  const readable = text.replace(/[^-._A-Za-z0-9]/g, "_").slice(0, READABLE_LETTERS);
  const name = LEGAL.test(text) ? text : `${readable}-${hash("sha256", text).slice(0, 12)}`;
  return `${sidecarSet}${VALUE_ANNOTATION_SUFFIX}/${name}`;
}

function recordKey(sidecarSet: string): string {
  return `${VALUES_ANNOTATION_PREFIX}${sidecarSet}`;
}

function digestOf(values: Texts): string {
  return hash("sha256", JSON.stringify(Object.entries(values).toSorted())).slice(0, 16);
}

/** Bytes of keys and values, as they count against what a pod's annotations may have. */
export function valuesLength({ values }: ValuesInPlace): number {
  return Buffer.byteLength(Object.entries(values).flat().join(""));
}

/** Annotations of pods that passes read for it. */
export function valueKeys(sidecarSet: SidecarSet): readonly string[] {
  const values = valuesInPlace(sidecarSet)?.values;
  return values ? [...Object.keys(values), recordKey(sidecarSet.metadata?.name ?? "")] : [];
}

/** The values on the pod are the SidecarSet's. `container`: of that one alone. */
export function hasValuesOf({ metadata }: Pod, sidecarSet: SidecarSet, container?: string): boolean {
  const wanted = valuesInPlace(sidecarSet);
  if (wanted === undefined) return true;
  const keys = container === undefined ? Object.keys(wanted.values) : (wanted.keysOf.get(container) ?? []);
  return keys.every((key) => metadata?.annotations?.[key] === wanted.values[key]);
}

/** Other values than its record says, whichever release it has. Somebody else wrote them. */
export function hasForeignValues(pod: Pod, sidecarSet: SidecarSet): boolean {
  const wanted = valuesInPlace(sidecarSet)?.values;
  const digest = wanted && valuesRecord(pod, sidecarSet.metadata?.name ?? "")?.digest;
  if (wanted === undefined || digest === undefined) return false;
  const has = Object.keys(wanted).map((key) => [key, pod.metadata?.annotations?.[key] ?? null] as const);
  return digestOf(Object.fromEntries(has) as Texts) !== digest;
}

/** Undefined: the pod has none, or nobody can read it. */
export function valuesRecord({ metadata }: Pod, sidecarSetName: string): ValuesRecord | undefined {
  const record = jsonObjectOf(metadata?.annotations?.[recordKey(sidecarSetName)]);
  if (typeof record?.["digest"] !== "string") return undefined;
  const { digest, before } = record;
  const entries = Object.entries(isJsonObject(before) ? before : {}).flatMap(([name, ran]) => {
    if (!isJsonObject(ran)) return [];
    const { id, image, since } = ran;
    const isRead = typeof id === "string" && typeof image === "string" && typeof since === "string";
    return isRead ? [[name, { id, image, since }] as const] : [];
  });
  return { digest, before: Object.fromEntries(entries) };
}

/** The record after a write at `now` that restarts `containers`; where it restarts others, what is recorded of these stays. */
export function recordValues(pod: Pod, sidecarSet: SidecarSet, containers: readonly string[], now: string): Texts {
  const digest = valuesInPlace(sidecarSet)?.digest;
  if (digest === undefined) return {};
  const name = sidecarSet.metadata?.name ?? "";
  const earlier = valuesRecord(pod, name);
  const before = {
    ...earlier?.before,
    ...Object.fromEntries(containers.map((one) => [one, { ...ranIn(pod, one, earlier), since: now }])),
  };
  return { [recordKey(name)]: JSON.stringify({ digest, before }) };
}

/** One that has not restarted since the last write runs what it ran before that. */
function ranIn(pod: Pod, container: string, earlier: ValuesRecord | undefined): Omit<RanBefore, "since"> {
  const id = containerIdOf(pod, container);
  const last = earlier?.before[container];
  if (last !== undefined && last.id === id) return last;
  return { id, image: pod.spec.containers.find(({ name }) => name === container)?.image ?? "" };
}

function containerIdOf({ status }: Pod, container: string): string {
  return status?.containerStatuses?.find(({ name }) => name === container)?.containerID ?? "";
}

/** As its image was written when the container started that still runs; undefined: as the spec has it, as far as is known. */
export function runningSpelling(pod: Pod, sidecarSet: SidecarSet, container: string): string | undefined {
  const last = valuesRecord(pod, sidecarSet.metadata?.name ?? "")?.before[container];
  const status = pod.status?.containerStatuses?.find(({ name }) => name === container);
  return last !== undefined && status?.state?.running && last.id === status.containerID ? last.image : undefined;
}

/** Clocks of nodes may be behind by so much. */
const DOUBTED_SECONDS = 60;

/**
 * Whether another container runs than before the write, and started after it. One that says nothing of its start is not
 * ready, so it does not matter. `now`, RFC3339: absent where nobody waits for it.
 */
export function isRestarted({ containerID, state }: ContainerStatus, { id, since }: RanBefore, now?: string): boolean {
  if (containerID === undefined || containerID === id) return false;
  const startedAt = state?.running?.startedAt;
  if (now === undefined || !startedAt || (secondsBetween(since, startedAt) ?? 0) >= 0) return true;
  return (secondsBetween(since, now) ?? 0) >= DOUBTED_SECONDS;
}
