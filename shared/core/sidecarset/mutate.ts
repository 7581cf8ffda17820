/** The admission of a SidecarSet that someone creates or changes: defaults and hashes. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { KubernetesObject } from "../../api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_ANNOTATION,
  SIDECARSET_GROUP,
  SIDECARSET_KIND,
} from "../../api/names.ts";
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../api/sidecarset.ts";
import type { FieldError } from "../../go/field-error.ts";
import { goJson } from "../../go/json/go-json.ts";
import { type Decoded, type DecodeError, decodeGo } from "../../go/types/decode-go.ts";
import type { GoType } from "../../go/types/go-type.ts";
import { SIDECAR_SET, SIDECAR_SET_V1ALPHA1 } from "../../go/types/sidecarset.ts";
import { shownText } from "../../go/unseen.ts";
import { type Admission, badRequest } from "../admission/admission.ts";
import { denyUnknownSources, warningsOfDropped } from "../admission/dropped-fields.ts";
import { withValuesInPlace } from "../pod/values-in-place.ts";
import {
  CONTAINER_DEFAULTS,
  type Defaults,
  defaultImagePullPolicy,
  defaultVolume,
  FIELD_REF,
  fillIn,
  roundUpResources,
  VOLUME_DEFAULTS,
} from "./defaults/pod-parts.ts";
import { sidecarSetHash, sidecarSetHashWithoutImage } from "./hash/sidecarset-hash.ts";

const KINDS = "SidecarSets";
/** v1alpha1 has other selectors, which no default looks at. */
const TYPES: ReadonlyMap<string, GoType<SidecarSet>> = new Map([
  ["v1beta1", SIDECAR_SET],
  ["v1alpha1", SIDECAR_SET_V1ALPHA1 as GoType<SidecarSet>],
]);

function decode(
  object: KubernetesObject,
  version: string,
  type: GoType<SidecarSet>,
): Decoded<SidecarSet> | DecodeError {
  const wanted = { apiVersion: `${SIDECARSET_GROUP}/${version}`, kind: SIDECARSET_KIND };
  const apiVersion = object.apiVersion || wanted.apiVersion;
  const kind = object.kind || wanted.kind;
  if (apiVersion === wanted.apiVersion && kind === wanted.kind) return decodeGo(type, object);
  const found = `${shownText(kind)} of ${shownText(apiVersion)}`;
  return { kind: "DecodeError", message: `the object is a ${found}, not of ${wanted.apiVersion}` };
}

function missingFieldRefs(containers: readonly SidecarContainer[] | undefined, path: string): readonly FieldError[] {
  return (containers ?? []).flatMap(({ transferEnv }, container) =>
    (transferEnv ?? []).flatMap(({ sourceContainerNameFrom }, index) => {
      if (sourceContainerNameFrom === undefined || sourceContainerNameFrom.fieldRef !== undefined) return [];
      const field = `${path}[${container}].transferEnv[${index}].sourceContainerNameFrom.fieldRef`;
      return [{ type: "FieldValueRequired", field, detail: "" }];
    }),
  );
}

/** The reference crashes on these (vector sidecarset-default-and-hash, transfer-env-empty-from-panics). */
function denyMissingFieldRefs({ containers, initContainers }: SidecarSetSpec): Admission | undefined {
  const errors = [
    ...missingFieldRefs(initContainers, "spec.initContainers"),
    ...missingFieldRefs(containers, "spec.containers"),
  ];
  if (errors.length === 0) return undefined;
  const texts = errors.map(({ field }) => `${field}: Required value`);
  const message = texts.length === 1 ? texts.join() : `[${texts.join(", ")}]`;
  return { kind: "denied", code: 422, reason: "Invalid", message, errors };
}

function deny(type: GoType<SidecarSet>, { spec }: SidecarSet, request: AdmissionRequest): Admission | undefined {
  return denyMissingFieldRefs(spec) ?? denyUnknownSources(KINDS, type, request);
}

/** Compat: an explicitly empty list of containers is hashed as such (vector empty-containers-list). */
function isEmptyList(object: KubernetesObject): boolean {
  const spec = (object as { readonly spec?: { readonly containers?: unknown } | null }).spec;
  return Array.isArray(spec?.containers) && spec.containers.length === 0;
}

function withHashes(sidecarSet: SidecarSet, hashed: SidecarSetSpec): SidecarSet {
  const isAsked = sidecarSet.metadata?.annotations?.[IN_PLACE_ANNOTATION] !== undefined;
  const injected = isAsked ? withValuesInPlace({ ...sidecarSet, spec: hashed }).spec : hashed;
  const annotations = {
    ...sidecarSet.metadata?.annotations,
    [HASH_ANNOTATION]: sidecarSetHash(hashed),
    [HASH_WITHOUT_IMAGE_ANNOTATION]: sidecarSetHashWithoutImage(injected),
  };
  return { ...sidecarSet, metadata: { ...sidecarSet.metadata, annotations } };
}

/**
 * The SidecarSet of a request with defaults and both hashes, in the request's version. No object when it has them
 * already, so that unknown fields stay. Denies with 400 what cannot be decoded, with 422 what cannot get defaults.
 * Operations other than CREATE and UPDATE change nothing. Source: OpenKruise SidecarSetCreateHandler.
 */
export function mutateSidecarSet(request: AdmissionRequest): Admission {
  const { operation, resource, object } = request;
  const type = TYPES.get(resource.version);
  if (type === undefined) return badRequest(`unsupported version: ${resource.version}`);
  if (operation !== "CREATE" && operation !== "UPDATE") return { kind: "allowed" };
  if (object === undefined || object === null) return badRequest("there is no content to decode");
  const given = decode(object, resource.version, type);
  if (given.kind === "DecodeError") return badRequest(given.message);
  const denied = deny(type, given.value, request);
  if (denied !== undefined) return denied;
  // Decodes again, to put the added fields into Go's order, which the hash needs.
  const filled = decodeGo(type, { ...given.value, spec: defaultSidecarSetSpec(given.value.spec) });
  if (filled.kind === "DecodeError") return badRequest(filled.message);
  const hashed = isEmptyList(object) ? { ...filled.value.spec, containers: [] } : filled.value.spec;
  const wanted = withHashes(filled.value, hashed);
  const changed = goJson(wanted) === goJson(given.value) ? {} : { object: wanted };
  return { kind: "allowed", ...changed, ...warningsOfDropped(KINDS, type, object) };
}

// The additions of OpenKruise's mutating webhook to the spec of a SidecarSet.

/** Compat: shareVolumeDevicePolicy gets no default: old hashes stay valid (vector share-volume-policies). */
const CONTAINER: Defaults = {
  upgradeStrategy: { upgradeType: "ColdUpgrade" },
  shareVolumePolicy: { type: "disabled" },
  ...CONTAINER_DEFAULTS,
  transferEnv: [{ sourceContainerNameFrom: FIELD_REF }],
};

const SPEC: Defaults = {
  updateStrategy: { type: "RollingUpdate", maxUnavailable: 1, partition: 0 },
  initContainers: [{ podInjectPolicy: "AfterAppContainer", ...CONTAINER }],
  containers: [{ podInjectPolicy: "BeforeAppContainer", ...CONTAINER }],
  volumes: [VOLUME_DEFAULTS],
  revisionHistoryLimit: 10,
  patchPodMetadata: [{ patchPolicy: "Retain" }],
  injectionStrategy: { revision: { policy: "Always" } },
};

function defaultContainer(container: SidecarContainer): SidecarContainer {
  return {
    ...container,
    imagePullPolicy: container.imagePullPolicy ?? defaultImagePullPolicy(container.image ?? ""),
    resources: roundUpResources(container.resources),
  };
}

/**
 * The spec, as `decodeGo` gives it, with all defaults; fields that were added come last. Both API versions have these
 * fields. Source: OpenKruise apis/apps/defaults, SetDefaultsSidecarSet.
 */
function defaultSidecarSetSpec<Spec extends SidecarSetSpec>(spec: Spec): Spec {
  const filled = fillIn(spec, SPEC);
  const { containers, initContainers, volumes } = filled;
  return {
    ...filled,
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(defaultContainer) }),
    ...(containers === undefined ? {} : { containers: containers.map(defaultContainer) }),
    ...(volumes === undefined ? {} : { volumes: volumes.map(defaultVolume) }),
  };
}
