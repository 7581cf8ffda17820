/** Validates a SidecarSet that someone creates or changes. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { ConfigMap, ControllerRevision, KubernetesObject } from "../../api/kubernetes.ts";
import { SIDECARSET_KIND, SIDECARSET_V1ALPHA1, SIDECARSET_V1BETA1 } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { printFieldErrors } from "../../go/field-error.ts";
import { type Decoded, type DecodeError, decodeGo } from "../../go/types/decode-go.ts";
import { SIDECAR_SET } from "../../go/types/sidecarset.ts";
import { shownText } from "../../go/unseen.ts";
import { type Admission, badRequest } from "../admission/admission.ts";
import { steeringOf } from "../pod/steering/steering.ts";
import { convertSidecarSet } from "../sidecarset/convert.ts";
import { doubtsOf } from "../sidecarset/validate/doubts.ts";
import { sidecarSetErrors } from "../sidecarset/validate/sidecarset.ts";

/** The cluster state and configuration that the validating webhook uses. */
export interface SidecarSetView {
  /** all SidecarSets, as the API server has them in either version */
  readonly sidecarSets: readonly KubernetesObject[];
  readonly controllerRevisions: readonly ControllerRevision[];
  readonly configMaps: readonly ConfigMap[];
  /** namespace of the ControllerRevisions and of the whitelist */
  readonly kruiseNamespace: string;
  readonly featureGates: {
    readonly SidecarSetPatchPodMetadataDefaultsAllowed: boolean;
    readonly NativeSidecarInPlaceUpdate?: boolean;
  };
}

/** Differs from OpenKruise on purpose: OpenKruise answers 500 with the same texts, as if the webhook had failed. */
const REFUSED = { code: 422, reason: "Invalid" } as const;

const VERSIONS: ReadonlyMap<string, string> = new Map([
  ["v1beta1", SIDECARSET_V1BETA1],
  ["v1alpha1", SIDECARSET_V1ALPHA1],
]);

type Reading = Decoded<SidecarSet> | DecodeError;

/** Reads either version as v1beta1. */
function read(object: KubernetesObject, apiVersion: string | undefined): Reading {
  if (apiVersion === SIDECARSET_V1BETA1) return decodeGo(SIDECAR_SET, object);
  // The conversion makes a SidecarSet of what it takes.
  return convertSidecarSet({ ...object, ...(apiVersion ? { apiVersion } : {}) }, SIDECARSET_V1BETA1) as Reading;
}

function readGiven(object: KubernetesObject | null | undefined, wanted: string, title: string): Reading {
  if (typeof object !== "object" || object === null) {
    return { kind: "DecodeError", message: `${title} is missing: there is no content to decode` };
  }
  const apiVersion = object.apiVersion || wanted;
  const kind = object.kind || SIDECARSET_KIND;
  if (apiVersion === wanted && kind === SIDECARSET_KIND) return read(object, apiVersion);
  const message = `${title} is a ${shownText(kind)} of ${shownText(apiVersion)}, not a ${SIDECARSET_KIND} of ${wanted}`;
  return { kind: "DecodeError", message };
}

/** SidecarSets that cannot be read are skipped, because nothing can be compared with them. */
function readOthers(others: readonly KubernetesObject[]): readonly SidecarSet[] {
  return others.flatMap((other) => {
    const reading = read(other, other.apiVersion ?? SIDECARSET_V1BETA1);
    return reading.kind === "Decoded" ? [reading.value] : [];
  });
}

/**
 * Allowed without an object, or denied: 400 for what cannot be decoded, 422 with all field errors for what may not be
 * stored. Objects of v1alpha1 are converted first, so errors speak of v1beta1. Never throws.
 * Source: OpenKruise SidecarSetCreateUpdateHandler.
 */
export function validateSidecarSet(request: AdmissionRequest, view: SidecarSetView): Admission {
  const { operation, resource, object, oldObject } = request;
  const wanted = VERSIONS.get(resource.version);
  if (wanted === undefined) return badRequest(`unsupported version: ${resource.version}`);
  const given = readGiven(object, wanted, "the object");
  if (given.kind === "DecodeError") return badRequest(given.message);
  const older = operation === "UPDATE" ? readGiven(oldObject, wanted, "the old object") : undefined;
  if (older?.kind === "DecodeError") return badRequest(older.message);
  const { featureGates, sidecarSets, ...others } = view;
  const stored = readOthers(sidecarSets);
  const errors = sidecarSetErrors(given.value, older?.value, {
    ...others,
    sidecarSets: stored,
    isAllowedByDefault: featureGates.SidecarSetPatchPodMetadataDefaultsAllowed,
    areNativesUpdated: featureGates.NativeSidecarInPlaceUpdate === true,
  });
  if (errors.length > 0) return { kind: "denied", ...REFUSED, message: printFieldErrors(errors), errors };
  const warnings = warningsOf(given.value, stored);
  return { kind: "allowed", ...(warnings.length === 0 ? {} : { warnings }) };
}

/** Never a reason to refuse, because OpenKruise accepts them. */
export function warningsOf(sidecarSet: SidecarSet, others: readonly SidecarSet[]): readonly string[] {
  return [...steeringOf(sidecarSet).problems.map(({ text }) => text), ...doubtsOf(sidecarSet, others)];
}
