/** `npm run bench -- core [--json]`: prints a table, or one JSON object. */
import { type CoreFigures, measureCore } from "./core.ts";

const ROUNDS = 15;
const rounded = (value: number, digits = 1) => value.toFixed(digits).padStart(10);

function table(figures: CoreFigures): string {
  const { admissions, decideMilliseconds } = figures;
  return [
    `pod of ${figures.bodyBytes} bytes, patch of ${figures.patchBytes} bytes; medians of ${ROUNDS} rounds, Node ${process.version}`,
    "",
    "                                      µs  × floor     bytes",
    `floor: parse and stringify    ${rounded(figures.floorMicroseconds)}`,
    ...admissions.map(
      ({ sidecarSets, microseconds, timesFloor, bytes }) =>
        `${`+ admission, ${sidecarSets} SidecarSets`.padEnd(30)}${rounded(microseconds)}${timesFloor.toFixed(2).padStart(9)}${String(bytes ?? "").padStart(10)}`,
    ),
    `growth exponent, 1 to 200     ${rounded(figures.admissionExponent, 3)}`,
    `a SidecarSet: defaults, hashes${rounded(figures.mutateSidecarSetMicroseconds)}`,
    "",
    "                                      ms",
    `index of 50000 SidecarSets    ${rounded(figures.indexMilliseconds)}`,
    ...decideMilliseconds.map(
      ({ pods, milliseconds }) => `${`decide, ${pods} pods`.padEnd(30)}${rounded(milliseconds)}`,
    ),
    `growth exponent of decide     ${rounded(figures.decideExponent, 3)}`,
    "",
  ].join("\n");
}

const [what, ...flags] = process.argv.slice(2);
if (what !== "core") {
  process.stderr.write(`${what ?? "nothing"}: there is one benchmark, core: npm run bench -- core [--json]\n`);
  process.exitCode = 2;
} else {
  const figures = measureCore(ROUNDS);
  process.stdout.write(flags.includes("--json") ? `${JSON.stringify(figures)}\n` : table(figures));
}
