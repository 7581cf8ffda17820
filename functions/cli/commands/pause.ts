/** `pause` and `resume`. */
import type { Command, Input } from "../command.ts";
import { changeSet, DRY_RUN, showUnchanged } from "../input/change-set.ts";
import { readSet, type SetTarget, TARGET_ARGUMENT, targetOf } from "../input/read-set.ts";
import type { Session } from "../session.ts";
import { changeStatefulSet } from "../statefulset/change-statefulset.ts";
import { keyOf, readSetNamed } from "../statefulset/read-statefulset.ts";

const COMMON = {
  group: "During a rollout",
  arguments: [TARGET_ARGUMENT],
  options: [DRY_RUN],
  outputs: ["table", "json", "yaml"],
} as const;

export const PAUSE: Command = {
  ...COMMON,
  name: "pause",
  summary: "stop a rollout where it is",
  details:
    "Once status.observedGeneration shows the change, no pod is updated any more. New pods get the newest version all the same.",
  examples: ["sidecarset pause log-agent", "sidecarset pause statefulset.apps.kruise.io/db -n shop"],
  run: (input, session) => setPaused(input, session, true),
};

export const RESUME: Command = {
  ...COMMON,
  name: "resume",
  summary: "go on with a paused rollout",
  examples: ["sidecarset resume log-agent"],
  run: (input, session) => setPaused(input, session, false),
};

async function setPaused(input: Input, session: Session, paused: boolean): Promise<number> {
  const target = targetOf(input.argument(0));
  if (target.kind === "statefulset") return pauseStatefulSet(input, session, { target, paused });
  const { name } = target;
  const cluster = await session.cluster();
  const sidecarSet = await readSet(cluster, name);
  if ((sidecarSet.spec.updateStrategy?.paused ?? false) === paused) {
    showUnchanged(session, { sidecarSet: name }, paused ? "is paused already" : "is not paused");
    return 0;
  }
  const change = { spec: { updateStrategy: { paused } }, text: paused ? "paused" : "resumed" };
  await changeSet(input, session, cluster, { sidecarSet, change });
  return 0;
}

/** `pause` and `resume` of an Advanced StatefulSet. */
interface PauseOptions {
  readonly target: SetTarget;
  readonly paused: boolean;
}

async function pauseStatefulSet(input: Input, session: Session, { target, paused }: PauseOptions): Promise<number> {
  const cluster = await session.cluster();
  const set = await readSetNamed(cluster, await keyOf(session, target));
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  if ((rollingUpdate?.paused ?? false) === paused) {
    const { namespace = "", name = "" } = set.metadata ?? {};
    showUnchanged(session, { namespace, statefulSet: name }, paused ? "is paused already" : "is not paused");
    return 0;
  }
  const strategy = { ...set.spec.updateStrategy, rollingUpdate: { ...rollingUpdate, paused } };
  const after = { ...set, spec: { ...set.spec, updateStrategy: strategy } };
  const notes = type === "OnDelete" ? ["The update strategy is OnDelete: pods are updated when they are deleted."] : [];
  await changeStatefulSet(input, session, cluster, { before: set, after, text: paused ? "paused" : "resumed", notes });
  return 0;
}
