/** How several holders keep a pod unready at once. */
import type { Pod, PodCondition } from "../../api/kubernetes.ts";
import { POD_READY_CONDITION } from "../../api/names.ts";
import { compareUtf8, goJson } from "../../go/json/go-json.ts";
import { isJsonObject, jsonOf } from "../../go/json/json-object.ts";
import { conditionOf, setReady } from "./is-ready.ts";

/** A holder in the list of the condition's message. */
export interface Holder {
  readonly userAgent: string;
  readonly key: string;
}

export function hasHoldGate({ spec }: Pod): boolean {
  return (spec.readinessGates ?? []).some(({ conditionType }) => conditionType === POD_READY_CONDITION);
}

/** The pod held unready; the same pod if it was. Ready changes at once, because the kubelet would be slower. */
export function hold(pod: Pod, holder: Holder, now: string): Pod {
  const before = conditionOf(pod, POD_READY_CONDITION);
  const holders = holdersOf(before);
  if (holders.some((other) => isSame(other, holder))) return pod;
  const message = print([...holders, holder]);
  // Compat: a pod without the condition gets one without a status (vector unready-grace-no-condition-yet).
  const status = before ? "False" : "";
  return setReady(withHold(pod, { ...before, status, message, lastTransitionTime: now }));
}

/** The pod without this holder; the same pod if the holder is absent. The kubelet sets Ready. */
export function release(pod: Pod, holder: Holder, now: string): Pod {
  const before = conditionOf(pod, POD_READY_CONDITION);
  const holders = holdersOf(before);
  const others = holders.filter((other) => !isSame(other, holder));
  if (!before || others.length === holders.length) return pod;
  const status = others.length === 0 ? "True" : before.status;
  return withHold(pod, { ...before, status, message: print(others), lastTransitionTime: now });
}

function withHold(pod: Pod, hold: Omit<PodCondition, "type">): Pod {
  const conditions = pod.status?.conditions ?? [];
  const after = { ...hold, type: POD_READY_CONDITION };
  const isThere = conditions.some(({ type }) => type === POD_READY_CONDITION);
  const all = isThere
    ? conditions.map((condition) => (condition.type === POD_READY_CONDITION ? after : condition))
    : [...conditions, after];
  return { ...pod, status: { ...pod.status, conditions: all } };
}

/** The holders that a message lists; empty for any other message. */
function holdersOf(condition: PodCondition | undefined): readonly Holder[] {
  const said = jsonOf(condition?.message || undefined);
  if (!Array.isArray(said)) return [];
  return said.filter(isJsonObject).map(({ userAgent, key }) => ({ userAgent: textOf(userAgent), key: textOf(key) }));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function isSame(a: Holder, b: Holder): boolean {
  return a.userAgent === b.userAgent && a.key === b.key;
}

function print(holders: readonly Holder[]): string {
  return goJson([...holders].sort((a, b) => compareUtf8(a.userAgent, b.userAgent) || compareUtf8(a.key, b.key)));
}
