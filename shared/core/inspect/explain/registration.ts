/** Decides whether API servers ask the webhook about a pod, as far as registrations tell. */
import type { LabelSelector, Labels, Namespace, Pod } from "../../../api/kubernetes.ts";
import { isEmptySelector, selectorMatches } from "../../../go/label-selector.ts";
import { note, ok, type Step, stop } from "./step.ts";

/** One registration of a pod webhook that injects sidecars. */
export interface PodRegistration {
  /** of the configuration and of the webhook in it */
  readonly name: string;
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
  readonly failurePolicy?: string;
}

/** undefined: they could not be read */
export type Registrations = readonly PodRegistration[] | undefined;

export function traceRegistration(pod: Pod, namespace: Namespace | undefined, registrations: Registrations): Step {
  if (registrations === undefined)
    return note(
      "WebhookUnknown",
      "whether the API server asks the webhook is unknown: its registrations may not be read",
    );
  const [first] = registrations;
  if (first === undefined)
    return stop(
      "WebhookNotRegistered",
      "no webhook for pods is registered, so no pod gets sidecars",
      "register it: sidecarset webhooks --url URL | kubectl apply -f -",
    );
  const inNamespace = registrations.filter((one) => selects(one.namespaceSelector, namespace?.metadata?.labels));
  if (inNamespace.length === 0) {
    const name = namespace?.metadata?.name ?? pod.metadata?.namespace ?? "";
    return stop(
      "NamespaceExcluded",
      `the API server does not ask ${first.name} about pods of the namespace ${name}`,
      "its namespaceSelector leaves out kube-system, kube-node-lease, and namespaces with the label control-plane",
    );
  }
  const asked = inNamespace.find((one) => selects(one.objectSelector, pod.metadata?.labels));
  if (asked) return ok("WebhookAsked", `the API server asks ${asked.name} about such pods`);
  return stop(
    "ObjectExcluded",
    `the API server does not ask ${first.name} about pods with these labels`,
    "see the webhook's objectSelector",
  );
}

/** No selector, or an empty one, leaves nothing out. */
function selects(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  return !selector || isEmptySelector(selector) || selectorMatches(selector, labels) === true;
}
