/**
 * `npm run figures` measures everything in docs/benchmarks.md and docs/deploy-*.md, part by part. It adds figures that
 * tests and simulation left in reports/ and test/soak/soak.json. It prints all figures, and writes figures.json and the
 * tables. `npm run figures -- rollout webhook` measures only these parts and keeps the others; `-- reports` measures
 * nothing.
 */
import { readFile, writeFile } from "node:fs/promises";
import { figureRows, notMeasured } from "./figure-rows.ts";
import { FIGURES as FILE, PARTS } from "./figures-parts.ts";
import { documentsOf, type Figures } from "./figures-table.ts";
import { takenFigures } from "./taken-figures.ts";
import type { FigureRow, Parts } from "./wanted-figure.ts";

/** Rounds to a few significant digits, so that a new run changes few digits. */
const rounded = (_: string, value: unknown) =>
  typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(3)) : value;

function lineOf({ what, by, is, of, atMost, atLeast, isMet }: FigureRow): string {
  const bound = atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`;
  return `${isMet ? "met   " : "MISSED"} ${by.padEnd(5)} ${what}: ${is}${of === undefined ? "" : ` of ${of}`}, ${bound}\n`;
}

/** The parts of the simulation run separately, so each has its own date. */
function withTaken(parts: Parts, taken: Parts): Parts {
  const simulation = { ...(parts["simulation"] ?? {}), ...(taken["simulation"] ?? {}) };
  return { ...parts, ...taken, ...(Object.keys(simulation).length > 0 ? { simulation } : {}) };
}

async function main(): Promise<number> {
  const given = process.argv.slice(2);
  const wanted = given.length === 0 ? Object.keys(PARTS) : given.filter((name) => name !== "reports");
  const unknown = wanted.find((name) => PARTS[name] === undefined);
  if (unknown !== undefined) {
    process.stderr.write(`${unknown} is no part of the figures: ${Object.keys(PARTS).join(", ")}, reports\n`);
    return 2;
  }
  let parts = JSON.parse(await readFile(FILE, "utf8")) as Parts;
  for (const name of wanted) parts = { ...parts, ...(await PARTS[name]?.()) };
  parts = withTaken(parts, await takenFigures());
  const { figures: _, targets: __, ...measured } = JSON.parse(JSON.stringify(parts, rounded)) as Parts;
  const all = { figures: figureRows(measured), ...measured };
  await writeFile(FILE, `${JSON.stringify(all, undefined, 2)}\n`);
  for (const [path, write] of documentsOf(all as unknown as Figures))
    await writeFile(path, write(await readFile(path, "utf8")));
  process.stdout.write(`${JSON.stringify(all)}\n`);
  process.stderr.write(all.figures.map(lineOf).join(""));
  for (const name of notMeasured(measured)) process.stderr.write(`not measured ${name}\n`);
  return 0;
}

process.exitCode = await main();
