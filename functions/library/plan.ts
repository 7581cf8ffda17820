/** The library: a rollout step by step until its end. Objects in, values out, no I/O. */
import type { ControllerRevision, KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../shared/api/names.ts";
import { planRollout } from "../../shared/core/rollout/plan/plan.ts";
import type { RolloutPlan } from "../../shared/core/rollout/plan/planned-step.ts";
import { COUNT, NOW, OBJECT, PASS, PODS, REVISIONS, readArguments, STEPS, within } from "./arguments.ts";
import { assumed, type PassInput, settingsOf, storedSidecarSet } from "./pass-input.ts";

export interface PlanInput extends PassInput {
  /** the SidecarSet from a manifest, or from the API server */
  readonly sidecarSet: KubernetesObject;
  /** the pods that the SidecarSet selects, from the API server, with their status */
  readonly pods: readonly Pod[];
  /** the SidecarSet's revisions; absent: none was recorded */
  readonly revisions?: readonly ControllerRevision[];
  /** the present time, RFC 3339, whole seconds, UTC */
  readonly now: string;
  /** seconds until a pod is ready after a change of images; absent: 5 */
  readonly readyAfterSeconds?: number;
  /** the largest number of steps; absent: 10,000 */
  readonly maxSteps?: number;
}

const ARGUMENTS = {
  ...PASS,
  sidecarSet: OBJECT,
  pods: PODS,
  now: NOW,
  revisions: REVISIONS,
  readyAfterSeconds: COUNT,
  maxSteps: STEPS,
};

/** The rollout plan. @throws TypeError that says in one sentence which argument is wrong */
export function plan(given: PlanInput): RolloutPlan {
  const input = readArguments("plan", given, ARGUMENTS);
  const { pods, revisions = [], now, readyAfterSeconds = 5, maxSteps } = input;
  const sidecarSet = within("plan", "sidecarSet", () => storedSidecarSet(input.sidecarSet));
  const observation = { sidecarSet, pods, revisions, ...assumed(input) };
  const limit = maxSteps === undefined ? {} : { maxSteps };
  const settings = settingsOf(input);
  return planRollout(observation, { now, kruiseNamespace: KRUISE_NAMESPACE, settings, readyAfterSeconds, ...limit });
}
