/** Tells which registered webhooks belong to this project, to OpenKruise, or to somebody else. */
import type { KubernetesObject, LabelSelector, Labels, Namespace, Pod } from "../../../api/kubernetes.ts";
import { POD_WEBHOOK, REGISTERED_IN_ANNOTATION, REGISTERED_IN_FILES } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { isEmptySelector, selectorMatches } from "../../../go/label-selector.ts";
import { EXEMPT_NAMESPACES, matches, outsideOf } from "../../injection/match/matches.ts";
import { type Facts, seenOf, type Webhook, type WebhookConfiguration } from "./facts.ts";

/** A webhook and its configuration. */
export interface Registered {
  readonly webhook: Webhook;
  readonly configuration: string;
  /** its Service is the one of OpenKruise's manager */
  readonly isOpenKruise: boolean;
}

const OPENKRUISE_SERVICE = "kruise-webhook-service";
/** OpenKruise's manager keeps a copy of its registration in this annotation. */
const TEMPLATE_ANNOTATION = "template";

export function registered(configurations: readonly WebhookConfiguration[] = []): readonly Registered[] {
  return configurations.flatMap(({ metadata, webhooks = [] }) =>
    webhooks.map((webhook) => ({
      webhook,
      configuration: metadata?.name ?? "",
      isOpenKruise:
        webhook.clientConfig?.service?.name === OPENKRUISE_SERVICE ||
        metadata?.annotations?.[TEMPLATE_ANNOTATION] !== undefined,
    })),
  );
}

function covers(values: readonly string[] = [], wanted: string): boolean {
  return values.includes(wanted) || values.includes("*");
}

/** True if one of its rules matches such a request. */
export function isAskedAbout({ webhook }: Registered, group: string, resource: string, operation: string): boolean {
  return (webhook.rules ?? []).some(
    (rule) => covers(rule.apiGroups, group) && covers(rule.resources, resource) && covers(rule.operations, operation),
  );
}

export interface Registrations {
  /** this project's, for new pods */
  readonly pods: readonly Registered[];
  /** this project's, which set defaults and hashes of SidecarSets */
  readonly mutation: readonly Registered[];
  /** this project's, which validate SidecarSets */
  readonly validation: readonly Registered[];
  /** OpenKruise's, for pods and SidecarSets */
  readonly openKruise: readonly Registered[];
  /** foreign webhooks that may change a new pod */
  readonly others: readonly Registered[];
  /** an empty configuration says that API servers read the registration from files, which nobody can read from here */
  readonly isInFiles: boolean;
}

/** undefined: they could not be read */
export function registrationsOf({
  mutating,
  validating,
}: Pick<Facts, "mutating" | "validating">): Registrations | undefined {
  const [mutatingOnes, validatingOnes] = [seenOf(mutating), seenOf(validating)];
  if (mutatingOnes === undefined || validatingOnes === undefined) return undefined;
  const [changing, judging] = [registered(mutatingOnes), registered(validatingOnes)];
  const isForPods = (one: Registered) => isAskedAbout(one, "", "pods", "CREATE");
  const named = (ones: readonly Registered[], name: string) => ones.filter(({ webhook }) => webhook.name === name);
  const injecting = named(changing, POD_WEBHOOK).filter(isForPods);
  const [mutation, validation] = [named(changing, "msidecarset.kb.io"), named(judging, "vsidecarset.kb.io")];
  const ours = (ones: readonly Registered[]) => ones.filter(({ isOpenKruise }) => !isOpenKruise);
  return {
    pods: ours(injecting),
    mutation: ours(mutation),
    validation: ours(validation),
    openKruise: [...injecting, ...mutation, ...validation].filter(({ isOpenKruise }) => isOpenKruise),
    others: ours(changing).filter((one) => isForPods(one) && !injecting.includes(one)),
    isInFiles: ours(injecting).length === 0 && mutatingOnes.some(isReplacedByFile),
  };
}

export function isReplacedByFile({ metadata }: KubernetesObject): boolean {
  return metadata?.annotations?.[REGISTERED_IN_ANNOTATION] === REGISTERED_IN_FILES;
}

/** The namespaceSelector that `install` gives the pod webhook, in a file too. */
export const OUTSIDE_OF_EXEMPT: LabelSelector = { matchExpressions: outsideOf(EXEMPT_NAMESPACES) };

/** A pod that a SidecarSet selects, for a trial of whether API servers ask about pods. */
export function podToTry(sets: readonly SidecarSet[], namespaces: readonly Namespace[]): Pod | undefined {
  const asked = namespaces.filter(({ metadata }) => selects(OUTSIDE_OF_EXEMPT, metadata?.labels));
  for (const one of sets.filter(({ spec }) => !spec.injectionStrategy?.paused)) {
    const podLabels = labelsFor(one.spec.selector);
    const namespace = asked.find((place) => matches(one, { namespace: place, podLabels }) === true)?.metadata?.name;
    if (namespace !== undefined)
      return { metadata: { name: "sidecarset-check-of-the-webhooks", namespace, labels: podLabels }, spec: TRIED };
  }
  return undefined;
}

/** The pod meets the strictest Pod Security Standard. */
const TRIED = {
  securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
  containers: [
    {
      name: "check",
      image: "check:1",
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    },
  ],
} as const;

function labelsFor({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}): Labels {
  const given = matchExpressions.flatMap(({ key, operator, values = [] }) => {
    const value = operator === "In" ? values[0] : operator === "Exists" ? "check" : undefined;
    return value === undefined ? [] : [[key, value]];
  });
  return { ...Object.fromEntries(given), ...matchLabels };
}

/** True without a selector, or with an empty one. */
export function leavesNothingOut(selector: LabelSelector | undefined): boolean {
  return !selector || isEmptySelector(selector);
}

export function selects(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  return leavesNothingOut(selector) || selectorMatches(selector, labels) === true;
}
