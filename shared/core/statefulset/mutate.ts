/** The defaults of an Advanced StatefulSet that someone creates or changes. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { Container, KubernetesObject, PodSpec } from "../../api/kubernetes.ts";
import { SIDECARSET_V1BETA1, STATEFUL_SET_KIND } from "../../api/names.ts";
import type { PersistentVolumeClaim, PodTemplateSpec, StatefulSet, StatefulSetSpec } from "../../api/stateful-set.ts";
import { goJson } from "../../go/json/go-json.ts";
import { type Decoded, type DecodeError, decodeGo } from "../../go/types/decode-go.ts";
import { STATEFUL_SET } from "../../go/types/stateful-set.ts";
import { type Admission, badRequest } from "../admission/admission.ts";
import { denyUnknownSources, warningsOfDropped } from "../admission/dropped-fields.ts";
import {
  CONTAINER_DEFAULTS,
  type Defaults,
  defaultImagePullPolicy,
  defaultVolume,
  fillIn,
  PROBE_DEFAULTS,
  type Quantities,
  roundUp,
  roundUpResources,
  VOLUME_DEFAULTS,
} from "../sidecarset/defaults/pod-parts.ts";
import type { StatefulSetFeatureGates } from "./step.ts";

const KINDS = "StatefulSets of apps.kruise.io";

export interface StatefulSetAdmissionGates extends StatefulSetFeatureGates {
  /** templates are stored as they are given */
  readonly TemplateNoDefaults: boolean;
}

/** An object of v1beta1: the version that API servers ask about, whichever it is written in. */
export function decodeStatefulSet(object: KubernetesObject | null | undefined): Decoded<StatefulSet> | DecodeError {
  if (typeof object !== "object" || object === null) {
    return { kind: "DecodeError", message: "there is no content to decode" };
  }
  const { apiVersion = SIDECARSET_V1BETA1, kind = STATEFUL_SET_KIND } = object;
  if (apiVersion === SIDECARSET_V1BETA1 && kind === STATEFUL_SET_KIND) return decodeGo(STATEFUL_SET, object);
  const message = `the object is a ${kind} of ${apiVersion}, not a ${STATEFUL_SET_KIND} of ${SIDECARSET_V1BETA1}`;
  return { kind: "DecodeError", message };
}

/**
 * The set of a request with its defaults and an empty status; without an object when nothing changes. Denied with 400
 * what cannot be decoded. Source: OpenKruise StatefulSetCreateUpdateHandler.
 */
export function mutateStatefulSet(request: AdmissionRequest, gates: StatefulSetAdmissionGates): Admission {
  const { operation, object, oldObject } = request;
  if (operation !== "CREATE" && operation !== "UPDATE") return { kind: "allowed" };
  const given = decodeStatefulSet(object);
  if (given.kind === "DecodeError") return badRequest(given.message);
  const before = operation === "UPDATE" ? decodeStatefulSet(oldObject) : undefined;
  if (before?.kind === "DecodeError") return badRequest(before.message);
  const denied = denyUnknownSources(KINDS, STATEFUL_SET, request);
  if (denied !== undefined) return denied;
  const isTemplateNew = !before || goJson(before.value.spec.template) !== goJson(given.value.spec.template);
  const { status: _, ...bare } = defaultSet(given.value, gates, isTemplateNew && !gates.TemplateNoDefaults);
  const wanted = decodeGo(STATEFUL_SET, bare);
  if (wanted.kind === "DecodeError") return badRequest(wanted.message);
  const warnings = warningsOfDropped(KINDS, STATEFUL_SET, object as KubernetesObject);
  const changed = goJson(wanted.value) === goJson(given.value) ? {} : { object: wanted.value };
  return { kind: "allowed", ...changed, ...warnings };
}

// The additions of OpenKruise's mutating webhook to the spec of a set.

const SPEC: Defaults = { podManagementPolicy: "OrderedReady", replicas: 1, revisionHistoryLimit: 10 };
const ROLLING_UPDATE: Defaults = { partition: 0, maxUnavailable: 1, podUpdatePolicy: "ReCreate", minReadySeconds: 0 };
const RETENTION: Defaults = { whenDeleted: "Retain", whenScaled: "Retain" };
/** Defaults of containers in a template, which differ from the defaults of sidecars. */
const TEMPLATE_CONTAINER: Defaults = { ...CONTAINER_DEFAULTS, startupProbe: PROBE_DEFAULTS };
const {
  terminationMessagePath: _path,
  terminationMessagePolicy: _policy,
  ...EPHEMERAL_CONTAINER
}: Defaults = TEMPLATE_CONTAINER;
const TEMPLATE: Defaults = {
  restartPolicy: "Always",
  dnsPolicy: "ClusterFirst",
  schedulerName: "default-scheduler",
  terminationGracePeriodSeconds: 30,
  initContainers: [TEMPLATE_CONTAINER],
  containers: [TEMPLATE_CONTAINER],
  ephemeralContainers: [EPHEMERAL_CONTAINER],
  volumes: [VOLUME_DEFAULTS],
};

/** Fields of a template that pods do not need. */
interface TemplateSpec extends PodSpec {
  readonly ephemeralContainers?: readonly Container[];
  readonly overhead?: Quantities;
}

/** `withTemplate`: the pod template and the claim templates get defaults too. The set comes from `decodeGo`. */
export function defaultSet(set: StatefulSet, gates: StatefulSetFeatureGates, withTemplate: boolean): StatefulSet {
  const filled: StatefulSetSpec = fillIn(set.spec, SPEC);
  const spec: StatefulSetSpec = {
    ...filled,
    updateStrategy: defaultStrategy(filled.updateStrategy),
    ...(gates.StatefulSetAutoDeletePVC
      ? { persistentVolumeClaimRetentionPolicy: fillIn(filled.persistentVolumeClaimRetentionPolicy ?? {}, RETENTION) }
      : {}),
    ...(gates.StatefulSetAutoResizePVCGate
      ? { volumeClaimUpdateStrategy: fillIn(filled.volumeClaimUpdateStrategy ?? {}, { type: "OnDelete" }) }
      : {}),
  };
  const { template, volumeClaimTemplates } = spec;
  const withDefaults = {
    ...spec,
    ...(template ? { template: defaultTemplate(template) } : {}),
    ...(volumeClaimTemplates ? { volumeClaimTemplates: volumeClaimTemplates.map(defaultClaim) } : {}),
  };
  return { ...set, spec: withTemplate ? withDefaults : spec };
}

function defaultStrategy(strategy: StatefulSetSpec["updateStrategy"]): NonNullable<StatefulSetSpec["updateStrategy"]> {
  const type = strategy?.type || "RollingUpdate";
  return type === "RollingUpdate"
    ? { ...strategy, type, rollingUpdate: fillIn(strategy?.rollingUpdate ?? {}, ROLLING_UPDATE) }
    : { ...strategy, type };
}

function defaultTemplate(template: PodTemplateSpec): PodTemplateSpec {
  const spec: TemplateSpec = fillIn({ securityContext: {}, containers: [], ...template.spec }, TEMPLATE);
  const { initContainers, containers, ephemeralContainers, volumes, overhead } = spec;
  return {
    ...template,
    spec: {
      ...spec,
      // Compat: an image with a tag is pulled always, unlike in init containers (vector defaults, minimal-create).
      // Where there are none Go has null, and they may be stored like that (vector validate, no-containers).
      containers: containers?.map((container) => defaultContainer(container, "Always")),
      ...(initContainers
        ? {
            initContainers: initContainers.map((one) => defaultContainer(one, defaultImagePullPolicy(one.image ?? ""))),
          }
        : {}),
      ...(ephemeralContainers
        ? {
            ephemeralContainers: ephemeralContainers.map((one) => ({
              ...one,
              resources: roundUpResources(one.resources),
            })),
          }
        : {}),
      ...(volumes ? { volumes: volumes.map(defaultVolume) } : {}),
      ...(overhead ? { overhead: roundUp(overhead) } : {}),
    } as PodSpec,
  };
}

function defaultContainer(container: Container, pullPolicy: string): Container {
  return {
    ...container,
    imagePullPolicy: container.imagePullPolicy ?? pullPolicy,
    resources: roundUpResources(container.resources),
  };
}

function defaultClaim(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  const { spec, status } = claim;
  const capacity = status?.capacity ? { capacity: roundUp(status.capacity) } : {};
  return {
    ...claim,
    ...(spec?.resources ? { spec: { ...spec, resources: roundUpResources(spec.resources) } } : {}),
    status: fillIn({ ...status, ...capacity }, { phase: "Pending" }),
  };
}
