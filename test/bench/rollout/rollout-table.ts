/** Prints the figures of rollouts as a table for people. */
import type { RolloutFigures } from "./measure-rollout.ts";
import type { RolloutRow } from "./stage.ts";

const HEAD =
  "  pods  kind     pods/s   until ready s   CPU ms/pod   peak MB   B/pod   PATCH/pod   status/pod   conflicts   status writes";

function line(row: RolloutRow): string {
  const columns: [string, number][] = [
    [row.podsPerSecond.toFixed(0), 9],
    [row.seconds.toFixed(1), 16],
    [row.cpuPerPod.toFixed(2), 13],
    [row.peakMegabytes.toFixed(0), 10],
    [row.bytesPerPod.toFixed(0), 8],
    [row.podPatchesPerPod.toFixed(3), 12],
    [row.statusPatchesPerPod.toFixed(3), 13],
    [String(row.conflicts), 12],
    [String(row.sidecarSetStatusWrites), 16],
  ];
  return `${String(row.pods).padStart(6)}  ${row.kind.padEnd(6)}${columns.map(([text, width]) => text.padStart(width)).join("")}`;
}

export function rolloutTable(figures: RolloutFigures): string {
  const { rows, ofBareLoop, cpuExponent, secondsExponent, memorySlope } = figures;
  return [
    `${figures.rounds} rounds of ours and the bare loop in turn, ${figures.where} cluster, Node ${process.version}`,
    "",
    HEAD,
    ...rows.map(line),
    "",
    ...ofBareLoop.map(({ pods, ratio }) => `${pods} pods: ${ratio.toFixed(2)} of the bare loop's pods a second`),
    ...(ofBareLoop.length < 2
      ? []
      : [
          `computing grows by the power of ${cpuExponent.toFixed(2)}, time ${secondsExponent.toFixed(2)}; ${memorySlope.toFixed(2)} MB for each 1,000 pods`,
        ]),
    "",
  ].join("\n");
}
