/** Tables and paragraphs that fit into the width there is. */

import type { ControllerRevision } from "../../shared/api/kubernetes.ts";
import type { Step, Verdict } from "../../shared/core/inspect/explain/step.ts";
import type { Renewal } from "../../shared/core/pod/workload.ts";
import { counted } from "../../shared/go/counted.ts";
import { withUnseenEscaped } from "../../shared/go/unseen.ts";
import { type Color, type Part, type Screen, widthOf } from "./screen.ts";

const GAP = 2;
/** Narrower than this nothing can be read in a column. */
const LEAST = 6;
/** The last column of this name holds sentences. */
const SENTENCES = "WHY";
/** Sentences with less room go below their rows. */
const LEAST_SENTENCE = 30;

type Row = readonly Part[];

/** Columns as wide as they need; where that is too wide the widest are cut, except the column `whole`. */
export function printTable(screen: Screen, head: readonly string[], rows: readonly Row[], whole?: string): void {
  const all: readonly Row[] = [head.map((text): Part => ({ text, color: "bold" })), ...rows];
  const fitted = (cells: readonly Row[]) => narrowed(widthsOf(cells), screen.width, head.indexOf(whole ?? ""));
  const isBelow = head.at(-1) === SENTENCES && isShort(fitted(all), widthsOf(all));
  const cells = isBelow ? all.map((row) => row.slice(0, -1)) : all;
  const widths = fitted(cells);
  for (const [line, row] of cells.entries()) {
    screen.line(...row.map((part, index) => (index === row.length - 1 ? cut : padded)(part, widths[index] ?? 0)));
    if (isBelow && line > 0) printBelow(screen, textOf(all[line]?.at(-1) ?? ""));
  }
}

function isShort(widths: readonly number[], natural: readonly number[]): boolean {
  return (widths.at(-1) ?? 0) < Math.min(LEAST_SENTENCE, natural.at(-1) ?? 0);
}

function printBelow(screen: Screen, sentence: string): void {
  if (sentence === "") return;
  for (const line of wrap(sentence, screen.width - GAP)) screen.line(" ".repeat(GAP), line);
}

/** Indented and broken at spaces; the first line has no indent, since its place is taken. */
export function wrap(text: string, width: number, indent = 0): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const next = line === "" ? word : `${line} ${word}`;
    if (widthOf(next) > width - indent && line !== "") {
      lines.push(line);
      line = word;
    } else line = next;
  }
  const pad = " ".repeat(indent);
  return [...lines, line].map((one, index) => (index === 0 ? one : pad + one));
}

function textOf(part: Part): string {
  return withUnseenEscaped(typeof part === "string" ? part : part.text);
}

function widthsOf(cells: readonly Row[]): number[] {
  const columns = cells[0]?.length ?? 0;
  return Array.from({ length: columns }, (_, index) =>
    cells.reduce((most, row) => Math.max(most, widthOf(textOf(row[index] ?? ""))), 0),
  );
}

function narrowed(widths: readonly number[], width: number, whole: number): readonly number[] {
  const fitted = [...widths];
  let excess = fitted.reduce((sum, one) => sum + one, 0) + GAP * (fitted.length - 1) - width;
  while (excess > 0) {
    const left = fitted.map((one, index) => (index === whole ? 0 : one));
    const widest = left.indexOf(Math.max(...left));
    if ((left[widest] ?? 0) <= LEAST) break;
    fitted[widest] = (fitted[widest] ?? 0) - 1;
    excess--;
  }
  return fitted;
}

/** Cuts in the middle, because names often differ at their end. */
function cut(part: Part, width: number): Part {
  const text = textOf(part);
  if (widthOf(text) <= width) return part;
  const tail = Math.floor((width - 1) / 2);
  const characters = [...text];
  const [begin, end] = [fitting(characters, width - 1 - tail), fitting(characters.toReversed(), tail)];
  return withText(part, `${begin.join("")}…${end.toReversed().join("")}`);
}

/** The first characters that fit. */
function fitting(characters: readonly string[], width: number): readonly string[] {
  const fitted: string[] = [];
  for (const character of characters) {
    if (widthOf([...fitted, character].join("")) > width) break;
    fitted.push(character);
  }
  return fitted;
}

function padded(part: Part, width: number): Part {
  const short = cut(part, width);
  const text = textOf(short);
  return withText(short, text + " ".repeat(Math.max(0, width - widthOf(text)) + GAP));
}

function withText(part: Part, text: string): Part {
  return typeof part === "string" ? text : { ...part, text };
}

// The picture of a rollout's progress: revisions and their pods as a tree, and a bar.

const PODS_SHOWN = 10;

interface Leaf {
  readonly label: string;
  /** name of the ControllerRevision; "" where none with the hash is left */
  readonly revision: string;
  readonly isUpdated: boolean;
  readonly isReady: boolean;
  readonly state: Part;
}

interface Tree {
  readonly revisions: readonly ControllerRevision[];
  readonly pods: readonly Leaf[];
  readonly imagesOf: (revision: ControllerRevision) => string;
  /** every pod, not only a few of each revision */
  readonly hasAll: boolean;
}

/** The newest revision first. */
export function showTree(tree: Tree, screen: Screen): void {
  const { pods } = tree;
  const numbers = new Map(tree.revisions.map((one) => [one.metadata?.name ?? "", one]));
  const names = [...new Set(pods.map(({ revision }) => revision))];
  const byAge = names.toSorted((a, b) => (numbers.get(b)?.revision ?? 0) - (numbers.get(a)?.revision ?? 0));
  for (const [index, name] of byAge.entries()) {
    const isLast = index === byAge.length - 1;
    const revision = numbers.get(name);
    const those = pods.filter((pod) => pod.revision === name);
    const title = { text: name || "an older version, not recorded", color: "cyan" } as const;
    screen.line(isLast ? "└─ " : "├─ ", title, ageText(revision, those));
    const stem = isLast ? "   " : "│  ";
    const images = revision === undefined ? "" : tree.imagesOf(revision);
    if (images) screen.line(`${stem}   `, { text: images, color: "dim" });
    showPods(those, { stem, hasAll: tree.hasAll }, screen);
  }
}

function ageText(revision: ControllerRevision | undefined, pods: readonly Leaf[]): string {
  const newest = pods.some(({ isUpdated }) => isUpdated) ? ", the newest" : "";
  const count = `, ${counted(pods.length, "pod")}`;
  return revision === undefined ? count : `, revision ${revision.revision}${newest}, ${createdText(revision)}${count}`;
}

/** Shows pods that are not ready first. */
function showPods(
  pods: readonly Leaf[],
  { stem, hasAll }: { readonly stem: string; readonly hasAll: boolean },
  screen: Screen,
): void {
  const troubled = pods.toSorted((a, b) => Number(a.isReady) - Number(b.isReady));
  const shown = hasAll ? pods : troubled.slice(0, PODS_SHOWN);
  const more = pods.length - shown.length;
  for (const [index, { label, state }] of shown.entries()) {
    const twig = index === shown.length - 1 && more === 0 ? "└─ " : "├─ ";
    screen.line(stem, twig, `${label}  `, state);
  }
  if (more > 0) screen.line(stem, "└─ ", { text: `${more} more (--pods shows all)`, color: "dim" });
}

/** Characters of a bar. */
const WIDTH = 20;

/** A bar of the rollout's progress. `ready` counts updated pods only. */
export function bar(ready: number, updated: number, all: number): readonly Part[] {
  const share = (count: number) => (all === 0 ? 0 : Math.min(WIDTH, Math.floor((count / all) * WIDTH)));
  const [full, half] = [share(ready), share(updated)];
  return [
    { text: "█".repeat(full), color: "green" },
    { text: "▒".repeat(Math.max(0, half - full)), color: "yellow" },
    { text: "░".repeat(WIDTH - Math.max(full, half)), color: "dim" },
    ` ${updated}/${all}`,
  ];
}

/** A revision's SidecarSet, in the fields that one line shows. */
interface Recorded {
  readonly spec?: {
    readonly containers?: readonly { readonly name?: string; readonly image?: string }[] | null;
  };
}

/** `agent=agent:2, mesh=mesh:1` */
export function imagesText({ data }: ControllerRevision): string {
  const containers = (data as Recorded | undefined)?.spec?.containers ?? [];
  return containers.map(({ name, image }) => `${name}=${image}`).join(", ");
}

/** `created 2026-01-02T03:04:05Z` */
function createdText({ metadata }: ControllerRevision): string {
  return metadata?.creationTimestamp ? `created ${metadata.creationTimestamp}` : "not stored yet";
}

// Prints an explanation: a mark for each verdict, and what to do about it.

const MARKS: Readonly<Record<Verdict, readonly [string, Color]>> = {
  ok: ["✓", "green"],
  note: ["·", "dim"],
  wait: ["…", "yellow"],
  stop: ["✗", "red"],
};

export function showSteps(title: string, steps: readonly Step<string>[], screen: Screen): void {
  screen.line({ text: title, color: "bold" });
  for (const { verdict, reason, message, hint } of steps) {
    const [mark, color] = MARKS[verdict];
    const [first = "", ...rest] = wrap(`${reason}: ${message}`, screen.width, 4);
    screen.line("  ", { text: mark, color }, ` ${first}`);
    for (const line of rest) screen.line(line);
    if (hint === undefined) continue;
    const [firstHint = "", ...restHint] = wrap(`→ ${hint}`, screen.width, 4);
    for (const line of [`    ${firstHint}`, ...restHint]) screen.line({ text: line, color: "cyan" });
  }
}

// Commands that recreate pods, each on its own line, ready to copy.

const NAMED = 5;

export function showRenewals(renewals: readonly Renewal[], screen: Screen): void {
  if (renewals.length === 0) return;
  screen.line();
  screen.line({ text: "These commands recreate the pods that need it, by workload:", color: "bold" });
  for (const { command, workload } of renewals.slice(0, NAMED))
    screen.line(`  ${command}${workload === "" ? "  # nothing creates another" : ""}`);
  if (renewals.length > NAMED)
    screen.line({ text: `  ${renewals.length - NAMED} more workloads (-o json has all)`, color: "dim" });
}
