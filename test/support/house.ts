/**
 * `npm run check:house` prints how large the house is. Each figure has a limit, which is its last value. A figure may
 * only get smaller: then write the smaller limit here. Lines may grow with features, up to a mark. A goal is the wanted
 * value; docs/decisions/0013-size-of-the-house.md gives the reason for each distance from it.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path/posix";
import { CAUSES } from "../../shared/core/rollout/hold.ts";
import { podLiterals } from "./pod-literals.ts";

interface Figure {
  readonly name: string;
  readonly value: number;
  readonly limit: number;
  /** wanted value; absent: the limit is the goal */
  readonly goal?: number;
}

const LAYERS = ["shared/core", "shared/controller", "shared/webhook", "infra/local"] as const;
const CORE = "shared/core";

const files = execFileSync("git", ["ls-files", "functions", "shared", "infra"], { encoding: "utf8" })
  .split("\n")
  .filter((file) => file.endsWith(".ts") && !file.startsWith("infra/local/test/"));
const imports = new Map(files.map((file) => [file, importsOf(file)]));

/** Returns the repository's files that this file imports, with types. */
function importsOf(file: string): readonly string[] {
  const targets = [...readFileSync(file, "utf8").matchAll(/(?:from|import) "(\.[^"]+)";/g)];
  return targets.map(([, path = ""]) => normalize(join(dirname(file), path)));
}

/** Returns the folder of a layer that contains a file; undefined: the file is in none of its folders. */
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

/**
 * Returns the number of files on the longest import path, from one that nothing imports to one that imports nothing.
 */
function longestPath(): number {
  const known = new Map<string, number>();
  const from = (file: string): number => {
    const length = known.get(file) ?? 1 + Math.max(0, ...(imports.get(file) ?? []).map(from));
    known.set(file, length);
    return length;
  };
  return Math.max(...files.map(from));
}

const read = (file: string) => readFileSync(file, "utf8");
const linesOf = (file: string) => readFileSync(file, "utf8").split("\n").length - 1;

/** Counts the lines of the files that `isIt` accepts. */
function lines(isIt: (file: string) => boolean): number {
  return files.filter(isIt).reduce((sum, file) => sum + linesOf(file), 0);
}

function rows(): number {
  const [, section = ""] = readFileSync("ARCHITECTURE.md", "utf8").split("## Where is the rule for …");
  return (section.split("\n## ")[0] ?? "").split("\n").filter((line) => line.startsWith("| ")).length - 1;
}

/** Counts the lines of ARCHITECTURE.md on a screen of 110 columns; three screens of 60 lines are 180. */
function architectureLines(): number {
  const wrapped = (line: string) => Math.max(1, Math.ceil(line.length / 110));
  return readFileSync("ARCHITECTURE.md", "utf8")
    .split("\n")
    .map(wrapped)
    .reduce((sum, count) => sum + count, 0);
}

/** The only file that writes pods out. */
const BUILDER = "test/support/objects.ts";

/** Counts causes that these places name themselves: only the book of holds may name a cause. */
function placesThatNameACause(places: RegExp): number {
  const cause = new RegExp(`"(?:${Object.keys(CAUSES).join("|")})"`, "g");
  const those = files.filter((file) => places.test(file));
  return those.reduce((sum, file) => sum + (readFileSync(file, "utf8").match(cause)?.length ?? 0), 0);
}

/**
 * Counts places that depend on a hold's name. Decisions, passes, readers and the command line must take a hold's
 * effects from its two rows. Allowed: decide.ts with the order of holds, and pass-trouble.ts with the holds of a pass
 * itself.
 */
function branchesOnHolds(): number {
  const those = files.filter(
    (file) =>
      /^shared\/controller\/rollout|^shared\/core\/(?:inspect|rollout)|^functions\/cli\/(?:input|commands)/.test(
        file,
      ) &&
      !/^shared\/core\/rollout\/(?:hold|hold-effects|book|pass-words|pass-trouble|rules\/.*-(?:words|text))\.ts$/.test(
        file,
      ),
  );
  const branch = /\bhold [!=]== "|Set<Hold>|: (?:readonly Hold\[\]|Partial<Record<Hold, .*>>) = |\[hold as string\]/g;
  return those.reduce((sum, file) => sum + (readFileSync(file, "utf8").match(branch)?.length ?? 0), 0);
}
const BOOK = /^shared\/core\/rollout\/(?:book|pass-words)\.ts$/;
const BESIDE_THE_BOOK = /^shared\/core\/inspect|^functions/;

/** Counts the pods that tests write out. */
function writtenPods(): number {
  const tests = execFileSync("git", ["ls-files", "test"], { encoding: "utf8" }).split("\n");
  const others = tests.filter((file) => file.endsWith(".ts") && file !== BUILDER);
  return others.reduce((sum, file) => sum + podLiterals(file, readFileSync(file, "utf8")), 0);
}

/** Names that every package has, which do not count. */
const OF_A_PACKAGE = ["README.md", "package.json", "tsconfig.types.json", "test", "node_modules"];
const siblings = (layer: string) => readdirSync(layer).filter((name) => !OF_A_PACKAGE.includes(name)).length;
const LIMITS: Readonly<Record<(typeof LAYERS)[number], number>> = {
  "shared/core": 13,
  "shared/controller": 9,
  "shared/webhook": 4,
  "infra/local": 10,
};

const SMALL = 30;
const importers = new Map<string, number>();
for (const target of [...imports.values()].flatMap((targets) => [...new Set(targets)]))
  importers.set(target, (importers.get(target) ?? 0) + 1);

/** Counts the names that the top level of several files defines. */
function sharedNames(definition: RegExp): number {
  const homes = new Map<string, number>();
  for (const file of files) {
    const names = [...readFileSync(file, "utf8").matchAll(definition)].map(([, name, other]) => name ?? other ?? "");
    for (const name of new Set(names)) homes.set(name, (homes.get(name) ?? 0) + 1);
  }
  return [...homes.values()].filter((count) => count > 1).length;
}

const FUNCTION = /^(?:export )?(?:async )?function\*? (\w+)|^(?:export )?const (\w+) = (?:async )?(?:<[^=]*>)?\(/gm;
const TYPE = /^(?:export )?(?:interface|type) (\w+)/gm;
/** Returns the definition without the names that only their own file can use. */
const exported = (definition: RegExp) => new RegExp(definition.source.replaceAll("(?:export )?", "export "), "gm");

/** Top rooms, the lowest first, in the same order as TOP of dependency-cruiser; functions and builds come last. */
const TOP = [
  ...["shared/api/", "shared/go/", "shared/core/", "shared/(?:log|cluster-log|time-text|doings)[.]ts$", "shared/aws/"],
  ...["shared/settings/", "shared/kube/", "shared/approval/", "shared/(?:controller|webhook)/", "shared/metrics/"],
  ...["shared/tracing/", "shared/install/", "functions/(?!cli)", "functions/cli", "infra/"],
].map((room) => new RegExp(`^${room}`));

const roomAt = (file: string) => TOP.findIndex((room) => room.test(file));

/**
 * Returns pairs of top rooms of which the lower one imports the upper one. Only the command line may import the demo.
 */
function upwardArrows(): ReadonlySet<string> {
  const found = new Set<string>();
  for (const [file, targets] of imports)
    for (const target of targets)
      if (roomAt(file) < roomAt(target) && !target.startsWith("infra/demo/"))
        found.add(`${TOP[roomAt(file)]} → ${TOP[roomAt(target)]}`);
  return found;
}

/** Returns the number of our own frames between an event and its work, which test/functions/frames.test.ts limits. */
function framesOf(way: "injection" | "patch"): number {
  const [, most] = new RegExp(`const MOST = .*\\b${way}: (\\d+)`).exec(read("test/functions/frames.test.ts")) ?? [];
  return Number(most ?? 0);
}

/** Counts the matches in the product's code. */
const matches = (pattern: RegExp) => files.reduce((sum, file) => sum + (read(file).match(pattern)?.length ?? 0), 0);

/** Counts the words that docs/concepts.md explains. */
function glossary(): number {
  const [, section = ""] = read("docs/concepts.md").split("\n## Words\n");
  const table = (section.split("\n## ")[0] ?? "").split("\n").filter((line) => line.startsWith("| "));
  return Math.max(0, table.length - 1);
}

const words = (paths: readonly string[]) =>
  paths.flatMap((path) => readFileSync(path, "utf8").split(/\s+/).filter(Boolean)).length;
const pages = execFileSync("git", ["ls-files", "docs/*.md"], { encoding: "utf8" }).split("\n").filter(Boolean);

/** Pages that the code mostly prints, or whose table a test compares with the code: readers look up one row there. */
const GENERATED = ["annotations", "benchmarks", "check", "reasons"];
const LONG = 1_200;
const written = pages.filter((page) => !GENERATED.includes(page.replace(/^docs\/|\.md$/g, "")));
const lengths = written.map((page) => words([page]));

/** Returns doc comments by file, each as one line. */
function docComments(...places: readonly string[]): readonly string[] {
  const sources = execFileSync("git", ["ls-files", ...places], { encoding: "utf8" }).split("\n");
  return sources
    .filter((file) => /\.m?[tj]s$/.test(file))
    .flatMap((file) => [...readFileSync(file, "utf8").matchAll(/\/\*\*(\s(?:[^*]|\*(?!\/))*)\*\//g)])
    .map(([, text = ""]) => text.replaceAll(/\s*\n\s*\*?\s*/g, " ").trim());
}

/** Matches doc comments that open with a habit or a pronoun instead of a noun phrase or a verb. */
const HABIT =
  /^(?:Decides|What|Of|By|Those|Their|Each|Whose|Where|Whether|It|Its|They|This|These)\b|\b(?:of ours|and the like)\b/;

const MOST_WORDS = 25;
const sentences = (text: string) => text.split(/(?<=[.!?])\s+(?=[A-Z`"(0-9])|\s(?=@[a-z])/);
const isLong = (sentence: string) => sentence.split(/\s+/).length > MOST_WORDS;

const figures: readonly Figure[] = [
  {
    name: "lines to read before a first change: shared",
    value: lines((file) => file.startsWith("shared/")),
    limit: 61_547,
    goal: 22_000,
  },
  { name: "files", value: files.length, limit: 568, goal: 560 },
  {
    name: `files of at most ${SMALL} lines`,
    value: files.filter((file) => linesOf(file) <= SMALL).length,
    limit: 36,
    goal: 40,
  },
  {
    name: "files with one importer",
    value: files.filter((file) => importers.get(file) === 1).length,
    limit: 114,
    goal: 120,
  },
  { name: "names of functions that several files export", value: sharedNames(exported(FUNCTION)), limit: 45 },
  { name: "names of types that several files export", value: sharedNames(exported(TYPE)), limit: 39 },
  { name: "names of functions that several files define", value: sharedNames(FUNCTION), limit: 488, goal: 120 },
  { name: "names of types that several files define", value: sharedNames(TYPE), limit: 146, goal: 30 },
  { name: "arrows up between top rooms", value: upwardArrows().size, limit: 0 },
  { name: "words of docs", value: words(pages), limit: 45_000, goal: 45_000 },
  {
    name: "words of the longest page of docs that is not generated",
    value: Math.max(...lengths),
    limit: LONG,
    goal: LONG,
  },
  {
    name: `pages of docs of more than ${LONG} words`,
    value: lengths.filter((count) => count > LONG).length,
    limit: 0,
    goal: 0,
  },
  { name: "words of CONTRIBUTING.md", value: words(["CONTRIBUTING.md"]), limit: 1_200 },
  { name: "lines of AGENTS.md", value: readFileSync("AGENTS.md", "utf8").split("\n").length - 1, limit: 120 },
  ...LAYERS.map((layer) => ({ name: `siblings in ${layer}`, value: siblings(layer), limit: LIMITS[layer] })),
  { name: "rooms of the core", value: readdirSync(CORE).filter((name) => !name.includes(".")).length, limit: 10 },
  { name: "arrows between rooms of the core", value: arrows(CORE).size, limit: 22 },
  { name: "arrows between rooms of the controller", value: arrows("shared/controller").size, limit: 10 },
  { name: "longest path of imports", value: longestPath(), limit: 31, goal: 20 },
  { name: "files of more than 400 lines", value: files.filter((file) => linesOf(file) > 400).length, limit: 0 },
  {
    name: "places that name a cause of a hold beside the book",
    value: placesThatNameACause(BESIDE_THE_BOOK),
    limit: 0,
  },
  {
    name: "places that branch on the name of a hold, or list holds, beside its two rows",
    value: branchesOnHolds(),
    limit: 0,
  },
  {
    name: "lines of TypeScript that are shipped",
    value: lines((file) => !isEmbedded(file)),
    limit: 81_472,
    goal: 62_000,
  },
  {
    name: "own frames from Lambda's event to the injected container, by test/functions/frames.test.ts",
    value: framesOf("injection"),
    limit: 12,
    goal: 13,
  },
  {
    name: "own frames from a pass to the PATCH of a pod, by the same test",
    value: framesOf("patch"),
    limit: 20,
    goal: 20,
  },
  { name: "functions that take a round's snapshot", value: matches(/\bsnapshot: Snapshot\b/g), limit: 69, goal: 12 },
  {
    name: "functions that return a round's snapshot",
    value: matches(/\): (?:Promise<)?Snapshot\b/g),
    limit: 6,
    goal: 5,
  },
  { name: "words of the glossary", value: glossary(), limit: 21, goal: 21 },
  { name: "tables of words for holds", value: matches(/Record<Hold, HoldWords>/g), limit: 1, goal: 1 },
  { name: "tables with a row for each hold", value: matches(/Record<Hold, /g), limit: 2, goal: 1 },
  { name: "lines of the embedded cluster", value: lines(isEmbedded), limit: 7_796 },
  { name: "rows of “Where is the rule for …”", value: rows(), limit: 8 },
  { name: "lines of ARCHITECTURE.md on a screen of 110 columns", value: architectureLines(), limit: 140 },
  { name: "pods that tests write out beside test/support/objects.ts", value: writtenPods(), limit: 8 },
  {
    name: "doc comments that open with a habit or a pronoun",
    value: docComments(".").filter((text) => HABIT.test(text)).length,
    limit: 0,
  },
  {
    name: `sentences of more than ${MOST_WORDS} words in doc comments of shared`,
    value: docComments("shared").flatMap(sentences).filter(isLong).length,
    limit: 13,
  },
];

for (const { name, value, limit, goal } of figures)
  process.stdout.write(
    `${value > limit ? "GREW " : ""}${name}: ${value} (at most ${limit}${goal === undefined ? "" : `; goal ${goal}`})\n`,
  );
const isEmpty =
  files.length === 0 ||
  [...imports.values()].flat().length === 0 ||
  placesThatNameACause(BOOK) < Object.keys(CAUSES).length / 2;
if (isEmpty) process.stdout.write("no files, no imports or no causes were seen\n");
const isWrong = ({ value, limit }: Figure) => value > limit || (value === 0 && limit > 0);
process.exitCode = isEmpty || figures.some(isWrong) ? 1 : 0;
