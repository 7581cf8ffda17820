/** Optional: the API server tells us of injected pods that turn ready, or begin to fail, so that a rollout goes on at once. */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import { POD_STATUS_PATH } from "../../shared/webhook/paths.ts";
import { clientConfig, type WebhookAddress } from "./address.ts";

interface MatchCondition {
  readonly name: string;
  /** CEL, over `object` and `oldObject` */
  readonly expression: string;
}

/** Why a container that should run waits, where that is not a matter of moments. */
const FAILING = ["CrashLoopBackOff", "ErrImagePull", "ImagePullBackOff"];

const IS_INJECTED: MatchCondition = {
  name: "has-sidecars",
  expression: `has(object.metadata.annotations) && '${HASH_ANNOTATION}' in object.metadata.annotations`,
};

/** Exactly the change: a node reports a pod's status far more often than that. */
const TURNS: MatchCondition = {
  name: "turns-ready-or-fails",
  expression: [
    `${isReady("object")} && !(${isReady("oldObject")})`,
    beginsToFail("containerStatuses"),
    beginsToFail("initContainerStatuses"),
  ]
    .map((reason) => `(${reason})`)
    .join(" || "),
};

/** Nobody ever waits for the answer for long, and nothing depends on it. */
export function statusHintsWebhook(
  address: WebhookAddress,
): KubernetesObject & { readonly webhooks: readonly object[] } {
  const webhook = {
    name: "podstatus.sidecarset.kruise.io",
    clientConfig: clientConfig(address, POD_STATUS_PATH),
    rules: [{ operations: ["UPDATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods/status"] }],
    matchConditions: [IS_INJECTED, TURNS],
    failurePolicy: "Ignore",
    matchPolicy: "Equivalent",
    sideEffects: "NoneOnDryRun",
    timeoutSeconds: 1,
    admissionReviewVersions: ["v1", "v1beta1"],
  };
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: "sidecarset-status-hints-webhook-configuration" },
    webhooks: [webhook],
  };
}

function isReady(pod: string): string {
  const conditions = `${pod}.status.conditions`;
  return `has(${pod}.status) && has(${conditions}) && ${conditions}.exists(c, c.type == 'Ready' && c.status == 'True')`;
}

/** A container that was not failing before; from one of these reasons to another is nothing new. */
function beginsToFail(list: string): string {
  const before = `has(oldObject.status) && ${anyStatus("oldObject", list, "o", `o.name == c.name && ${isFailing("o")}`)}`;
  return `has(object.status) && ${anyStatus("object", list, "c", `${isFailing("c")} && !(${before})`)}`;
}

function anyStatus(pod: string, list: string, variable: string, holds: string): string {
  return `has(${pod}.status.${list}) && ${pod}.status.${list}.exists(${variable}, ${holds})`;
}

function isFailing(status: string): string {
  const waiting = `${status}.state.waiting`;
  const reasons = FAILING.map((reason) => `'${reason}'`).join(", ");
  return `has(${status}.state) && has(${waiting}) && has(${waiting}.reason) && ${waiting}.reason in [${reasons}]`;
}
