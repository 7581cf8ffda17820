/** Decides how an update strategy is named in an error: as Go's %+v prints the struct. */
import type { LabelSelector, LabelSelectorRequirement } from "../../../api/kubernetes.ts";
import type { UpdateStrategy } from "../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";

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
export function printUpdateStrategy(strategy: UpdateStrategy): string {
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
