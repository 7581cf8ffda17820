/** Deployments, ReplicaSets and StatefulSets: defaults and the selector that must match the template. */

import { matchesLabels } from "../http/selector.ts";
import { asObject, at, childOf, isEqual, isObject, setDefault, textMap } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import { type FieldError, invalid, required } from "./field-error.ts";
import { defaultPodSpec } from "./pod-defaults.ts";
import { podSpecErrors } from "./pod-validate.ts";

function defaultTemplate(workload: ApiObject): void {
  const spec = childOf(workload, "spec");
  setDefault(spec, "replicas", 1);
  const template = childOf(spec, "template");
  defaultPodSpec(childOf(template, "spec"));
  childOf(template, "metadata");
  if (!isObject(workload["status"])) workload["status"] = {};
}

function templateErrors(workload: ApiObject): readonly FieldError[] {
  const spec = asObject(workload["spec"]);
  const labels = textMap(at(spec, "template", "metadata", "labels"));
  const errors: FieldError[] = [];
  if (!isObject(spec["selector"])) errors.push(required("spec.selector"));
  if (!isObject(spec["selector"]) || !matchesLabels(spec["selector"], labels)) {
    errors.push(invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"));
  }
  const replicas = Number(spec["replicas"]);
  if (replicas < 0) errors.push(invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
  return [...errors, ...podSpecErrors(asObject(at(spec, "template", "spec")), "spec.template.spec")];
}

function selectorErrors(next: ApiObject, previous: ApiObject): readonly FieldError[] {
  const selector = at(next, "spec", "selector");
  return isEqual(selector, at(previous, "spec", "selector"))
    ? []
    : [invalid("spec.selector", selector, "field is immutable")];
}

const COMMON = { default: defaultTemplate, validate: templateErrors, validateUpdate: selectorErrors };

export const REPLICA_SET_STRATEGY = COMMON;

export const DEPLOYMENT_STRATEGY = {
  ...COMMON,
  default(deployment: ApiObject): void {
    defaultTemplate(deployment);
    const spec = childOf(deployment, "spec");
    setDefault(spec, "revisionHistoryLimit", 10);
    setDefault(spec, "progressDeadlineSeconds", 600);
    const strategy = childOf(spec, "strategy");
    setDefault(strategy, "type", "RollingUpdate");
    if (strategy["type"] === "RollingUpdate") {
      const rolling = childOf(strategy, "rollingUpdate");
      setDefault(rolling, "maxUnavailable", "25%");
      setDefault(rolling, "maxSurge", "25%");
    }
  },
};

export const STATEFUL_SET_STRATEGY = {
  ...COMMON,
  default(set: ApiObject): void {
    defaultTemplate(set);
    const spec = childOf(set, "spec");
    setDefault(spec, "podManagementPolicy", "OrderedReady");
    setDefault(spec, "revisionHistoryLimit", 10);
    setDefault(spec, "updateStrategy", { type: "RollingUpdate", rollingUpdate: { partition: 0 } });
    setDefault(spec, "persistentVolumeClaimRetentionPolicy", { whenDeleted: "Retain", whenScaled: "Retain" });
  },
};
