/**
 * Finds the variables of a SidecarSet's containers that read their values from annotations of the pod, so that the
 * values change in place.
 */
import { hash } from "node:crypto";
import type { EnvVar, Pod } from "../../api/kubernetes.ts";
import {
  IN_PLACE_ANNOTATION,
  IN_PLACE_VALUES,
  VALUE_ANNOTATION_SUFFIX,
  VALUES_ANNOTATION_PREFIX,
} from "../../api/names.ts";
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../api/sidecarset.ts";
import { isHotUpgrade } from "./sidecar-containers.ts";

export type Texts = Readonly<Record<string, string>>;

interface ValuesInPlace {
  /** the injected spec, with references, and with the values as a patch of the pod's annotations */
  readonly spec: SidecarSetSpec;
  /** values of the pod's annotations, by key */
  readonly values: Texts;
  /** keys of values, by container */
  readonly keysOf: ReadonlyMap<string, readonly string[]>;
  readonly digest: string;
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

/** The values; undefined: the SidecarSet does not ask for values in place. */
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

/** The injected SidecarSet: the same object without values in place. */
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

/** Values of the variables that can be read from an annotation, by key. */
function literals(sidecarSet: string, { name: container, env = [] }: SidecarContainer): ReadonlyMap<string, string> {
  const counts = Map.groupBy(env, ({ name }) => name);
  return new Map(
    env.flatMap(({ name, value = "", valueFrom }) => {
      const text = valueFrom || READ_IN_SPEC.test(name) || counts.get(name)?.length !== 1 ? undefined : expanded(value);
      return text === undefined ? [] : [[keyOf(sidecarSet, container, name), text] as const];
    }),
  );
}

/** A literal after the kubelet's expansion: `$$` becomes `$`. Undefined: the literal names another variable. */
function expanded(value: string): string | undefined {
  return value.replaceAll("$$", "").includes("$(") ? undefined : value.replaceAll("$$", () => "$");
}

function reference(variable: EnvVar, key: string, own: ReadonlyMap<string, string>): EnvVar {
  if (!own.has(key)) return variable;
  return { name: variable.name, valueFrom: { fieldRef: { fieldPath: `metadata.annotations['${key}']` } } };
}

/**
 * The key of a value, such as `log-agent.value.sidecarset.kruise.io/fluent-bit.LEVEL`; a name that is too long or not
 * legal ends with a digest.
 */
function keyOf(sidecarSet: string, container: string, variable: string): string {
  const text = `${container}.${variable}`;
  const readable = text.replace(/[^-._A-Za-z0-9]/g, "_").slice(0, READABLE_LETTERS);
  const name = LEGAL.test(text) ? text : `${readable}-${hash("sha256", text).slice(0, 12)}`;
  return `${sidecarSet}${VALUE_ANNOTATION_SUFFIX}/${name}`;
}

export function recordKey(sidecarSet: string): string {
  return `${VALUES_ANNOTATION_PREFIX}${sidecarSet}`;
}

export function digestOf(values: Texts): string {
  return hash("sha256", JSON.stringify(Object.entries(values).toSorted())).slice(0, 16);
}

/** Bytes of keys and values, which count toward the limit of a pod's annotations. */
export function valuesLength({ values }: Pick<ValuesInPlace, "values">): number {
  return textLength(values);
}

export function textLength(texts: Texts): number {
  return Buffer.byteLength(Object.entries(texts).flat().join(""));
}

/** Annotations of pods that passes read for values in place. */
export function valueKeys(sidecarSet: SidecarSet): readonly string[] {
  const values = valuesInPlace(sidecarSet)?.values;
  return values ? [...Object.keys(values), recordKey(sidecarSet.metadata?.name ?? "")] : [];
}

/** True if the values on the pod are the SidecarSet's. `container`: checks only this container. */
export function hasValuesOf({ metadata }: Pod, sidecarSet: SidecarSet, container?: string): boolean {
  const wanted = valuesInPlace(sidecarSet);
  if (wanted === undefined) return true;
  const keys = container === undefined ? Object.keys(wanted.values) : (wanted.keysOf.get(container) ?? []);
  return keys.every((key) => metadata?.annotations?.[key] === wanted.values[key]);
}
