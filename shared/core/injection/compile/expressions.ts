/** The CEL expressions for a SidecarSet's containers, with the parts that they copy from the pod. */
import type { Container, EnvVar } from "../../../api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../../api/names.ts";
import type { PatchPodMetadata, SidecarContainer, SidecarSet, TransferEnvVar } from "../../../api/sidecarset.ts";
import { celLiteral, celMap, celText, celTexts } from "../../../go/json/cel-literal.ts";
import { Refusal } from "../../admission/admission.ts";
import { isHotUpgradeIn } from "../../pod/sidecar-containers.ts";
import { hotUpgradeAnnotations, hotUpgradePair } from "../hot-upgrade.ts";
import { injectContainer } from "../inject-container.ts";
import { recordInjection } from "../record-injection.ts";
import { envNamesOf, referencedKey } from "../share-with-app.ts";

/** A variable of the policy, for other expressions `variables.NAME`. */
export interface Variable {
  readonly name: string;
  readonly expression: string;
}

export interface CompiledContainer {
  readonly name: string;
  readonly isBeforeApps: boolean;
  /** name of the variable that holds it */
  readonly variable: string;
}

export interface CompiledContainers {
  readonly variables: readonly Variable[];
  readonly containers: readonly CompiledContainer[];
}

export type ListName = "initContainers" | "containers";

/**
 * CEL that copies a part of the pod field by field. In Kubernetes 1.37 the part itself is a Go structure, which cannot
 * become JSON, and the request would fail.
 */
export function copyOf(part: string, shape: Shape): string {
  const fields = Object.entries(shape).map(([field, inner]) => {
    const value = `${part}.?${field}`;
    return `?"${field}": ${inner === true ? value : `${value}.optMap(${inner.as}, ${copyOf(inner.as, inner.of)})`}`;
  });
  return `dyn({${fields.join(", ")}})`;
}

interface Shape {
  readonly [field: string]: true | { readonly as: string; readonly of: Shape };
}

const MOUNT: Shape = {
  ...{ name: true, mountPath: true, readOnly: true, recursiveReadOnly: true, subPath: true, subPathExpr: true },
  mountPropagation: true,
};
const DEVICE: Shape = { name: true, devicePath: true };
const KEY: Shape = { name: true, key: true, optional: true };
const ENV: Shape = {
  name: true,
  value: true,
  valueFrom: {
    as: "f",
    of: {
      fieldRef: { as: "r", of: { apiVersion: true, fieldPath: true } },
      resourceFieldRef: { as: "r", of: { containerName: true, resource: true, divisor: true } },
      configMapKeyRef: { as: "r", of: KEY },
      secretKeyRef: { as: "r", of: KEY },
      fileKeyRef: { as: "r", of: { volumeName: true, path: true, key: true, optional: true } },
    },
  },
};

/** Containers of the pod that no SidecarSet injected, and their mounts. */
export const POD_VARIABLES: readonly Variable[] = [
  {
    name: "apps",
    expression: `object.spec.containers.filter(c, c.?env.orValue([]).filter(e, e.name == "IS_INJECTED")[?0].?value.orValue("") != "true")`,
  },
  {
    name: "appMounts",
    expression: `variables.apps.map(c, c.?volumeMounts.orValue([]).map(m, ${copyOf("m", MOUNT)})).flatten()`,
  },
  {
    name: "appDevices",
    expression: `variables.apps.map(c, c.?volumeDevices.orValue([]).map(d, ${copyOf("d", DEVICE)})).flatten()`,
  },
  {
    name: "pathEnv",
    expression: `variables.apps.map(c, c.?volumeMounts.orValue([]).map(m, m.?subPathExpr.orValue("").findAll("\\\\$\\\\([-._a-zA-Z][-._a-zA-Z0-9]*\\\\)").map(v, c.?env.orValue([]).filter(e, "$(" + e.name + ")" == v).transformList(i, e, i == 0, e)))).flatten(3)`,
  },
];

/** The first item for each value of a field, except items that `isFree` rules out. */
function firsts(list: string, field: string, isFree: string): string {
  const index = `${list}.map(y, y.${field}).indexOf(x.${field})`;
  return `${list}.transformList(i, x, ${isFree} && ${index} == i, x)`;
}

/**
 * The fields that only a sidecar has, without their effect on its container. The compiler asks for a new field here:
 * compile its effect below, or report it in not-expressible.ts, as `resourcesPolicy` is.
 */
type OwnField = Exclude<keyof SidecarContainer, keyof Container | "resourcesPolicy">;
const WITHOUT_EFFECT: Required<Pick<SidecarContainer, OwnField>> = {
  ...{ podInjectPolicy: "", upgradeStrategy: {}, shareVolumePolicy: {}, shareVolumeDevicePolicy: {} },
  transferEnv: [],
};

function plain({ resourcesPolicy, ...sidecar }: SidecarContainer): Container | Refusal {
  const { resources: _resources, ...unlimited } = sidecar;
  const own = { ...(resourcesPolicy ? unlimited : sidecar), ...WITHOUT_EFFECT };
  return injectContainer(own, { pod: { spec: { containers: [] } }, sidecarSets: [] });
}

/** The two containers of a hot upgrade have other last fields. */
function envExpression(env: readonly EnvVar[], taken: string | undefined, length: number): string {
  if (taken === undefined) return celLiteral(env);
  const names = celTexts(env.slice(0, length).map(({ name }) => name));
  const rest = env.length > length ? ` + ${celLiteral(env.slice(length))}` : "";
  return `${celLiteral(env.slice(0, length))} + ${firsts(`variables.${taken}`, "name", `!(x.name in ${names})`)}${rest}`;
}

interface Sharing {
  readonly variables: readonly Variable[];
  /** fields of the container → CEL */
  readonly fields: Readonly<Record<string, string>>;
}

function sharedMounts(sidecar: SidecarContainer, id: string): Sharing {
  if (sidecar.shareVolumePolicy?.type !== "enabled") return { variables: [], fields: {} };
  const own = sidecar.volumeMounts ?? [];
  const used = [...own.map(({ mountPath }) => mountPath), ...devicePaths(sidecar)];
  const shared = firsts("variables.appMounts", "mountPath", `!(x.mountPath in ${celTexts(used)})`);
  const name = `${id}Mounts`;
  return {
    variables: [{ name, expression: `${celLiteral(own)} + ${shared}` }],
    fields: { volumeMounts: `variables.${name}` },
  };
}

function devicePaths({ volumeDevices = [] }: SidecarContainer): readonly string[] {
  return volumeDevices.map(({ devicePath }) => devicePath);
}

function sharedDevices(sidecar: SidecarContainer, mounts: string | undefined): Sharing {
  if (sidecar.shareVolumeDevicePolicy?.type !== "enabled") return { variables: [], fields: {} };
  const own = sidecar.volumeMounts?.map(({ mountPath }) => mountPath) ?? [];
  const isMounted = mounts === undefined ? "" : ` && !${mounts}.exists(m, m.mountPath == x.devicePath)`;
  const isFree = `!(x.devicePath in ${celTexts([...devicePaths(sidecar), ...own])})${isMounted}`;
  const devices = firsts("variables.appDevices", "devicePath", isFree);
  return { variables: [], fields: { volumeDevices: `${celLiteral(sidecar.volumeDevices ?? [])} + ${devices}` } };
}

function takenEnv(sidecar: SidecarContainer, id: string, annotations: AnnotationExpressions): readonly Variable[] {
  const isSharing = sidecar.shareVolumePolicy?.type === "enabled";
  const taken = [...transferExpressions(sidecar, annotations), ...(isSharing ? ["variables.pathEnv"] : [])];
  if (taken.length === 0) return [];
  return [{ name: `${id}Env`, expression: `[${taken.join(", ")}].flatten().map(e, ${copyOf("e", ENV)})` }];
}

/** `annotations`: the pod's annotations after its metadata is patched. `id`: prefix of the variables' names. */
export function compileContainer(
  sidecar: SidecarContainer,
  list: ListName,
  { id, annotations }: { readonly id: string; readonly annotations: AnnotationExpressions },
): CompiledContainers {
  const container = plain(sidecar);
  if (container instanceof Refusal) throw new Error(container.message);
  const length = container.env?.length ?? 0;
  const [taken] = [takenEnv(sidecar, id, annotations)];
  const mounts = sharedMounts(sidecar, id);
  const devices = sharedDevices(sidecar, mounts.fields["volumeMounts"]);
  const all = isHotUpgradeIn(sidecar, list) ? hotUpgradePair(container, sidecar) : [container];
  const compiled = all.map((one, index) => {
    const { env = [], ...fields } = one;
    const literals = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
    const expression = celMap({
      ...Object.fromEntries(literals.map(([key, value]) => [key, celLiteral(value)])),
      env: envExpression(env, taken[0]?.name, length),
      ...mounts.fields,
      ...devices.fields,
    });
    return { name: one.name, variable: { name: `${id}${"ab".charAt(index)}`, expression } };
  });
  return {
    variables: [...taken, ...mounts.variables, ...devices.variables, ...compiled.map(({ variable }) => variable)],
    containers: compiled.map(({ name, variable }) => ({
      name,
      isBeforeApps: sidecar.podInjectPolicy === "BeforeAppContainer",
      variable: variable.name,
    })),
  };
}

// Tells which expressions give the environment variables that a sidecar takes over from the pod's containers.

/** CEL of the container's name; undefined: the entry is skipped. */
function sourceOf(
  { sourceContainerName, sourceContainerNameFrom }: TransferEnvVar,
  annotations: AnnotationExpressions,
) {
  const fieldRef = sourceContainerNameFrom?.fieldRef;
  if (!fieldRef) return celText(sourceContainerName ?? "");
  const { of, key } = referencedKey(fieldRef) ?? {};
  if (key === undefined) return undefined;
  if (of === "labels") return `object.metadata.?labels[?${celText(key)}].orValue("")`;
  return annotations.get(key) ?? annotation(key);
}

/** Lists that hold the variable or, where the source does not have it, nothing; the last of a name counts. */
function transferExpressions(
  { transferEnv = [] }: SidecarContainer,
  annotations: AnnotationExpressions,
): readonly string[] {
  return transferEnv.flatMap((transfer) => {
    const source = sourceOf(transfer, annotations);
    if (source === undefined) return [];
    const env = `object.spec.containers.filter(c, c.name == ${source}).map(c, c.?env.orValue([])).flatten()`;
    return envNamesOf(transfer).map(
      (name) => `${env}.filter(e, e.name == ${celText(name)}).reverse().transformList(i, e, i == 0, e)`,
    );
  });
}

// The expressions of the annotations of an injected pod.

/** Key → CEL of the value. */
export type AnnotationExpressions = ReadonlyMap<string, string>;

/** A member of the JSON that an annotation holds, as it is always written: names need no escapes, records hold no braces. */
const RECORD = `"[^"]+":\\{[^{}]*\\}`;
const TEXT = `"[^"]+":"[^"]*"`;

/** The forms of these annotations that the policy can read on a pod. */
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

/** The pod's annotations before the injection; an unknown policy patches nothing. */
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

/** Returns the annotations that say which of each pair of hot-upgrade containers works. */
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
