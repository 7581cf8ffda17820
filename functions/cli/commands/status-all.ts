/** `status` without a name: every SidecarSet in one line; SidecarSets that need somebody come first. */
import { type SetRow, setRows } from "../../../shared/core/inspect/report/rows.ts";
import { natureOf, type RolloutVerdict } from "../../../shared/core/rollout/conditions/verdict.ts";
import { secondsBetween } from "../../../shared/go/seconds-between.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { age } from "../../terminal/duration.ts";
import type { Part, Screen } from "../../terminal/screen.ts";
import { printTable } from "../../terminal/table.ts";
import type { Input } from "../command.ts";
import { NOT_DONE, watch } from "../input/progress.ts";
import { listSets, nowText, readSet } from "../input/read-set.ts";
import type { Session } from "../session.ts";

export const NEEDS_SOMEBODY = 4;

export type Row = Omit<SetRow, "images">;

export async function statusOfAll(input: Input, session: Session): Promise<number> {
  const cluster = await session.cluster();
  const read = async () =>
    setRows(await listSets(cluster, input.text("selector"))).map(({ images, ...row }): Row => row);
  if (!input.isSet("watch")) {
    const rows = await read();
    session.print(rows, (screen) => showRows(rows, screen, input.text("selector") !== undefined));
    return rows.some(({ verdict }) => verdict !== undefined && natureOf(verdict).isTrouble) ? NEEDS_SOMEBODY : 0;
  }
  let before: readonly Row[] | undefined;
  return watch(input, session, async () => {
    const rows = await read();
    const show = showLater(rows, before);
    before = rows;
    return { data: rows, show, code: codeOf(rows) };
  });
}

/** In a file or a pipe only changes are printed, because whole lists would hide them. */
function showLater(rows: readonly Row[], before: readonly Row[] | undefined): (screen: Screen) => void {
  return (screen) => {
    if (before === undefined || screen.isTerminal) return showRows(rows, screen);
    const known = new Map(before.map((row) => [row.name, JSON.stringify(row)]));
    const now = nowText();
    for (const row of rows.filter((one) => known.get(one.name) !== JSON.stringify(one)))
      screen.line(...cellsOf(row, now).flatMap((cell) => [cell, "  "]));
    const names = new Set(rows.map(({ name }) => name));
    for (const { name } of before.filter((row) => !names.has(row.name))) screen.line(`${name}  is gone`);
  };
}

/**
 * Shows what the last pass wrote when these rights do not allow reading pods.
 * @throws `error` when it is about something else
 */
export async function showStored(session: Session, cluster: Cluster, name: string, error: unknown): Promise<void> {
  if (!isKubeError(error, 403)) throw error;
  session.screen.warn(
    `${error.message}. This is what the last pass wrote; sidecarset pods ${name} -n NAMESPACE lists pods of one namespace.`,
  );
  const rows = setRows([await readSet(cluster, name)]).map(({ images, ...row }): Row => row);
  session.print(rows[0], (screen) => showRows(rows, screen));
}

function showRows(rows: readonly Row[], screen: Screen, isChosen = false): void {
  if (rows.length === 0) {
    screen.line(isChosen ? "No SidecarSet has these labels." : "The cluster has no SidecarSets.");
    return;
  }
  const now = nowText();
  const cells = rows.map((row) => cellsOf(row, now));
  printTable(screen, HEADINGS, cells, "STATE");
}

export const HEADINGS = ["NAME", "UPDATED", "READY", "STATE", "SINCE", "WHY"];

/** Under HEADINGS. */
export function cellsOf(row: Row, now: string): readonly Part[] {
  const { name, matched, updated, ready, verdict, since, reason } = row;
  return [
    name,
    `${updated}/${matched}`,
    String(ready),
    verdict === undefined ? { text: "not seen yet", color: "yellow" } : { text: verdict, color: colorOf(verdict) },
    since === undefined ? "" : age(secondsBetween(since, now) ?? 0),
    reason,
  ];
}

function colorOf(verdict: RolloutVerdict) {
  const { isTrouble, isReady } = natureOf(verdict);
  if (isTrouble) return "red";
  return isReady ? "green" : "yellow";
}

/** undefined: at least one still moves without help. */
function codeOf(rows: readonly Row[]): number | undefined {
  if (rows.some(({ verdict }) => verdict === undefined || verdict === "Updating")) return undefined;
  return rows.every(({ verdict }) => verdict !== undefined && natureOf(verdict).isReady) ? 0 : NOT_DONE;
}
