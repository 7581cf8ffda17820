/** `tick`: one pass by hand, or one after the other. */

import type { Cluster } from "../../../shared/kube/port.ts";
import { withoutSecrets } from "../../../shared/log.ts";
import { keepHeapSmall } from "../../lambda/heap.ts";
import { runSetTick, troubleOfSets } from "../../server/statefulset-tick.ts";
import { runTick, troubleOf } from "../../server/tick.ts";
import type { Command, Input } from "../command.ts";
import { CliError } from "../error.ts";
import type { Session } from "../session.ts";
import { portNumber, restOf } from "./serve.ts";

export const TICK: Command = {
  name: "tick",
  group: "Try it and run it",
  summary: "one rollout pass by hand, or one after the other; prints its report as JSON",
  options: [
    { flags: "--sidecarset <NAME>", about: "only this SidecarSet" },
    { flags: "--statefulset <NAMESPACE/NAME>", about: "only this StatefulSet of apps.kruise.io" },
    { flags: "--dry-run", about: "write nothing, print what would be done" },
    { flags: "--deadline <DURATION>", about: "how long it may take; default: 55s" },
    { flags: "--every <DURATION>", about: "goes on until it is stopped, from one pass to the next; logs instead" },
    { flags: "--metrics-port <PORT>", about: "with --every: plain HTTP with /metrics for Prometheus; default: none" },
  ],
  examples: [
    "sidecarset tick",
    "sidecarset tick --sidecarset log-agent --dry-run",
    "sidecarset tick --statefulset shop/db",
    "sidecarset tick --every 10s",
  ],
  run: async (input, session) => {
    const tickMs = restOf(input, "every");
    if (tickMs !== undefined) return await tickOn(input, session, tickMs);
    keepHeapSmall();
    const cluster = await session.cluster();
    const options = { deadlineMs: input.durationMs("deadline") ?? 55_000, dryRun: input.isSet("dry-run") };
    const { printed, trouble } = await ticked(cluster, options, input);
    session.screen.text(withoutSecrets(`${JSON.stringify(printed, null, 2)}\n`));
    for (const sentence of trouble) session.screen.warn(sentence);
    return trouble.length > 0 ? 1 : 0;
  },
};

/** By somebody who need not answer webhooks, and so may do what they may not. */
async function tickOn(input: Input, { kubeconfig }: Session, tickMs: number): Promise<number> {
  const odd = ["sidecarset", "statefulset", "deadline"].find((option) => input.text(option) !== undefined);
  if (odd !== undefined || input.isSet("dry-run"))
    throw new CliError(`--every and --${odd ?? "dry-run"} exclude each other: passes go on for all there is`);
  const port = input.text("metrics-port");
  const metricsPort = port === undefined ? undefined : portNumber("metrics-port", port);
  const { tickUntilSignal } = await import("../../server/ticks.ts");
  await tickUntilSignal({ kubeconfig, tickMs, metricsPort });
  return 0;
}

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
