/** Pods: defaults, status of a new pod, and what of a running pod may change. */

import {
  asList,
  asObject,
  at,
  childOf,
  copyOf,
  isEqual,
  isObject,
  type JsonObject,
  objectsIn,
} from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import { type FieldError, forbiddenField } from "./field-error.ts";
import { defaultPodSpec } from "./pod-defaults.ts";
import { podSpecErrors } from "./pod-validate.ts";

const IMMUTABLE =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

export function qualityOfService(spec: JsonObject): string {
  const containers = [...objectsIn(spec["containers"]), ...objectsIn(spec["initContainers"])];
  const resources = containers.map((container) => asObject(container["resources"]));
  const isEmpty = (value: unknown): boolean => Object.keys(asObject(value)).length === 0;
  if (resources.every((one) => isEmpty(one["limits"]) && isEmpty(one["requests"]))) return "BestEffort";
  const isGuaranteed = resources.every((one) => {
    const limits = asObject(one["limits"]);
    return limits["cpu"] !== undefined && limits["memory"] !== undefined && isEqual(limits, one["requests"]);
  });
  return isGuaranteed ? "Guaranteed" : "Burstable";
}

/** The spec with everything taken out that may change. */
function fixedPart(spec: JsonObject): JsonObject {
  const fixed = copyOf(spec);
  delete fixed["activeDeadlineSeconds"];
  delete fixed["tolerations"];
  for (const list of ["containers", "initContainers"]) {
    for (const container of objectsIn(fixed[list])) delete container["image"];
  }
  return fixed;
}

function tolerationErrors(next: JsonObject, previous: JsonObject): readonly FieldError[] {
  const now = asList(next["tolerations"]);
  const isKept = asList(previous["tolerations"]).every((old) => now.some((one) => isEqual(one, old)));
  const why = "existing toleration can not be modified except its tolerationSeconds";
  return isKept ? [] : [forbiddenField("spec.tolerations", why)];
}

function updateErrors(next: JsonObject, previous: JsonObject): readonly FieldError[] {
  for (const list of ["containers", "initContainers"]) {
    if (asList(next[list]).length !== asList(previous[list]).length) {
      return [forbiddenField(`spec.${list}`, "pod updates may not add or remove containers")];
    }
  }
  const isSame = isEqual(fixedPart(next), fixedPart(previous));
  return [...tolerationErrors(next, previous), ...(isSame ? [] : [forbiddenField("spec", IMMUTABLE)])];
}

/** A container that has ended stays so, where the pod's restart policy does not start it again. */
function statusErrors(next: JsonObject, { spec, status }: ApiObject): readonly FieldError[] {
  const policy = asObject(spec)["restartPolicy"];
  const isFinal = (one: JsonObject): boolean => {
    const exitCode = at(one, "state", "terminated", "exitCode");
    return policy !== "Always" && exitCode !== undefined && (policy === "Never" || exitCode === 0);
  };
  return objectsIn(asObject(status)["containerStatuses"]).flatMap((one, index) => {
    const now = objectsIn(next["containerStatuses"]).find(({ name }) => name === one["name"]);
    if (now === undefined || !isFinal(one) || at(now, "state", "terminated") !== undefined) return [];
    const why = "may not be transitioned to non-terminated state";
    return [forbiddenField(`status.containerStatuses[${index}].state`, why)];
  });
}

export const POD_STRATEGY = {
  default(pod: ApiObject): void {
    const spec = childOf(pod, "spec");
    defaultPodSpec(spec);
    if (spec["enableServiceLinks"] === undefined) spec["enableServiceLinks"] = true;
    if (!isObject(pod["status"])) pod["status"] = {};
  },
  prepareCreate(pod: ApiObject): void {
    pod["status"] = { phase: "Pending", qosClass: qualityOfService(asObject(pod["spec"])) };
  },
  validate: (pod: ApiObject): readonly FieldError[] => podSpecErrors(asObject(pod["spec"]), "spec"),
  validateUpdate: (next: ApiObject, previous: ApiObject): readonly FieldError[] =>
    updateErrors(asObject(next["spec"]), asObject(previous["spec"])),
  validateStatus: (next: ApiObject, previous: ApiObject): readonly FieldError[] =>
    statusErrors(asObject(next["status"]), previous),
};
