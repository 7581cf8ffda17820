/** Tells whether the configuration of a rolling update is valid. */
import type { IntOrString, LabelSelector, LabelSelectorRequirement } from "../../../api/kubernetes.ts";
import type { SidecarSetSpec, UpdateStrategy, WeightPriority } from "../../../api/sidecarset.ts";
import { type FieldError, invalid, invalidEach, required } from "../../../go/field-error.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { percentErrors } from "../../../go/label-name.ts";
import { isEmptySelector } from "../../../go/label-selector.ts";
import { validateNonNegative } from "../../admission/integer.ts";
import { selectorProblem, validateSelector } from "../../admission/selector.ts";

function validateAmount(amount: IntOrString | undefined, field: string): readonly FieldError[] {
  if (amount == null) return [];
  return typeof amount === "string"
    ? invalidEach(field, amount, percentErrors(amount))
    : validateNonNegative(amount, field);
}

function weightProblem({ weight, matchSelector }: WeightPriority): string | undefined {
  if ((weight ?? 0) < 0 || weight > 100) return "weight must be valid number in the range 1-100";
  if (matchSelector == null || isEmptySelector(matchSelector)) return "selector can not be empty";
  const problem = selectorProblem(matchSelector);
  return problem === undefined ? undefined : `invalid selector ${problem}`;
}

/** The first thing that is wrong with it. */
export function priorityProblem(strategy: UpdateStrategy["priorityStrategy"]): string | undefined {
  const { weightPriority = [], orderPriority = [] } = strategy ?? {};
  if (weightPriority.length > 0 && orderPriority.length > 0) {
    return "only one of weightPriority and orderPriority can be used";
  }
  const orders = orderPriority.map(({ orderedKey }) => (orderedKey ? undefined : "order key can not be empty"));
  return [...weightPriority.map(weightProblem), ...orders].find((problem) => problem !== undefined);
}

function scatterProblem(strategy: UpdateStrategy): string | undefined {
  const seen = new Set<string>();
  for (const { key = "", value = "" } of strategy.scatterStrategy ?? []) {
    if (key === "") return "key should not be empty";
    const term = `${key}:${value}`;
    if (seen.has(term)) return `duplicated key=${key} value=${value}`;
    seen.add(term);
  }
  return undefined;
}

/** Compat: "0%" counts as a partition, 0 does not (vectors update-strategy-09, update-strategy-10). */
function hasPartition({ partition }: UpdateStrategy): boolean {
  return typeof partition === "string" || (partition ?? 0) !== 0;
}

function requiredIf(field: string, problem: string | undefined): readonly FieldError[] {
  return problem === undefined ? [] : [required(field, problem)];
}

/** Types other than RollingUpdate, even unknown ones, are not validated. */
export function validateUpdateStrategy(spec: SidecarSetSpec, field: string): readonly FieldError[] {
  const strategy = spec.updateStrategy;
  if (strategy?.type !== "RollingUpdate") return [];
  const { selector, partition, maxUnavailable } = strategy;
  const isAmbiguous = hasPartition(strategy) && selector != null;
  return [
    ...(isAmbiguous
      ? [invalid("updateStrategy", printUpdateStrategy(strategy), "Partition and Selector cannot be used together")]
      : []),
    ...(selector == null ? [] : validateSelector(selector, `${field}.selector`)),
    ...validateAmount(partition, `${field}.partition`),
    ...validateAmount(maxUnavailable, `${field}.maxUnavailable`),
    ...requiredIf(`${field}.priorityStrategy`, priorityProblem(strategy.priorityStrategy)),
    ...requiredIf(`${field}.scatterStrategy`, scatterProblem(strategy)),
  ];
}

// How an update strategy is named in an error: as Go's %+v prints the struct.

function printRequirement({ key, operator, values = [] }: LabelSelectorRequirement): string {
  return `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(" ")}],},`;
}

function printSelector(selector: LabelSelector | undefined): string {
  if (selector == null) return "nil";
  const labels = Object.entries(selector.matchLabels ?? {}).sort(([one], [other]) => compareUtf8(one, other));
  const printed = labels.map(([key, value]) => `${key}: ${value},`).join("");
  const requirements = (selector.matchExpressions ?? []).map(printRequirement).join("");
  return `&LabelSelector{MatchLabels:map[string]string{${printed}},MatchExpressions:[]LabelSelectorRequirement{${requirements}},}`;
}

/** Source: OpenKruise's `fmt.Sprintf("%++v", strategy)`; an address stands as `0xPTR`. */
function printUpdateStrategy(strategy: UpdateStrategy): string {
  const terms = (strategy.scatterStrategy ?? []).map(({ key = "", value = "" }) => `{Key:${key} Value:${value}}`);
  const members: readonly (readonly [string, unknown])[] = [
    ["Type", strategy.type ?? ""],
    ["Paused", strategy.paused ?? false],
    ["Selector", printSelector(strategy.selector)],
    ["Partition", strategy.partition ?? "<nil>"],
    ["MaxUnavailable", strategy.maxUnavailable ?? "<nil>"],
    ["PriorityStrategy", strategy.priorityStrategy == null ? "<nil>" : "0xPTR"],
    ["ScatterStrategy", `[${terms.join(" ")}]`],
  ];
  return `&{${members.map(([name, value]) => `${name}:${value}`).join(" ")}}`;
}
