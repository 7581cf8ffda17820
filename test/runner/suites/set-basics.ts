/** Tests single rules of a set: ordinals, names, the pod of an ordinal, revisions, the order of an update. */
import type { ControllerRevision, IntOrString, Labels, Pod } from "../../../shared/api/kubernetes.ts";
import type { RollingUpdateStatefulSet, StatefulSet, StatefulSetSpec } from "../../../shared/api/stateful-set.ts";
import { parsePodName } from "../../../shared/core/pod/workload.ts";
import { isSameRevision } from "../../../shared/core/sidecarset/revision/compare-revisions.ts";
import { revisionText } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { claimsOf, hasClaimVolumes } from "../../../shared/core/statefulset/claims/claims.ts";
import { hasIdentity, newPod } from "../../../shared/core/statefulset/pods/identity.ts";
import { isInRange, ordinalRange } from "../../../shared/core/statefulset/pods/ordinals.ts";
import { withLifecycleState } from "../../../shared/core/statefulset/pods/pod-phase.ts";
import { newSetRevision, restoreTemplate } from "../../../shared/core/statefulset/revisions.ts";
import { updateOrder } from "../../../shared/core/statefulset/rolling-update.ts";
import {
  DEFAULT_STATEFUL_SET_FEATURE_GATES,
  type StatefulSetFeatureGates,
} from "../../../shared/core/statefulset/step.ts";
import { goJson } from "../../../shared/go/json/go-json.ts";
import { parseJson } from "../../../shared/go/json/json-number.ts";
import { listedPod } from "../../support/objects.ts";
import { withoutNoise } from "../clean.ts";
import { compare, type Difference } from "../compare.ts";

export function podNameSuite({ podName }: { readonly podName: string }, expected: unknown): readonly Difference[] {
  return compare(parsePodName(podName), expected);
}

interface OrdinalInput {
  readonly ordinals: { readonly start?: number } | null;
  readonly replicas: number;
  readonly reserveOrdinals: readonly IntOrString[] | null;
  readonly startOrdinalGate: boolean;
}

export function ordinalRangeSuite(input: OrdinalInput, expected: unknown): readonly Difference[] {
  const { ordinals, replicas, reserveOrdinals, startOrdinalGate } = input;
  const spec: StatefulSetSpec = {
    replicas,
    ...(ordinals ? { ordinals } : {}),
    ...(reserveOrdinals ? { reserveOrdinals } : {}),
  };
  const range = ordinalRange(spec, startOrdinalGate);
  const { start, end, reserved } = range;
  const all = Array.from({ length: end }, (_, ordinal) => ordinal);
  const desiredOrdinals = all.filter((ordinal) => isInRange(ordinal, range));
  return compare({ start, end, reserved: [...reserved].sort((a, b) => a - b), desiredOrdinals }, expected);
}

interface IdentityInput {
  readonly set: StatefulSet;
  readonly ordinal: number;
  readonly revision: string;
  readonly now: string;
  readonly featureGates?: Partial<StatefulSetFeatureGates>;
}

/** Sorts claim volumes by name, as the vectors do. The product has them first, in the order of the templates. */
function sortClaimVolumes(pod: Pod): Pod {
  const volumes = (pod.spec.volumes ?? []) as readonly { name: string; persistentVolumeClaim?: object }[];
  const claims = volumes.filter(({ persistentVolumeClaim }) => persistentVolumeClaim);
  const others = volumes.filter(({ persistentVolumeClaim }) => !persistentVolumeClaim);
  const sorted = [...claims.toSorted((a, b) => (a.name < b.name ? -1 : 1)), ...others];
  return volumes.length === 0 ? pod : { ...pod, spec: { ...pod.spec, volumes: sorted } };
}

export function identitySuite(input: IdentityInput, expected: unknown): readonly Difference[] {
  const { set, ordinal, revision, now } = input;
  const {
    kind: _k,
    apiVersion: _v,
    ...pod
  } = withLifecycleState(
    newPod(set, ordinal, revision, { ...DEFAULT_STATEFUL_SET_FEATURE_GATES, ...input.featureGates }),
    "Normal",
    now,
  );
  const claims = claimsOf(set, ordinal).map(({ kind: _kind, apiVersion: _version, ...claim }, index) => [
    set.spec.volumeClaimTemplates?.[index]?.metadata?.name,
    claim,
  ]);
  const actual = {
    pod: sortClaimVolumes(pod),
    claimsByTemplate: Object.fromEntries(claims),
    identityMatches: hasIdentity(set, pod),
    storageMatches: hasClaimVolumes(set, pod),
  };
  return compare(withoutNoise(actual), expected);
}

interface RevisionInput {
  readonly set?: StatefulSet;
  readonly restoreOver?: StatefulSet;
  readonly hashLabels?: readonly string[];
  readonly sameData?: boolean;
}

/** Returns numbers in the form of the vectors, which are read exactly. */
function exact(value: unknown): unknown {
  return parseJson(goJson(value));
}

function labelled(hash: string, data: unknown): ControllerRevision {
  return { metadata: hash === "" ? {} : { labels: { "controller.kubernetes.io/hash": hash } }, revision: 1, data };
}

export function setRevisionSuite(input: RevisionInput, expected: unknown): readonly Difference[] {
  const { set, restoreOver, hashLabels = [], sameData } = input;
  if (!set) {
    const [a = "", b = ""] = hashLabels;
    return compare({ equal: isSameRevision(labelled(a, {}), labelled(b, sameData ? {} : { other: 1 })) }, expected);
  }
  const revision = newSetRevision(set, 1, 0);
  const { labels, annotations, ownerReferences = [] } = revision.metadata ?? {};
  const actual = {
    dataRaw: revisionText(revision.data),
    labels,
    annotations,
    owners: ownerReferences.map(
      ({ apiVersion, kind, name, uid }) => `${apiVersion}|${kind}|${name}|${uid}|controller|block`,
    ),
    namesByCollisionCount: [0, 1, 2].map((count) => newSetRevision(set, 1, count).metadata?.name),
    matchesItself: isSameRevision(revision, newSetRevision(set, 1, 0)),
    ...(restoreOver
      ? { restoredTemplate: withoutNoise(exact(restoreTemplate(restoreOver, revision).spec.template)) }
      : {}),
  };
  return compare(actual, expected);
}

interface OrderInput {
  readonly podsByIndex: readonly ({
    readonly name: string;
    readonly labels?: Labels;
    readonly terminating?: boolean;
  } | null)[];
  readonly replicas: number;
  readonly rollingUpdate: RollingUpdateStatefulSet | null;
  readonly updateRevision: string;
}

export function updateOrderSuite(input: OrderInput, expected: unknown): readonly Difference[] {
  const { podsByIndex, replicas, rollingUpdate, updateRevision } = input;
  const slots = podsByIndex.map((one) => {
    if (!one) return undefined;
    const { terminating, ...metadata } = one;
    const deletion = terminating ? { deletionTimestamp: "2025-06-01T00:00:00Z" } : {};
    return listedPod({ ...metadata, ...deletion });
  });
  const target = { strategy: rollingUpdate ?? undefined, revision: updateRevision, replicas };
  return compare({ indexes: updateOrder(slots, target).map((pod) => slots.indexOf(pod)) }, expected);
}
