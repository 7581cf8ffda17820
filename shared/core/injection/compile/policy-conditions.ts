/** Decides for which of the pods that a SidecarSet selects its policy speaks. */
import { CONTAINER_LAUNCH_PRIORITY_ANNOTATION, CONTAINER_PRIORITY_ENV, INJECT_KEY } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { celText, celTexts } from "../../../go/json/cel-literal.ts";
import { isEmptySelector, selectorMatches } from "../../../go/label-selector.ts";
import { type MatchCondition, NO_MIRROR_PODS } from "../match/exempt-pods.ts";
import { NAMESPACE_LABELS, POD_LABELS, selectorTerms } from "../match/selector-condition.ts";
import { isCanaryOf } from "../replace-by-canary.ts";
import { annotation, READABLE } from "./annotation-expressions.ts";

/** Barriers carry the pod's name, which most pods have not got yet. */
const NO_LAUNCH_ORDER: MatchCondition = {
  name: "no-launch-order",
  expression: `${annotation(CONTAINER_LAUNCH_PRIORITY_ANNOTATION)} != "Ordered" && !object.spec.containers.exists(c, c.?env.orValue([]).exists(e, e.name == ${celText(CONTAINER_PRIORITY_ENV)}))`,
};

/** The webhook refuses the others, or reads what an expression cannot. */
const READABLE_RECORDS: MatchCondition = {
  name: "readable-records",
  expression: [...READABLE].map(([key, form]) => `${annotation(key)}.matches(${celText(form)})`).join(" && "),
};

const NOT_DECLINED: MatchCondition = {
  name: "declines-no-sidecars",
  expression: `object.metadata.?labels[?${celText(INJECT_KEY)}].orValue("") != "false" && ${annotation(INJECT_KEY)} != "false"`,
};

/** The webhook would find the sidecar where the pod's own container was, and take from it what was that one's. */
function noSuchContainer(names: Names): MatchCondition {
  const terms = Object.entries(names)
    .filter(([, own]) => own.length > 0)
    .map(([list, own]) => `!object.spec.?${list}.orValue([]).exists(c, c.name in ${celTexts(own)})`);
  return { name: "no-container-of-that-name", expression: terms.join(" && ") };
}

/** Undefined: it matches no pod. */
function matchCondition({ spec }: SidecarSet): string | undefined {
  const { selector, namespaceSelector, injectionStrategy } = spec;
  if (injectionStrategy?.paused || !selector || isEmptySelector(selector)) return undefined;
  if (typeof selectorMatches(selector, {}) !== "boolean") return undefined;
  if (namespaceSelector && typeof selectorMatches(namespaceSelector, {}) !== "boolean") return undefined;
  const terms = [
    ...selectorTerms(selector, POD_LABELS),
    ...(namespaceSelector ? selectorTerms(namespaceSelector, NAMESPACE_LABELS) : []),
  ];
  return terms.join(" && ");
}

/** of what is injected, by list */
type Names = Readonly<Record<"initContainers" | "containers", readonly string[]>>;

interface Surroundings {
  /** all SidecarSets: where a canary of this one takes its place, the policy is silent */
  readonly others: readonly SidecarSet[];
  /** gate PodOptOut */
  readonly mayDecline: boolean;
}

export function policyConditions(
  sidecarSet: SidecarSet,
  { others, mayDecline }: Surroundings,
  names: Names,
): readonly MatchCondition[] {
  const declined = mayDecline ? [NOT_DECLINED] : [];
  const canaries = others
    .filter((other) => isCanaryOf(other, sidecarSet))
    .flatMap((canary) => matchCondition(canary) ?? [])
    .map((expression, index) => ({ name: `not-for-canary-${index}`, expression: `!(${expression})` }));
  return [NO_MIRROR_PODS, NO_LAUNCH_ORDER, READABLE_RECORDS, noSuchContainer(names), ...declined, ...canaries];
}
