/**
 * `npm run check:house`: how large the house is. Each figure has a limit, which is what was reached last: it may get
 * smaller, and whoever makes it so writes the smaller limit here. Lines may grow with features, up to a mark.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path/posix";
import { CAUSES } from "../../shared/core/rollout/causes.ts";
import { podLiterals } from "./pod-literals.ts";

interface Figure {
  readonly name: string;
  readonly value: number;
  readonly limit: number;
}

const LAYERS = ["shared/core", "shared/controller", "shared/webhook", "infra/local"] as const;
const CORE = "shared/core";

const files = execFileSync("git", ["ls-files", "functions", "shared", "infra"], { encoding: "utf8" })
  .split("\n")
  .filter((file) => file.endsWith(".ts") && !file.startsWith("infra/local/test/"));
const imports = new Map(files.map((file) => [file, importsOf(file)]));

/** Of files of ours, types included. */
function importsOf(file: string): readonly string[] {
  const targets = [...readFileSync(file, "utf8").matchAll(/(?:from|import) "(\.[^"]+)";/g)];
  return targets.map(([, path = ""]) => normalize(join(dirname(file), path)));
}

/** The folder of a layer that a file stands in; undefined: it stands beside them, or elsewhere. */
function roomOf(file: string, layer: string): string | undefined {
  const [room, ...rest] = file.startsWith(`${layer}/`) ? file.slice(layer.length + 1).split("/") : [];
  return rest.length > 0 ? room : undefined;
}

const isEmbedded = (file: string) => file.startsWith("infra/local/");

function arrows(layer: string): ReadonlySet<string> {
  const found = new Set<string>();
  for (const [file, targets] of imports)
    for (const target of targets) {
      const [from, to] = [roomOf(file, layer), roomOf(target, layer)];
      if (from !== undefined && to !== undefined && from !== to) found.add(`${from} → ${to}`);
    }
  return found;
}

/** In files, from one that nothing imports to one that imports nothing. */
function longestPath(): number {
  const known = new Map<string, number>();
  const from = (file: string): number => {
    const length = known.get(file) ?? 1 + Math.max(0, ...(imports.get(file) ?? []).map(from));
    known.set(file, length);
    return length;
  };
  return Math.max(...files.map(from));
}

const linesOf = (file: string) => readFileSync(file, "utf8").split("\n").length - 1;

/** Of files for which that holds. */
function lines(isIt: (file: string) => boolean): number {
  return files.filter(isIt).reduce((sum, file) => sum + linesOf(file), 0);
}

function rows(): number {
  const [, section = ""] = readFileSync("ARCHITECTURE.md", "utf8").split("## Where is the rule for …");
  return (section.split("\n## ")[0] ?? "").split("\n").filter((line) => line.startsWith("| ")).length - 1;
}

/** Lines of ARCHITECTURE.md where a screen is 110 columns wide; three screens of 60 lines are 180. */
function architectureLines(): number {
  const wrapped = (line: string) => Math.max(1, Math.ceil(line.length / 110));
  return readFileSync("ARCHITECTURE.md", "utf8")
    .split("\n")
    .map(wrapped)
    .reduce((sum, count) => sum + count, 0);
}

/** Of pods, the only one. */
const BUILDER = "test/support/objects.ts";

/** The book of holds names each cause once; other places are to take it from there. */
function placesThatNameACause(places: RegExp): number {
  const cause = new RegExp(`"(?:${Object.keys(CAUSES).join("|")})"`, "g");
  const those = files.filter((file) => places.test(file));
  return those.reduce((sum, file) => sum + (readFileSync(file, "utf8").match(cause)?.length ?? 0), 0);
}
const BOOK = /^shared\/core\/rollout\/(?:book|pass-words)\.ts$/;
const BESIDE_THE_BOOK = /^shared\/core\/inspect|^functions/;

/** Pods that tests write out. */
function writtenPods(): number {
  const tests = execFileSync("git", ["ls-files", "test"], { encoding: "utf8" }).split("\n");
  const others = tests.filter((file) => file.endsWith(".ts") && file !== BUILDER);
  return others.reduce((sum, file) => sum + podLiterals(file, readFileSync(file, "utf8")), 0);
}

/** What every package has is not counted. */
const OF_A_PACKAGE = ["README.md", "package.json", "test", "node_modules"];
const siblings = (layer: string) => readdirSync(layer).filter((name) => !OF_A_PACKAGE.includes(name)).length;
const LIMITS: Readonly<Record<(typeof LAYERS)[number], number>> = {
  "shared/core": 13,
  "shared/controller": 10,
  "shared/webhook": 4,
  "infra/local": 10,
};

const figures: readonly Figure[] = [
  ...LAYERS.map((layer) => ({ name: `siblings in ${layer}`, value: siblings(layer), limit: LIMITS[layer] })),
  { name: "rooms of the core", value: readdirSync(CORE).filter((name) => !name.includes(".")).length, limit: 10 },
  { name: "arrows between rooms of the core", value: arrows(CORE).size, limit: 23 },
  { name: "arrows between rooms of the controller", value: arrows("shared/controller").size, limit: 10 },
  { name: "longest path of imports", value: longestPath(), limit: 32 },
  { name: "files of more than 400 lines", value: files.filter((file) => linesOf(file) > 400).length, limit: 0 },
  {
    name: "places that name a cause of a hold beside the book",
    value: placesThatNameACause(BESIDE_THE_BOOK),
    limit: 0,
  },
  { name: "lines of TypeScript that are shipped", value: lines((file) => !isEmbedded(file)), limit: 70_606 },
  { name: "lines of the embedded cluster", value: lines(isEmbedded), limit: 7_852 },
  { name: "rows of “Where is the rule for …”", value: rows(), limit: 8 },
  { name: "lines of ARCHITECTURE.md on a screen of 110 columns", value: architectureLines(), limit: 140 },
  { name: "pods that tests write out beside test/support/objects.ts", value: writtenPods(), limit: 8 },
];

for (const { name, value, limit } of figures)
  process.stdout.write(`${value > limit ? "GREW " : ""}${name}: ${value} (at most ${limit})\n`);
const isEmpty =
  files.length === 0 ||
  [...imports.values()].flat().length === 0 ||
  placesThatNameACause(BOOK) < Object.keys(CAUSES).length / 2;
if (isEmpty) process.stdout.write("no files, no imports or no causes were seen\n");
const isWrong = ({ value, limit }: Figure) => value > limit || (value === 0 && limit > 0);
process.exitCode = isEmpty || figures.some(isWrong) ? 1 : 0;
