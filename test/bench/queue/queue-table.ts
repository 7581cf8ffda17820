/** Prints the measurements of the queue as tables. */
import type { Cost, QueueMeasurements } from "../cost.ts";

export interface QueueFigures {
  /** name and version of the API server */
  readonly server: string;
  readonly sidecarSets: number;
  readonly rows: readonly SendRow[];
  readonly measured: QueueMeasurements;
  /** the row whose month is priced */
  readonly monthOf: number;
  /** dollars by item, and their sum */
  readonly settledMonth: Cost;
  readonly underWayMonth: Cost;
}

export interface SendRow {
  /** milliseconds that each answer of the server is delayed */
  readonly delayMs: number;
  /** best seconds, with one request after the other */
  readonly oneByOne: number;
  readonly atOnce: number;
}

export function queueTable(figures: QueueFigures): string {
  const { server, sidecarSets, rows, measured } = figures;
  const count = sidecarSets.toLocaleString("en-US");
  const lines = rows.map(
    ({ delayMs, oneByOne, atOnce }) =>
      `| ${delayMs} ms | ${oneByOne.toFixed(2)} s | ${atOnce.toFixed(2)} s | ${(oneByOne / atOnce).toFixed(1)} |`,
  );
  return [
    `| ${count} messages to ${server}, answers later by | one request after the other | as they are sent | times as fast |`,
    "|---|---|---|---|",
    ...lines,
    "",
    `A message about a settled SidecarSet: ${measured.passMs.toFixed(1)} ms, ${measured.passLogBytes.toFixed(0)} bytes of log. To send one: ${measured.sendMs.toFixed(2)} ms of computing.`,
    "",
    queueCostTable(figures),
    "",
  ].join("\n");
}

/** Returns the table in docs/deploy-scale.md. */
export function queueCostTable({ monthOf, settledMonth, underWayMonth }: QueueFigures): string {
  const count = monthOf.toLocaleString("en-US");
  const rows = Object.entries(settledMonth.parts).map(
    ([what, amount]) =>
      `| ${what} | $${amount.toFixed(2)} | $${(underWayMonth.parts[what] ?? Number.NaN).toFixed(2)} |`,
  );
  return [
    `| a month of ${count} SidecarSets in a queue | all settled | all under way |`,
    "|---|---|---|",
    ...rows,
    `| **all** | $${settledMonth.total.toFixed(2)} | $${underWayMonth.total.toFixed(2)} |`,
  ].join("\n");
}
