/** The content of a pod's SidecarSetUpgradable condition: one value for each SidecarSet that looked at the pod. */
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

/** True while no SidecarSet says false. Refuses a message that is not a JSON object. */
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

/** True when the condition says that the SidecarSet can upgrade the pod. */
export function isUpgradableBy({ message = "" }: PodCondition, sidecarSet: string): boolean {
  const verdicts = jsonOf(message);
  return isJsonObject(verdicts) && verdicts[sidecarSet] === true;
}

/** True when the pod's condition says that the SidecarSet cannot upgrade it. */
export function isSaidNotUpgradable({ status }: Pod, sidecarSet: string): boolean {
  const verdicts = jsonOf(status?.conditions?.find(({ type }) => type === UPGRADABLE_CONDITION)?.message);
  return isJsonObject(verdicts) && verdicts[sidecarSet] === false;
}
