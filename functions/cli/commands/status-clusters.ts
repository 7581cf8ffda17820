/** `status --all-clusters`: the SidecarSets of every cluster in one table, those first that need somebody. */
import { setRows } from "../../../shared/core/inspect/report/set-row.ts";
import { natureOf } from "../../../shared/core/rollout/conditions/verdict.ts";
import { withoutSecrets } from "../../../shared/log.ts";
import { within } from "../../../shared/webhook/server/deadline.ts";
import type { NamedCluster } from "../../server/named-cluster.ts";
import { CliError } from "../../terminal/error.ts";
import type { Part, Screen } from "../../terminal/screen.ts";
import { printTable } from "../../terminal/table.ts";
import type { Input } from "../command.ts";
import { listSets, nowText } from "../input/read-set.ts";
import type { Session } from "../session.ts";
import { cellsOf, HEADINGS, NEEDS_SOMEBODY, type Row } from "./status-all.ts";

export const NOT_READ = 5;

/** For each answer of an API server, where --request-timeout does not say. */
const REQUEST_MS = 10_000;
/** For all that is asked of one cluster: the others are not kept waiting for it any longer. */
const CLUSTER_MS = 15_000;

interface ClusterRows {
  readonly cluster: string;
  readonly rows: readonly Row[];
  /** why it could not be read */
  readonly problem?: string;
}

export async function statusOfClusters(input: Input, session: Session): Promise<number> {
  const odd = input.arguments[0] ?? (input.isSet("watch") ? "--watch" : undefined);
  if (odd !== undefined) throw new CliError(`--all-clusters looks once at every SidecarSet: leave out ${odd}`);
  const clusters = await session.clusters(REQUEST_MS);
  const read = await Promise.all(clusters.map((one) => readRows(one, input.text("selector"))));
  const all = read.toSorted((one, other) => rankOf(one) - rankOf(other));
  session.print(all, (screen) => show(all, screen));
  if (all.some(({ problem }) => problem !== undefined)) return NOT_READ;
  return all.some(({ rows }) => rows.some(isTrouble)) ? NEEDS_SOMEBODY : 0;
}

async function readRows({ name, connect }: NamedCluster, selector: string | undefined): Promise<ClusterRows> {
  try {
    const sets = await within(CLUSTER_MS, async () => listSets(await connect(), selector));
    return { cluster: name, rows: setRows(sets).map(({ images, ...row }): Row => row) };
  } catch (error) {
    return { cluster: name, rows: [], problem: withoutSecrets(error instanceof Error ? error.message : String(error)) };
  }
}

/** Clusters of which nothing is known come first, then those in trouble. */
function rankOf({ problem, rows }: ClusterRows): number {
  if (problem !== undefined) return 0;
  return rows.some(isTrouble) ? 1 : 2;
}

function isTrouble({ verdict }: Row): boolean {
  return verdict !== undefined && natureOf(verdict).isTrouble === true;
}

/** The worst rows first, of whichever cluster; what a cluster has nothing of stands at the end. */
function show(all: readonly ClusterRows[], screen: Screen): void {
  const now = nowText();
  const unread = all.flatMap(({ cluster, problem }): readonly (readonly Part[])[] =>
    problem === undefined ? [] : [[cluster, "", "", "", { text: "not read", color: "red" }, "", problem]],
  );
  const rows = all.flatMap(({ cluster, rows }) => rows.map((row) => ({ cluster, row })));
  const worstFirst = [...rows.filter(({ row }) => isTrouble(row)), ...rows.filter(({ row }) => !isTrouble(row))];
  const read = worstFirst.map(({ cluster, row }) => [cluster, ...cellsOf(row, now)]);
  const empty = all.flatMap(({ cluster, rows, problem }): readonly (readonly Part[])[] =>
    problem === undefined && rows.length === 0 ? [[cluster, "", "", "", "", "", "no SidecarSets"]] : [],
  );
  printTable(screen, ["CLUSTER", ...HEADINGS], [...unread, ...read, ...empty], "STATE");
}
