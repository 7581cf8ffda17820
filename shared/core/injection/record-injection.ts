/** The records in a pod's annotations about the injected SidecarSets. */
import type { Pod } from "../../api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, INJECTED_LIST_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { compareUtf8 } from "../../go/json/go-json.ts";
import { withSharedText } from "../../go/shared-text.ts";
import { Refusal } from "../admission/admission.ts";
import { patchPodMetadata } from "../pod/patch-pod-metadata.ts";
import {
  formatUpgradeRecords,
  parseUpgradeRecords,
  type UpgradeRecord,
  type UpgradeRecords,
} from "../pod/pod-records.ts";

// The effect of the SidecarSets' patchPodMetadata on a new pod's annotations.

export type Annotations = Readonly<Record<string, string>>;

/** The annotations with every patch applied, SidecarSet by SidecarSet; the same object when nothing changes. */
export function patchPodAnnotations(
  annotations: Annotations,
  sidecarSets: readonly SidecarSet[],
): Annotations | Refusal {
  if (!sidecarSets.some(({ spec }) => spec.patchPodMetadata?.length)) return annotations;
  const patches = sidecarSets.flatMap(({ spec }) => spec.patchPodMetadata ?? []);
  const patched = patchPodMetadata(annotations, patches);
  if (patched.kind === "refused") return new Refusal(patched.message);
  const isChanged = Object.entries(patched.annotations).some(([key, value]) => annotations[key] !== value);
  return isChanged ? patched.annotations : annotations;
}

/** Containers and native sidecars; the other init containers are gone once the pod runs. */
function sidecarList({ spec }: SidecarSet): readonly string[] {
  const native = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  const names = [...(spec.containers ?? []), ...native].map(({ name }) => name);
  return [...new Set(names)].sort(compareUtf8);
}

/** The existing records of current and earlier SidecarSets. */
export interface ExistingRecords {
  readonly withImage: UpgradeRecords;
  readonly withoutImage: UpgradeRecords;
}

function readRecords({ metadata }: Pod, namespace: string, key: string): UpgradeRecords | Refusal {
  const text = metadata?.annotations?.[key];
  const { records, error } = parseUpgradeRecords(text);
  if (error === undefined) return records;
  const name = `${namespace}/${metadata?.name ?? ""}`;
  return new Refusal(`pod(${name}) invalid annotations[${key}] value ${text}, unmarshal failed: ${error}`);
}

/** Refuses a pod whose annotations cannot be read, because their records would be lost. */
export function existingRecords(pod: Pod, namespace: string): ExistingRecords | Refusal {
  const withImage = readRecords(pod, namespace, HASH_ANNOTATION);
  if (withImage instanceof Refusal) return withImage;
  const withoutImage = readRecords(pod, namespace, HASH_WITHOUT_IMAGE_ANNOTATION);
  return withoutImage instanceof Refusal ? withoutImage : { withImage, withoutImage };
}

function isEmpty(records: UpgradeRecords): boolean {
  for (const _name in records) return false;
  return true;
}

interface Records {
  /** RFC 3339 */
  readonly now: string;
  readonly withImage: UpgradeRecord;
  readonly withoutImage: UpgradeRecord;
}

/** Records of the latest second by SidecarSet: many pods are created within one. */
const latest = new WeakMap<SidecarSet, Records>();

function recordsOf(sidecarSet: SidecarSet, now: string): Records {
  const known = latest.get(sidecarSet);
  if (known?.now === now) return known;
  const record = (hashAnnotation: string): UpgradeRecord => ({
    updateTimestamp: now,
    hash: sidecarSet.metadata?.annotations?.[hashAnnotation] ?? "",
    sidecarSetName: sidecarSet.metadata?.name ?? "",
    sidecarList: sidecarList(sidecarSet),
  });
  const controllerRevision = sidecarSet.status?.latestRevision ?? "";
  const withImage = { ...record(HASH_ANNOTATION), controllerRevision };
  const records = { now, withImage, withoutImage: record(HASH_WITHOUT_IMAGE_ANNOTATION) };
  latest.set(sidecarSet, records);
  return records;
}

function injectedList(existing: string | undefined, sidecarSets: readonly SidecarSet[]): string {
  const before = existing ? existing.split(",") : [];
  const names = new Set([...before, ...sidecarSets.map(({ metadata }) => metadata?.name ?? "")]);
  return [...names].sort(compareUtf8).join(",");
}

/** The three annotations that change. `now` is RFC 3339, UTC, in whole seconds. */
export function recordInjection(
  existing: ExistingRecords,
  list: string | undefined,
  sidecarSets: readonly SidecarSet[],
  now: string,
): Annotations {
  const [only] = sidecarSets;
  const isFirst = !list && isEmpty(existing.withImage) && isEmpty(existing.withoutImage);
  return only !== undefined && sidecarSets.length === 1 && isFirst
    ? firstRecord(only, now)
    : record(existing, list, sidecarSets, now);
}

function record(
  existing: ExistingRecords,
  list: string | undefined,
  sidecarSets: readonly SidecarSet[],
  now: string,
): Annotations {
  // Compat: a SidecarSet without containers has no record; it is only listed.
  const injected = sidecarSets.filter(({ spec }) => spec.initContainers?.length || spec.containers?.length);
  const records = injected.map((sidecarSet) => recordsOf(sidecarSet, now));
  const written = (kind: keyof ExistingRecords): string => {
    const all: Record<string, UpgradeRecord> = Object.assign(Object.create(null), existing[kind]);
    for (const { [kind]: record } of records) all[record.sidecarSetName] = record;
    return formatUpgradeRecords(all);
  };
  return {
    [HASH_ANNOTATION]: written("withImage"),
    [HASH_WITHOUT_IMAGE_ANNOTATION]: written("withoutImage"),
    [INJECTED_LIST_ANNOTATION]: injectedList(list, sidecarSets),
  };
}

/** Annotations for a pod without records. */
const first = new WeakMap<Records, Annotations>();
const NONE: ExistingRecords = { withImage: {}, withoutImage: {} };

function firstRecord(sidecarSet: SidecarSet, now: string): Annotations {
  const records = recordsOf(sidecarSet, now);
  const known = first.get(records);
  if (known !== undefined) return known;
  const annotations = withSharedText(record(NONE, undefined, [sidecarSet], now));
  first.set(records, annotations);
  return annotations;
}
