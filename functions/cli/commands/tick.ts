/** `tick`: one pass by hand, or one pass after another. */

import type { Cluster } from "../../../shared/kube/port.ts";
import { createLog, withoutSecrets } from "../../../shared/log.ts";
import { type Environment, hasClusters } from "../../../shared/settings/config.ts";
import { keepHeapSmall } from "../../lambda/heap.ts";
import type { NamedCluster } from "../../server/named-cluster.ts";
import { runSetTick, runTick, troubleOf, troubleOfSets } from "../../server/tick.ts";
import { withTraces } from "../../server/tracing.ts";
import { CliError } from "../../terminal/screen.ts";
import type { Command, Input } from "../command.ts";
import type { Session } from "../session.ts";
import { portNumber, restOf } from "./serve.ts";

export const TICK: Command = {
  name: "tick",
  group: "Try it and run it",
  summary: "one rollout pass by hand, or one after the other; prints its report as JSON",
  options: [
    { flags: "--sidecarset <NAME>", about: "only this SidecarSet" },
    { flags: "--statefulset <NAMESPACE/NAME>", about: "only this StatefulSet of apps.kruise.io" },
    { flags: "--cluster <NAME>", about: "this one, of the table CLUSTERS or of the contexts of the kubeconfig" },
    { flags: "--all-clusters", about: "side by side over every one of them" },
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
    "sidecarset tick --all-clusters",
  ],
  run: async (input, session) => {
    const tickMs = restOf(input, "every");
    const clusters = await chosen(input, session);
    if (tickMs !== undefined) return await tickOn(input, { kubeconfig: session.kubeconfig, clusters, tickMs });
    keepHeapSmall();
    const { printed, trouble } = await withTraces(ERRORS, () => tickedAmong(input, session, clusters));
    session.screen.text(withoutSecrets(`${JSON.stringify(printed, null, 2)}\n`));
    for (const sentence of trouble) session.screen.warn(sentence);
    return trouble.length > 0 ? 1 : 0;
  },
};

/** A log to stderr, because standard output holds only the report. */
const ERRORS = createLog("warn", (line) => process.stderr.write(line));

/** The chosen clusters; undefined: the cluster that every command uses. @throws CliError */
async function chosen(input: Input, session: Session): Promise<readonly NamedCluster[] | undefined> {
  const [name, isAll] = [input.text("cluster"), input.isSet("all-clusters")];
  if (name !== undefined && isAll) throw new CliError("--cluster and --all-clusters exclude each other");
  if (name !== undefined) return [await session.namedCluster(name)];
  const one = ["sidecarset", "statefulset"].find((option) => input.text(option) !== undefined);
  if (isAll && one !== undefined)
    throw new CliError(`--all-clusters and --${one} exclude each other: say in which it is, by --cluster NAME`);
  if (isAll) return session.clusters();
  if (session.kubeconfig !== undefined || !hasClusters()) return undefined;
  throw new CliError("CLUSTERS has several clusters: write --cluster NAME, or --all-clusters");
}

/**
 * Result of one cluster alone, or all results by name when all passes are done. All passes start with the same time,
 * and none waits for another.
 */
async function tickedAmong(
  input: Input,
  session: Session,
  clusters: readonly NamedCluster[] | undefined,
): Promise<Ticked> {
  const options = { deadlineMs: input.durationMs("deadline") ?? 55_000, dryRun: input.isSet("dry-run") };
  if (clusters === undefined) return ticked(await session.cluster(), options, input);
  const [only] = clusters;
  if (only !== undefined && !input.isSet("all-clusters"))
    return ticked(await only.connect(), { ...options, env: only.env?.() }, input);
  const all = await Promise.all(
    clusters.map(async ({ name, connect, env }) => {
      const ticking = async () => ticked(await connect(), { ...options, env: env?.() }, input);
      const { printed, trouble } = await ticking().catch(failed);
      return { entry: [name, printed] as const, trouble: trouble.map((sentence) => `cluster ${name}: ${sentence}`) };
    }),
  );
  const printed = { clusters: Object.fromEntries(all.map(({ entry }) => entry)) };
  return { printed, trouble: all.flatMap(({ trouble }) => trouble) };
}

function failed(error: unknown): Ticked {
  const problem = error instanceof Error ? error.message : String(error);
  return { printed: { problem }, trouble: [problem] };
}

interface On {
  readonly kubeconfig: string | undefined;
  readonly clusters: readonly NamedCluster[] | undefined;
  readonly tickMs: number;
}

/** Runs passes until a signal. It answers no webhooks, so it may have rights that webhooks must not have. */
async function tickOn(input: Input, on: On): Promise<number> {
  const odd = ["sidecarset", "statefulset", "deadline"].find((option) => input.text(option) !== undefined);
  if (odd !== undefined || input.isSet("dry-run"))
    throw new CliError(`--every and --${odd ?? "dry-run"} exclude each other: passes go on for all there is`);
  const port = input.text("metrics-port");
  if (port !== undefined && on.clusters !== undefined && on.clusters.length > 1)
    throw new CliError("--metrics-port is for one cluster: run one process for each, with --cluster NAME");
  const metricsPort = port === undefined ? undefined : portNumber("--metrics-port", port);
  const { tickUntilSignal } = await import("../../server/ticks.ts");
  await tickUntilSignal({ ...on, metricsPort });
  return 0;
}

interface Ticked {
  readonly printed: object;
  readonly trouble: readonly string[];
}

/** Makes a pass. Without a name it covers all objects of both kinds. An unreachable cluster is reported once. */
async function ticked(
  cluster: Cluster,
  options: { readonly deadlineMs: number; readonly dryRun: boolean; readonly env?: Environment | undefined },
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
