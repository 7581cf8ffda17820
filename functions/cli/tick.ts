/** `tick`: one pass by hand. */

import type { Cluster } from "../../shared/kube/port.ts";
import { withoutSecrets } from "../../shared/log.ts";
import { keepHeapSmall } from "../heap.ts";
import { runSetTick, troubleOfSets } from "../ordered-set-tick.ts";
import { runTick, troubleOf } from "../tick.ts";
import type { Command, Input } from "./command.ts";

export const TICK: Command = {
  name: "tick",
  group: "Try it and run it",
  summary: "one rollout pass by hand; prints its report as JSON",
  options: [
    { flags: "--sidecarset <NAME>", about: "only this SidecarSet" },
    { flags: "--statefulset <NAMESPACE/NAME>", about: "only this StatefulSet of apps.kruise.io" },
    { flags: "--dry-run", about: "write nothing, print what would be done" },
    { flags: "--deadline <DURATION>", about: "how long it may take; default: 55s" },
  ],
  examples: [
    "sidecarset tick",
    "sidecarset tick --sidecarset log-agent --dry-run",
    "sidecarset tick --statefulset shop/db",
  ],
  run: async (input, session) => {
    keepHeapSmall();
    const cluster = await session.cluster();
    const options = { deadlineMs: input.durationMs("deadline") ?? 55_000, dryRun: input.isSet("dry-run") };
    const { printed, trouble } = await ticked(cluster, options, input);
    session.screen.text(withoutSecrets(`${JSON.stringify(printed, null, 2)}\n`));
    for (const sentence of trouble) session.screen.warn(sentence);
    return trouble.length > 0 ? 1 : 0;
  },
};

interface Ticked {
  readonly printed: object;
  readonly trouble: readonly string[];
}

/** Without a name: all of both. A cluster that cannot be reached is told of once. */
async function ticked(
  cluster: Cluster,
  options: { readonly deadlineMs: number; readonly dryRun: boolean },
  input: Pick<Input, "text">,
): Promise<Ticked> {
  const [sidecarSet, set] = [input.text("sidecarset"), input.text("statefulset")];
  const ofSidecarSets = () => runTick(cluster, { ...options, ...(sidecarSet === undefined ? {} : { sidecarSet }) });
  const ofSets = () => runSetTick(cluster, { ...options, ...(set === undefined ? {} : { set }) });
  if (sidecarSet !== undefined) {
    const report = await ofSidecarSets();
    return { printed: report, trouble: troubleOf(report) };
  }
  if (set !== undefined) {
    const report = await ofSets();
    return { printed: report, trouble: troubleOfSets(report) };
  }
  const [report, orderedSets] = await Promise.all([ofSidecarSets(), ofSets()]);
  const trouble = troubleOf(report);
  return {
    printed: { ...report, orderedSets },
    trouble: trouble.length > 0 ? trouble : troubleOfSets(orderedSets),
  };
}
