/** Decides whether a pod template may carry those annotations that mean something to Kubernetes. */
import type { PodSpec } from "../../../api/kubernetes.ts";
import type { PodTemplateSpec } from "../../../api/stateful-set.ts";
import { type FieldError, invalid, quote } from "../../../go/field-error.ts";
import { validateDescendingPath } from "../../pod/validate/path.ts";
import { TOLERATIONS, tolerationErrors } from "./toleration-annotation.ts";

interface TemplateSpec extends Partial<PodSpec> {
  readonly ephemeralContainers?: readonly { readonly name?: string }[];
}

const FIELD = "spec.template.annotations";
const MIRROR = "kubernetes.io/config.mirror";
const SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/";
const LOCAL = "localhost/";

/** Source: Kubernetes ValidatePodSpecificAnnotations; OpenKruise lets any cost of deletion pass. */
export function templateAnnotationErrors({ metadata, spec }: PodTemplateSpec): readonly FieldError[] {
  return Object.entries(metadata?.annotations ?? {}).flatMap(([key, value]) => {
    if (key === TOLERATIONS) return tolerationErrors(value, FIELD);
    if (key === MIRROR) return validateMirror(value, spec);
    if (key === SECCOMP_POD || key.startsWith(SECCOMP_CONTAINER)) return validateSeccomp(value, `${FIELD}.${key}`);
    return key.startsWith(APP_ARMOR) ? validateAppArmor(key, value, spec) : [];
  });
}

function validateMirror(value: string, spec: PodSpec | undefined): readonly FieldError[] {
  const detail = "must set spec.nodeName if mirror pod annotation is set";
  return spec?.nodeName ? [] : [invalid(`${FIELD}[${MIRROR}]`, value, detail)];
}

function validateSeccomp(profile: string, field: string): readonly FieldError[] {
  if (["runtime/default", "docker/default", "unconfined"].includes(profile)) return [];
  if (profile.startsWith(LOCAL)) return validateDescendingPath(profile.slice(LOCAL.length), field);
  return [invalid(field, profile, "must be a valid seccomp profile")];
}

function validateAppArmor(key: string, profile: string, spec: PodSpec | undefined): readonly FieldError[] {
  const name = key.slice(APP_ARMOR.length);
  const { initContainers, containers, ephemeralContainers } = { ...spec } as TemplateSpec;
  // Go has null for none.
  const lists = [initContainers ?? [], containers ?? [], ephemeralContainers ?? []];
  const isThere = lists.some((list) => list.some((one) => one.name === name));
  const isKnown = ["", "runtime/default", "unconfined"].includes(profile) || profile.startsWith(LOCAL);
  return [
    ...(isThere ? [] : [invalid(`${FIELD}[${key}]`, name, "container not found")]),
    ...(isKnown ? [] : [invalid(`${FIELD}[${key}]`, profile, `invalid AppArmor profile name: ${quote(profile)}`)]),
  ];
}
