/**
 * Builds the pod that should result from its SidecarSets. The rules are written here again, after OpenKruise's
 * documentation.
 */
import type { Container, EnvVar, Pod, PodSpec } from "../../../shared/api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  POD_READY_CONDITION,
  SIDECARSET_GROUP,
  SIDECARSET_VERSION_ALT_ENV,
  SIDECARSET_VERSION_ENV,
  VERSION_ALT_ANNOTATION_PREFIX,
  VERSION_ANNOTATION_PREFIX,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../../shared/api/names.ts";
import type { SidecarContainer, SidecarSet } from "../../../shared/api/sidecarset.ts";
import { expectedContainer } from "./expected-container.ts";

type Annotations = Record<string, string>;
/** The text that replaces every time of an injection. */
export const SOME_TIME = "some time";

interface Placed {
  readonly container: Container;
  readonly isBefore: boolean;
}

/** Adds the readiness gate to a pod of an OpenKruise workload, or to every pod if `isForAll`. */
export function gated(pod: Pod, isForAll: boolean): Pod {
  const controller = pod.metadata?.ownerReferences?.find((owner) => owner.controller === true);
  const spec = pod.spec as PodSpec & { readonly readinessGates?: readonly { readonly conditionType: string }[] };
  const gates = spec.readinessGates ?? [];
  const isOwned = controller?.apiVersion?.startsWith(`${SIDECARSET_GROUP}/`) === true;
  if ((!isOwned && !isForAll) || gates.some((gate) => gate.conditionType === POD_READY_CONDITION)) return pod;
  return { ...pod, spec: { ...spec, readinessGates: [...gates, { conditionType: POD_READY_CONDITION }] } as PodSpec };
}

/** Returns the expected pod; undefined: the pod is refused. `sets`: in the order of injection. */
export function expectedPod(pod: Pod, sets: readonly SidecarSet[], isSorted: boolean): Pod | undefined {
  if (sets.length === 0) return pod;
  const annotations = patchedAnnotations(pod.metadata?.annotations, sets);
  const patched = annotations && { ...pod, metadata: { ...pod.metadata, annotations } };
  if (!patched || !isReadable(annotations)) return undefined;
  const same = { annotations: pod.metadata?.annotations };
  const isAsItWas = Object.keys(annotations).length === Object.keys(same.annotations ?? {}).length;
  if (sets.every(({ spec }) => !spec.containers?.length && !spec.initContainers?.length))
    return isAsItWas && JSON.stringify(annotations) === JSON.stringify(same.annotations ?? {}) ? pod : patched;
  recordHot(annotations, sets);
  record(annotations, sets);
  return { ...patched, spec: expectedSpec(patched, sets, isSorted) };
}

function isReadable(annotations: Annotations): boolean {
  return [HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION].every((key) => asObject(annotations[key]) !== undefined);
}

/** Parses an object; {} without text, undefined if the text is no object. */
function asObject(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (!text) return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function patchedAnnotations(before: Readonly<Annotations> = {}, sets: readonly SidecarSet[]): Annotations | undefined {
  const after: Annotations = { ...before };
  const patches = sets.flatMap(({ spec }) => spec.patchPodMetadata ?? []);
  for (const { annotations = {}, patchPolicy } of patches)
    for (const [key, value] of Object.entries(annotations)) {
      const text = patchedText(after[key], value, patchPolicy);
      if (text === undefined) return undefined;
      after[key] = text;
    }
  return after;
}

function patchedText(before: string | undefined, value: string, policy = "Retain"): string | undefined {
  if (policy === "Overwrite") return value;
  if (policy === "Retain") return before ?? value;
  if (!before) return value;
  const document = asObject(before);
  return document && JSON.stringify({ ...document, ...asObject(value) });
}

const isNative = ({ restartPolicy }: SidecarContainer) => restartPolicy === "Always";
const isHot = ({ upgradeStrategy }: SidecarContainer) => upgradeStrategy?.upgradeType === "HotUpgrade";

function hotOf({ spec }: SidecarSet): readonly SidecarContainer[] {
  return [...(spec.initContainers ?? []).filter(isNative), ...(spec.containers ?? [])].filter(isHot);
}

function recordHot(annotations: Annotations, sets: readonly SidecarSet[]): void {
  const working: Annotations = {};
  for (const { name } of sets.flatMap(hotOf)) {
    working[name] = `${name}-1`;
    annotations[`${VERSION_ANNOTATION_PREFIX}${name}-1`] = "1";
    annotations[`${VERSION_ALT_ANNOTATION_PREFIX}${name}-1`] = "0";
    annotations[`${VERSION_ANNOTATION_PREFIX}${name}-2`] = "0";
    annotations[`${VERSION_ALT_ANNOTATION_PREFIX}${name}-2`] = "1";
  }
  if (Object.keys(working).length === 0) return;
  annotations[WORKING_HOT_UPGRADE_ANNOTATION] = sorted({
    ...asObject(annotations[WORKING_HOT_UPGRADE_ANNOTATION]),
    ...working,
  });
}

const sorted = (members: Readonly<Record<string, unknown>>) =>
  JSON.stringify(Object.fromEntries(Object.entries(members).sort(([one], [other]) => (one < other ? -1 : 1))));

function record(annotations: Annotations, sets: readonly SidecarSet[]): void {
  const bringing = sets.filter(({ spec }) => spec.containers?.length || spec.initContainers?.length);
  const records = (key: string, more: (set: SidecarSet) => object) => {
    const own = bringing.map((set) => [set.metadata?.name ?? "", { ...recordOf(set, key), ...more(set) }]);
    annotations[key] = sorted({ ...asObject(annotations[key]), ...Object.fromEntries(own) });
  };
  records(HASH_ANNOTATION, ({ status }) =>
    status?.latestRevision ? { controllerRevision: status.latestRevision } : {},
  );
  records(HASH_WITHOUT_IMAGE_ANNOTATION, () => ({}));
  const before = annotations[INJECTED_LIST_ANNOTATION]?.split(",").filter((name) => name !== "") ?? [];
  const names = new Set([...before, ...sets.map(({ metadata }) => metadata?.name ?? "")]);
  annotations[INJECTED_LIST_ANNOTATION] = [...names].sort().join(",");
}

function recordOf({ metadata, spec }: SidecarSet, key: string): object {
  const lasting = [...(spec.containers ?? []), ...(spec.initContainers ?? []).filter(isNative)];
  return {
    updateTimestamp: SOME_TIME,
    hash: metadata?.annotations?.[key] ?? "",
    sidecarSetName: metadata?.name,
    sidecarList: [...new Set(lasting.map(({ name }) => name))].sort(),
  };
}

function expectedSpec(pod: Pod, sets: readonly SidecarSet[], isSorted: boolean): PodSpec {
  const placed = (list: "initContainers" | "containers") =>
    sets.flatMap((set) => (set.spec[list] ?? []).flatMap((one) => placedOf(one, { list, pod, sets })));
  const byName = (all: readonly Placed[]) =>
    all.toSorted(({ container: one }, { container: other }) => (one.name < other.name ? -1 : 1));
  const [inits, plain] = [byName(placed("initContainers")), placed("containers")];
  const { initContainers = [], containers, volumes = [], imagePullSecrets = [] } = pod.spec;
  const mounted = sets.flatMap(mountedVolumes);
  const secrets = sets.flatMap(({ spec }) => spec.imagePullSecrets ?? []);
  return {
    ...pod.spec,
    ...(inits.length > 0 ? { initContainers: around(initContainers, inits) } : {}),
    containers: around(containers, isSorted ? byName(plain) : plain),
    ...(mounted.length > 0 ? { volumes: [...volumes, ...onlyNew(mounted, volumes)] } : {}),
    ...(secrets.length + imagePullSecrets.length > 0
      ? { imagePullSecrets: onlyNew([...imagePullSecrets, ...secrets], []) }
      : {}),
  };
}

/** Keeps the first item of each name, and leaves out taken names. */
function onlyNew<T extends { readonly name?: string }>(all: readonly T[], taken: readonly T[]): readonly T[] {
  const isFirst = (one: T, at: number) => all.findIndex(({ name }) => name === one.name) === at;
  return all.filter((one, at) => isFirst(one, at) && !taken.some(({ name }) => name === one.name));
}

/** Places injected containers around the pod's own. An own container with an injected name is left out. */
function around(own: readonly Container[], injected: readonly Placed[]): readonly Container[] {
  const isReplacing = ({ container }: Placed) => own.some(({ name }) => name === container.name);
  const more = injected.filter((one) => !isReplacing(one));
  const kept = own.map((one) => injected.find(({ container }) => container.name === one.name)?.container ?? one);
  const part = (isBefore: boolean) => more.filter((one) => one.isBefore === isBefore).map(({ container }) => container);
  return [...part(true), ...kept, ...part(false)];
}

function mountedVolumes({ spec }: SidecarSet) {
  const sidecars = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  const mounts = sidecars.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name));
  return mounts.flatMap((mount) => (spec.volumes ?? []).filter(({ name }) => name === mount));
}

interface Injecting {
  readonly list: "initContainers" | "containers";
  readonly pod: Pod;
  readonly sets: readonly SidecarSet[];
}

function placedOf(sidecar: SidecarContainer, { list, pod, sets }: Injecting): readonly Placed[] {
  const isBefore = sidecar.podInjectPolicy === "BeforeAppContainer";
  const container = expectedContainer(sidecar, pod, sets);
  if (!isHot(sidecar) || (list === "initContainers" && !isNative(sidecar))) return [{ container, isBefore }];
  const empty = sidecar.upgradeStrategy?.hotUpgradeEmptyImage ?? "";
  return [slot(container, 1, container.image ?? ""), slot(container, 2, empty)].map((one) => ({
    container: one,
    isBefore,
  }));
}

function slot(container: Container, place: 1 | 2, image: string): Container {
  const name = `${container.name}-${place}`;
  const from = (annotation: string) => ({ fieldRef: { fieldPath: `metadata.annotations['${annotation}${name}']` } });
  const versions: readonly EnvVar[] = [
    { name: SIDECARSET_VERSION_ENV, valueFrom: from(VERSION_ANNOTATION_PREFIX) },
    { name: SIDECARSET_VERSION_ALT_ENV, valueFrom: from(VERSION_ALT_ANNOTATION_PREFIX) },
  ];
  return { ...container, name, image, env: [...(container.env ?? []), ...versions] };
}
