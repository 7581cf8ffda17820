/** `pause`, `resume`, `set partition`, `set max-unavailable` and `promote`: how far, and how fast, a rollout goes. */
import type { IntOrString } from "../../../shared/api/kubernetes.ts";
import { isMatched } from "../../../shared/core/pod/is-matched.ts";
import { partitionOf } from "../../../shared/core/rollout/select/budget.ts";
import { counted } from "../../../shared/go/counted.ts";
import { scaleIntOrPercent } from "../../../shared/go/int-or-percent.ts";
import { CliError } from "../../terminal/screen.ts";
import type { Command, Input } from "../command.ts";
import { changeSet, DRY_RUN, showUnchanged } from "../input/change-set.ts";
import { readFacts, readSet, type SetTarget, TARGET_ARGUMENT, targetOf } from "../input/read-set.ts";
import type { Session } from "../session.ts";
import { changeStatefulSet } from "../statefulset/change-statefulset.ts";
import { keyOf, readSetNamed } from "../statefulset/read-statefulset.ts";

interface Field {
  readonly field: "partition" | "maxUnavailable";
  readonly word: string;
  readonly summary: string;
  readonly details: string;
  /** the field's default */
  readonly byDefault: IntOrString;
}

function setField({ field, word, summary, details, byDefault }: Field): Command {
  return {
    name: `set ${word}`,
    group: "During a rollout",
    summary,
    details,
    arguments: [
      { name: "<NAME>", about: "of the SidecarSet", completion: "sidecarset" },
      { name: "<PODS>", about: "a number of pods, or a share of all as in 10%", completion: "none" },
    ],
    options: [DRY_RUN],
    outputs: ["table", "json", "yaml"],
    examples: [`sidecarset set ${word} log-agent 10%`, `sidecarset set ${word} log-agent 5 --dry-run`],
    run: async (input, session) => {
      const [name = "", text = ""] = input.arguments;
      const value = intOrShare(text, text);
      const cluster = await session.cluster();
      const sidecarSet = await readSet(cluster, name);
      const before = sidecarSet.spec.updateStrategy?.[field] ?? byDefault;
      if (String(before) === String(value)) {
        showUnchanged(session, { sidecarSet: name }, `${field} is ${value} already`);
        return 0;
      }
      const isStopped = field === "maxUnavailable" && (value === 0 || value === "0%");
      const notes = isStopped ? ["With 0 no pod is updated; sidecarset pause says the same more plainly."] : [];
      const change = { spec: { updateStrategy: { [field]: value } }, text: `${field} ${before} → ${value}`, notes };
      await changeSet(input, session, cluster, { sidecarSet, change });
      return 0;
    },
  };
}

export const SET_PARTITION = setField({
  field: "partition",
  word: "partition",
  summary: "how many pods stay at the old version; more than now holds the rollout there",
  details: "Pods that are updated already stay updated. promote only lowers it, and says how many pods that lets go.",
  byDefault: 0,
});

export const SET_MAX_UNAVAILABLE = setField({
  field: "maxUnavailable",
  word: "max-unavailable",
  summary: "how many pods a rollout may have down at once",
  details: "A smaller number holds for what is written from then on; pods that are down already come back first.",
  byDefault: 1,
});

export const PROMOTE: Command = {
  name: "promote",
  group: "During a rollout",
  summary: "lower the partition, to 0 or by a step, so that more pods are updated",
  arguments: [{ name: "<NAME>", about: "of the SidecarSet", completion: "sidecarset" }],
  options: [
    { flags: "--to <PARTITION>", about: "pods, or a share as in 30%, that stay old; default: 0" },
    { flags: "--step <PODS>", about: "so many pods, or such a share of all, more than now" },
    DRY_RUN,
  ],
  outputs: ["table", "json", "yaml"],
  examples: [
    "sidecarset promote log-agent",
    "sidecarset promote log-agent --step 10%",
    "sidecarset promote log-agent --to 5",
  ],
  run: async (input, session) => {
    const name = input.argument(0);
    const cluster = await session.cluster();
    const { sidecarSet, facts } = await readFacts(session, cluster, name);
    const total = facts.pods.filter((pod) => isMatched(pod, sidecarSet)).length;
    const strategy = sidecarSet.spec.updateStrategy;
    const [before, kept] = [strategy?.partition ?? 0, partitionOf(strategy, total)];
    const pinned = sidecarSet.spec.injectionStrategy?.revision;
    const isCanary = pinned?.policy === "Partial";
    const partition = wantedPartition(input, { before, kept, total, isCanary });
    const keptAfter = partitionOf({ ...strategy, partition }, total);
    if (keptAfter > kept)
      throw new CliError(
        `--to ${partition} keeps ${keptAfter} of ${counted(total, "pod")} old, more than the ${kept} of now; to hold a rollout up use pause`,
      );
    const isOver = isCanary && keptAfter === 0 && isNone(partition);
    if (String(partition) === String(before) && !isOver) {
      showUnchanged(session, { sidecarSet: name }, `the partition is ${before} already`);
      return 0;
    }
    const notes = [
      ...(strategy?.paused ? ["The rollout is paused: nothing moves before sidecarset resume."] : []),
      ...(strategy?.type === "NotUpdate" ? ["The update strategy is NotUpdate: nothing moves."] : []),
    ];
    const text = `partition ${before} → ${partition}: ${keptAfter} of ${counted(total, "pod")} stay at the old version`;
    const spec = { updateStrategy: { partition }, ...(isOver ? { injectionStrategy: { revision: null } } : {}) };
    const change = { spec, text: isOver ? `${text}, nor do new ones` : text, notes };
    await changeSet(input, session, cluster, { sidecarSet, change });
    return 0;
  },
};

interface Standing {
  readonly before: IntOrString;
  readonly kept: number;
  readonly total: number;
  /** new pods follow the partition too, if it is a percentage */
  readonly isCanary: boolean;
}

function isNone(partition: IntOrString): boolean {
  return partition === 0 || partition === "0%";
}

function wantedPartition(input: Input, standing: Standing): IntOrString {
  const [to, step] = [input.text("to"), input.text("step")];
  if (to !== undefined && step !== undefined) throw new CliError("choose one of --to and --step");
  if (step !== undefined) return stepped(step, standing);
  return to === undefined ? 0 : intOrShare(`--to ${to}`, to);
}

function stepped(text: string, { before, kept, total, isCanary }: Standing): IntOrString {
  const step = intOrShare(`--step ${text}`, text);
  if (isCanary && typeof step === "string" && typeof before === "string") {
    const share = Number.parseInt(before, 10) - Number.parseInt(step, 10);
    return share <= 0 ? 0 : `${share}%`;
  }
  const pods = scaleIntOrPercent(step, total) ?? 0;
  if (pods === 0) throw new CliError(`--step ${text} is no pod of ${total}; write a larger one`);
  return Math.max(0, kept - pods);
}

// Typed values that are a number of pods or a percentage.

/** The number or percentage. `where`: the option, as the error names it. @throws CliError */
export function intOrShare(where: string, text: string): IntOrString {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  if (/^\d{1,3}%$/.test(text) && Number.parseInt(text, 10) <= 100) return text;
  throw new CliError(`${where}: write a number of pods, or a share such as 10%`);
}

// `pause` and `resume`.

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
