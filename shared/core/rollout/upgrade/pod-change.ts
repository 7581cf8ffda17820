/** One pod's change while it is planned, and the part that has to be written. */
import type { Container, Pod, PodCondition } from "../../../api/kubernetes.ts";
import {
  ALL_UPGRADABLE_REASON,
  IMMUTABLE_FIELD_REASON,
  NOT_UPGRADABLE_EVENT,
  RESET_CONTAINER_SUCCEED_EVENT,
  UPGRADABLE_CONDITION,
} from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { sortedGoJson } from "../../../go/json/go-json.ts";
import { isJsonObject, jsonOf } from "../../../go/json/json-object.ts";
import type { Action, ImageChange, PodPrecondition, PodPurpose, ResourceChange } from "../../actions.ts";

export type Annotations = Readonly<Record<string, string>>;

/** The plan for one pod, or the reason why there is none. */
export type PodPlan =
  | {
      readonly kind: "planned";
      readonly images: readonly ImageChange[];
      /** change of resources; absent: there is none */
      readonly resources?: readonly ResourceChange[];
      /** changed annotations, with whole values */
      readonly annotations: Annotations;
      /** absent: none change */
      readonly labels?: Annotations;
      /** the patch only takes the pod out of endpoints */
      readonly isDrain?: true;
      /** as in PatchPod */
      readonly isAllowed?: true;
    }
  | { readonly kind: "refused"; readonly message: string };

/** A container that gets an image, possibly the one it has. */
export interface Retarget {
  readonly container: string;
  readonly image: string;
  readonly annotations: Annotations;
  /** a native sidecar; absent: in spec.containers */
  readonly list?: "initContainers";
  /** the hot-upgrade sidecar, and the slot that works from now on */
  readonly working?: readonly [sidecar: string, slot: string];
}

export function containerOf(pod: Pod, name: string): Container | undefined {
  return pod.spec.containers.find((container) => container.name === name);
}

/** The images that really change. */
export function imageChanges(pod: Pod, retargets: readonly Retarget[]): readonly ImageChange[] {
  return retargets.flatMap(({ container, image, list }) => {
    const containers = pod.spec[list ?? "containers"] ?? [];
    const index = containers.findIndex(({ name }) => name === container);
    const from = containers[index]?.image ?? "";
    return from === image ? [] : [{ index, container, from, to: image, ...(list ? { list } : {}) }];
  });
}

export function changedAnnotations(before: Annotations | undefined, after: Annotations): Annotations {
  return Object.fromEntries(Object.entries(after).filter(([key, value]) => before?.[key] !== value));
}

// The content of a pod's SidecarSetUpgradable condition: one value for each SidecarSet that looked at the pod.

type ConditionPlan =
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

// The actions on one pod of a rollout, and their records, as data.

export function patchPod(pod: Pod, plan: PodPlan, purpose: PodPurpose, usesBudget: boolean): readonly Action[] {
  return plan.kind === "planned" ? [plannedPatch(pod, plan, purpose, usesBudget)] : [];
}

export function plannedPatch(
  pod: Pod,
  plan: Extract<PodPlan, { kind: "planned" }>,
  purpose: PodPurpose,
  usesBudget: boolean,
): Extract<Action, { kind: "PatchPod" }> {
  const { images, annotations, resources, labels, isAllowed } = plan;
  const isFirstAnnotation = pod.metadata?.annotations === undefined;
  return {
    kind: "PatchPod",
    purpose,
    pod: preconditionOf(pod),
    images,
    annotations,
    isFirstAnnotation,
    usesBudget,
    ...(resources ? { resources } : {}),
    ...(labels ? { labels } : {}),
    ...(isAllowed ? { isAllowed } : {}),
  };
}

export function preconditionOf({ metadata = {} }: Pod): PodPrecondition {
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = metadata;
  return { namespace, name, uid, resourceVersion };
}

export function flipEvent(pod: Pod): Action {
  const { namespace, name, uid } = preconditionOf(pod);
  return {
    kind: "RecordEvent",
    regarding: { kind: "Pod", namespace, name, uid },
    type: "Normal",
    reason: RESET_CONTAINER_SUCCEED_EVENT,
    message: "reset sidecar container image empty successfully",
  };
}

export function notUpgradableEvent({ metadata }: SidecarSet, count: number): readonly Action[] {
  if (count === 0) return [];
  return [
    {
      kind: "RecordEvent",
      regarding: { kind: "SidecarSet", name: metadata?.name ?? "", uid: metadata?.uid ?? "" },
      type: "Normal",
      reason: NOT_UPGRADABLE_EVENT,
      message: `SidecarSet in-place update detected ${count} not upgradable pod(s) in this round, will skip them.`,
    },
  ];
}
