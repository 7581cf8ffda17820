/** `pods`: which pod runs which revision. */

import type { Pod } from "../../../shared/api/kubernetes.ts";
import { listAll } from "../../../shared/controller/rollout/observe-pods.ts";
import { type Cluster, PODS } from "../../../shared/kube/port.ts";
import { CliError, type Part } from "../../terminal/screen.ts";
import { printTable } from "../../terminal/table.ts";
import type { Command } from "../command.ts";
import { type PodRow, podRows } from "../input/pod-rows.ts";
import { listSets, readFacts, readFactsWithin } from "../input/read-set.ts";
import { statePart } from "./status.ts";

export const PODS_COMMAND: Command = {
  name: "pods",
  group: "During a rollout",
  summary: "which pod runs which revision and images",
  arguments: [{ name: "[NAME]", about: "of one SidecarSet; default: all", completion: "sidecarset" }],
  options: [
    { flags: "--state <STATE>", about: "only these", choices: ["updated", "old", "unready"] },
    { flags: "-l, --selector <LABELS>", about: "only pods with these labels, as kubectl takes them" },
    { flags: "-A, --all-namespaces", about: "the default, without -n" },
  ],
  outputs: ["table", "json", "yaml"],
  examples: [
    "sidecarset pods log-agent",
    "sidecarset pods -n shop",
    "sidecarset pods log-agent --state unready -l app=web",
  ],
  run: async (input, session) => {
    const cluster = await session.cluster();
    const [name] = input.arguments;
    const names = name === undefined ? (await listSets(cluster)).map(({ metadata }) => metadata?.name ?? "") : [name];
    const rows: (PodRow & { readonly sidecarSet: string })[] = [];
    for (const one of names) {
      const namespace = session.givenNamespace;
      const { sidecarSet, facts } = await readFacts(session, cluster, one).catch((error: unknown) =>
        readFactsWithin(session, cluster, { name: one, namespace, error }),
      );
      rows.push(...podRows({ sidecarSet, facts }).map((row) => ({ sidecarSet: one, ...row })));
    }
    const only = input.isSet("all-namespaces") ? undefined : session.givenNamespace;
    const chosen = await chosenPods(cluster, input.text("selector"), only);
    const shown = rows.filter((row) => isShown(row, input.text("state"), only) && (chosen?.has(keyOf(row)) ?? true));
    session.print(shown, (screen) => {
      const ofAll = name === undefined ? ["SIDECARSET"] : [];
      const cells = shown.map((row): readonly Part[] => [
        row.namespace,
        row.name,
        ...(name === undefined ? [row.sidecarSet] : []),
        row.revision,
        statePart(row),
        Object.values(row.images).join(", "),
      ]);
      if (cells.length === 0) screen.line("No such pods.");
      else printTable(screen, ["NAMESPACE", "POD", ...ofAll, "REVISION", "STATE", "IMAGES"], cells, "POD");
    });
    return 0;
  },
};

/**
 * Pods by namespace and name; undefined: all pods.
 * @throws KubeError, also for labels that cannot be read
 */
async function chosenPods(
  cluster: Cluster,
  labelSelector: string | undefined,
  namespace: string | undefined,
): Promise<ReadonlySet<string> | undefined> {
  if (labelSelector === undefined) return undefined;
  const options = { labelSelector, ...(namespace === undefined ? {} : { namespace }) };
  const { items } = await listAll<Pod, string>(cluster, PODS, options, ({ metadata }) =>
    keyOf({ namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" }),
  );
  return new Set(items);
}

function keyOf({ namespace, name }: Pick<PodRow, "namespace" | "name">): string {
  return `${namespace}/${name}`;
}

function isShown({ namespace, isUpdated, isReady }: PodRow, state: string | undefined, only: string | undefined) {
  if (only !== undefined && namespace !== only) return false;
  switch (state) {
    case undefined:
      return true;
    case "updated":
      return isUpdated;
    case "old":
      return !isUpdated;
    case "unready":
      return !isReady;
    default:
      throw new CliError(`--state ${state}: write updated, old or unready`);
  }
}
