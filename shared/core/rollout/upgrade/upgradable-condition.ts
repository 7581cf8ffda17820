/** Decides what a pod's SidecarSetUpgradable condition says, one word for each SidecarSet that looked at it. */
import type { Pod, PodCondition } from "../../../api/kubernetes.ts";
import { ALL_UPGRADABLE_REASON, IMMUTABLE_FIELD_REASON, UPGRADABLE_CONDITION } from "../../../api/names.ts";
import { sortedGoJson } from "../../../go/json/go-json.ts";
import { isJsonObject, jsonOf } from "../../../go/json/json-object.ts";

export type ConditionPlan =
  | { readonly kind: "changed"; readonly condition: PodCondition }
  | { readonly kind: "unchanged" }
  | { readonly kind: "refused"; readonly message: string };

interface Verdict {
  readonly sidecarSet: string;
  readonly isUpgradable: boolean;
  /** RFC3339, whole seconds, UTC */
  readonly now: string;
}

/** True as long as no SidecarSet says false. Refused when the message is there and no JSON object. */
export function planCondition(pod: Pod, { sidecarSet, isUpgradable, now }: Verdict): ConditionPlan {
  const before = pod.status?.conditions?.find(({ type }) => type === UPGRADABLE_CONDITION);
  const said = before?.message ? jsonOf(before.message) : null;
  const verdicts = said === null ? {} : said;
  if (!isJsonObject(verdicts)) {
    return { kind: "refused", message: `the message of the condition ${UPGRADABLE_CONDITION} is not a JSON object` };
  }
  const after = { ...verdicts, [sidecarSet]: isUpgradable };
  const areAll = !Object.values(after).includes(false);
  const status = areAll ? "True" : "False";
  const reason = areAll ? ALL_UPGRADABLE_REASON : IMMUTABLE_FIELD_REASON;
  const message = sortedGoJson(after);
  if (before?.status === status && before.reason === reason && before.message === message) return { kind: "unchanged" };
  const since = before?.status === status ? {} : { lastTransitionTime: now };
  return { kind: "changed", condition: { ...before, type: UPGRADABLE_CONDITION, status, reason, message, ...since } };
}

/** What such a condition says of the SidecarSet. */
export function isUpgradableBy({ message = "" }: PodCondition, sidecarSet: string): boolean {
  const verdicts = jsonOf(message);
  return isJsonObject(verdicts) && verdicts[sidecarSet] === true;
}

/** Whether the pod's condition says that it cannot be brought to the SidecarSet. */
export function isSaidNotUpgradable({ status }: Pod, sidecarSet: string): boolean {
  const verdicts = jsonOf(status?.conditions?.find(({ type }) => type === UPGRADABLE_CONDITION)?.message);
  return isJsonObject(verdicts) && verdicts[sidecarSet] === false;
}
