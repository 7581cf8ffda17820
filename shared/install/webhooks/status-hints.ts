/**
 * Optional: the API server reports injected pods that become ready or fail, and containers that wait for their turn. A
 * pass then begins at once.
 */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { CONTAINER_BARRIER_ENV, HASH_ANNOTATION, LAUNCH_COMPLETED_ANNOTATION } from "../../api/names.ts";
import { CONTAINER_REASONS } from "../../core/pod/container-failure.ts";
import { POD_STATUS_PATH } from "../../webhook/server/paths.ts";
import { clientConfig, type WebhookAddress } from "./address.ts";

interface MatchCondition {
  readonly name: string;
  /** CEL expression over `object` and `oldObject` */
  readonly expression: string;
}

/** The reasons why a failing container waits. */
const FAILING = Object.entries(CONTAINER_REASONS).flatMap(([reason, { comesBack }]) =>
  comesBack === "soon" ? [] : [reason],
);
/** The reason of a container that waits for its turn: a key of a ConfigMap is missing. */
const HELD_BACK = ["CreateContainerConfigError"];

/** Matches only the change, because a node reports a pod's status far more often. */
const NEWS: MatchCondition = {
  name: "news-of-sidecars-or-a-launch-order",
  expression: anyOf(
    allOf(
      `has(object.metadata.annotations) && '${HASH_ANNOTATION}' in object.metadata.annotations`,
      anyOf(
        `${isReady("object")} && !(${isReady("oldObject")})`,
        beginsTo((status) => waitsFor(status, FAILING), "containerStatuses"),
        beginsTo((status) => waitsFor(status, FAILING), "initContainerStatuses"),
      ),
    ),
    allOf(
      `object.spec.containers.exists(c, has(c.env) && c.env.exists(e, e.name == '${CONTAINER_BARRIER_ENV}'))`,
      `!(has(object.metadata.annotations) && '${LAUNCH_COMPLETED_ANNOTATION}' in object.metadata.annotations)`,
      anyOf(
        beginsTo((status) => waitsFor(status, HELD_BACK), "containerStatuses"),
        beginsTo((status) => `has(${status}.ready) && ${status}.ready`, "containerStatuses"),
      ),
    ),
  ),
};

/** The webhook. Its short timeout never delays a write for long, and no result depends on it. */
export function statusHintsWebhook(
  address: WebhookAddress,
): KubernetesObject & { readonly webhooks: readonly object[] } {
  const webhook = {
    name: "podstatus.sidecarset.kruise.io",
    clientConfig: clientConfig(address, POD_STATUS_PATH),
    rules: [{ operations: ["UPDATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods/status"] }],
    matchConditions: [NEWS],
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

/** CEL: a container newly meets the condition. A change between two reasons of one kind does not count. */
function beginsTo(holds: (status: string) => string, list: string): string {
  const before = `has(oldObject.status) && ${anyStatus("oldObject", list, "o", `o.name == c.name && ${holds("o")}`)}`;
  return `has(object.status) && ${anyStatus("object", list, "c", `${holds("c")} && !(${before})`)}`;
}

function anyStatus(pod: string, list: string, variable: string, holds: string): string {
  return `has(${pod}.status.${list}) && ${pod}.status.${list}.exists(${variable}, ${holds})`;
}

function waitsFor(status: string, reasons: readonly string[]): string {
  const waiting = `${status}.state.waiting`;
  const quoted = reasons.map((reason) => `'${reason}'`).join(", ");
  return `has(${status}.state) && has(${waiting}) && has(${waiting}.reason) && ${waiting}.reason in [${quoted}]`;
}

function anyOf(...expressions: readonly string[]): string {
  return expressions.map((expression) => `(${expression})`).join(" || ");
}

function allOf(...expressions: readonly string[]): string {
  return expressions.map((expression) => `(${expression})`).join(" && ");
}
