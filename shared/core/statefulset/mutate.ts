/** Decides what becomes of an Advanced StatefulSet that someone creates or changes: its defaults. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { SIDECARSET_V1BETA1, STATEFUL_SET_KIND } from "../../api/names.ts";
import type { StatefulSet } from "../../api/stateful-set.ts";
import { goJson } from "../../go/json/go-json.ts";
import { type Decoded, type DecodeError, decodeGo } from "../../go/types/decode-go.ts";
import { STATEFUL_SET } from "../../go/types/stateful-set.ts";
import { type Admission, badRequest } from "../admission/admission.ts";
import { denyUnknownSources, warningsOfDropped } from "../admission/dropped-fields.ts";
import { defaultSet } from "./admission/default-set.ts";
import type { StatefulSetFeatureGates } from "./step.ts";

const KINDS = "StatefulSets of apps.kruise.io";

export interface StatefulSetAdmissionGates extends StatefulSetFeatureGates {
  /** templates are stored as they are given */
  readonly TemplateNoDefaults: boolean;
}

/** An object of v1beta1: the version that API servers ask about, whichever it is written in. */
export function readSet(object: KubernetesObject | null | undefined): Decoded<StatefulSet> | DecodeError {
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
  const given = readSet(object);
  if (given.kind === "DecodeError") return badRequest(given.message);
  const before = operation === "UPDATE" ? readSet(oldObject) : undefined;
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
