/** `promote`: fewer pods stay at the old version, down to none. */

import type { IntOrString } from "../../../shared/api/kubernetes.ts";
import { isMatched } from "../../../shared/core/pod/is-matched.ts";
import { partitionOf } from "../../../shared/core/rollout/select/budget.ts";
import { counted } from "../../../shared/go/counted.ts";
import { scaleIntOrPercent } from "../../../shared/go/int-or-percent.ts";
import { CliError } from "../../terminal/error.ts";
import type { Command, Input } from "../command.ts";
import { changeSet, DRY_RUN, showUnchanged } from "../input/change-set.ts";
import { readFacts } from "../input/read-set.ts";
import { intOrShare } from "./set-strategy.ts";

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
  /** new pods go by the partition too, as long as it is a share */
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
