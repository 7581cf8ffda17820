/** `diff`: the effect of a changed SidecarSet on running pods. */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { SERVING, TRAFFIC_LABEL } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import {
  diffSidecarSets,
  type NewSetEffect,
  type PodFate,
  type SidecarSetDiff,
} from "../../../shared/core/inspect/diff/diff.ts";
import type { Effect, SpecChange } from "../../../shared/core/inspect/diff/spec-changes.ts";
import type { DrainsAhead } from "../../../shared/core/rollout/rules/drain/drain.ts";
import { waveName } from "../../../shared/core/rollout/rules/waves/wave-text.ts";
import { counted } from "../../../shared/go/counted.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { withoutSecrets } from "../../../shared/log.ts";
import { duration } from "../../terminal/duration.ts";
import { alert, code, codeBlock, markdownOf, markdownTable, prose } from "../../terminal/markdown.ts";
import { CliError, type Color, type Screen } from "../../terminal/screen.ts";
import { showRenewals, wrap } from "../../terminal/table.ts";
import type { Command } from "../command.ts";
import {
  type GivenSet,
  readGivenSet,
  readGivenSets,
  readNeighbours,
  readNewSet,
  requireValid,
  showNewSet,
  storedSet,
} from "../input/given-set.ts";
import { readFacts } from "../input/read-set.ts";
import { type Session, shownLines } from "../session.ts";

const DIFFERS = 3;

export const DIFF: Command = {
  name: "diff",
  group: "Before a change",
  summary: "what a changed SidecarSet means: which pods are updated in place, which need to be recreated, and why",
  details:
    "Nothing is written. The file is checked as the webhook would check it. -o markdown is for a comment on a pull request, about every SidecarSet in the files.",
  arguments: [
    {
      name: "[NAME]",
      about: "of the SidecarSet; default: the one in the file. It need not be stored yet",
      completion: "sidecarset",
    },
  ],
  options: [
    { flags: "-f, --filename <FILE>", about: "the changed SidecarSet; - is stdin", isList: true },
    { flags: "--exit-code", about: "3 when anything would change, for scripts" },
  ],
  outputs: ["table", "json", "yaml", "markdown"],
  examples: ["sidecarset diff -f log-agent.yaml", "sidecarset diff -f deploy/ -o markdown > comment.md"],
  exits: [`${DIFFERS} with --exit-code: the file differs from what is stored`],
  run: async (input, session) => {
    const [files, wanted] = [input.list("filename"), input.arguments[0]];
    if (files.length === 0) throw new CliError("-f is missing: the file of the changed SidecarSet, or - for stdin");
    const differs = (meaning: Meaning) => (input.isSet("exit-code") && isChange(meaning) ? DIFFERS : 0);
    if (session.output === "markdown")
      return printReviews(session, await givenSets(session, files, wanted), async (given) => {
        const meaning = await meaningOf(session, await session.cluster(), given);
        return { ...reviewOfChange(meaning), code: differs(meaning) };
      });
    const given = await readGivenSet(session.screen, files, wanted);
    if (given === undefined) return 0;
    const name = given.sidecarSet.metadata?.name ?? "";
    const meaning = await meaningOf(session, await session.cluster(), given);
    session.print(meaning, (screen) =>
      "isNew" in meaning ? showNewSet(meaning, name, screen) : show(meaning, name, screen),
    );
    return differs(meaning);
  },
};

/** The effect that a file's SidecarSet has on running pods. */
type Meaning = NewSetEffect | SidecarSetDiff;

function isChange(meaning: Meaning): boolean {
  return "isNew" in meaning || meaning.changes.length > 0;
}

/** The effect of the changed SidecarSet. @throws CliError if the webhook would refuse the SidecarSet */
export async function meaningOf(session: Session, cluster: Cluster, given: GivenSet): Promise<Meaning> {
  if ((await storedSet(cluster, given)) === undefined) return readNewSet(session, cluster, given);
  const name = given.sidecarSet.metadata?.name ?? "";
  const { sidecarSet: before, facts } = await readFacts(session, cluster, name);
  requireValid(given.sidecarSet, before, given.place, await readNeighbours(session, cluster, given.sidecarSet));
  const after = { ...given.sidecarSet, metadata: { ...before.metadata, ...given.sidecarSet.metadata } };
  const { facts: then } = await readFacts(session, cluster, name, after);
  return diffSidecarSets({ ...then, before, after, pods: ofEither(facts.pods, then.pods) });
}

/** Returns the SidecarSet with the wanted name, or all of them. @throws CliError */
export async function givenSets({ screen }: Session, files: readonly string[], wanted: string | undefined) {
  if (wanted === undefined) return readGivenSets(screen, files);
  return [await readGivenSet(screen, files, wanted)].filter((given) => given !== undefined);
}

/** The pods that the SidecarSet selects before or after its change; the selector may change. */
function ofEither(before: readonly Pod[], selected: readonly Pod[]): readonly Pod[] {
  const known = new Set(selected.map(({ metadata }) => metadata?.uid));
  return [...selected, ...before.filter(({ metadata }) => !known.has(metadata?.uid))];
}

const EFFECTS: Readonly<Record<Effect, readonly [string, Color]>> = {
  recreate: ["pods that run keep the old one until they are recreated", "red"],
  inPlace: ["updated in place", "green"],
  selection: ["other pods are meant", "yellow"],
  rollout: ["how the rollout goes", "cyan"],
  newPods: ["new pods only", "cyan"],
  nextUpdate: ["new pods, and pods that run with their next update in place", "cyan"],
  none: ["records only", "dim"],
};

const FATES: readonly (readonly [PodFate["kind"], string, Color])[] = [
  ["inPlace", "will be updated in place", "green"],
  ["replace", "will be replaced, within the same budget", "yellow"],
  ["restart", "will be recreated: their workloads are restarted", "yellow"],
  ["recreate", "must be recreated to get it", "red"],
  ["updated", "have it already", "dim"],
  ["lacks", "match, and have none of its sidecars until they are recreated", "yellow"],
  ["left", "are no longer selected, and keep what they have", "yellow"],
];

/** Short forms for the line of a wave. */
const SHORT: Readonly<Record<PodFate["kind"], string>> = {
  inPlace: "in place",
  replace: "replaced",
  restart: "by a restart of their workload",
  recreate: "to be recreated",
  updated: "have it already",
  lacks: "without sidecars",
  left: "no longer selected",
};

const NAMED = 5;

function showChange({ path, before, after, effect, advice = "" }: SpecChange, screen: Screen): void {
  const [text, color] = EFFECTS[effect];
  screen.line(`  ${path}  `, { text, color });
  screen.line({ text: `    - ${shown(before, screen)}`, color: "dim" });
  screen.line({ text: `    + ${shown(after, screen)}`, color: "dim" });
  for (const line of wrap(advice, screen.width - 4, 0).filter(Boolean)) screen.line(`    ${line}`);
}

function show(diff: SidecarSetDiff, name: string, screen: Screen): void {
  const { changes, hash, hashWithoutImage, pods, disruptionBudgets = [] } = diff;
  if (changes.length === 0) screen.line(`SidecarSet ${name} is as it is stored.`);
  else screen.line({ text: `SidecarSet ${name}`, color: "bold" });
  for (const one of changes) showChange(one, screen);
  if (changes.length > 0) {
    screen.line(`  hash                ${change(hash)}`);
    screen.line(`  hash without images ${change(hashWithoutImage)}`);
  }
  screen.line();
  screen.line({ text: `Pods: ${pods.length}`, color: "bold" });
  for (const [kind, text, color] of FATES) showFate(pods, [kind, text, color], screen);
  for (const text of beforeRestarts(diff)) for (const line of wrap(text, screen.width - 2, 2)) screen.line(`  ${line}`);
  showWaves(diff, screen);
  showOtherWays(diff, screen);
  for (const { pods: count, standing } of disruptionBudgets)
    screen.line({ text: `  ${budgetLine(count, standing)}`, color: "yellow" });
}

function showOtherWays({ renewals, byRollout = "", noRenewal }: SidecarSetDiff, screen: Screen): void {
  showRenewals(renewals, screen);
  for (const line of wrap(byRollout, screen.width, 0).filter(Boolean)) screen.line(line);
  if (noRenewal !== undefined)
    screen.line({ text: `Recreating pods does not help yet: ${noRenewal}`, color: "yellow" });
}

/** The line about the budget. `standing`: text about what the budget allows now. */
function budgetLine(pods: number, standing: string): string {
  return `${counted(pods, "pod is", "pods are")} updated no faster than a budget allows: ${standing}`;
}

export function drainText({ seconds, undrained }: DrainsAhead): string {
  const text = `Pods are drained for ${duration(seconds)} before their sidecars restart`;
  if (undrained === 0) return `${text}.`;
  const without = counted(undrained, "pod has", "pods have");
  return `${text}; ${without} no label ${TRAFFIC_LABEL}=${SERVING}, and ${undrained === 1 ? "is" : "are"} updated at once.`;
}

export function pulledFirstText({ nodes, atOnce }: NonNullable<SidecarSetDiff["prePull"]>): string {
  const turns = counted(Math.ceil(nodes / atOnce), "turn");
  return `Images are pulled on ${counted(nodes, "node")} before the pods there, at most ${atOnce} at once, so in ${turns} of ten minutes at most; how long they take is not known.`;
}

/** Sentences about drains and pulls before a pod is updated in place, and how long they take. */
function beforeRestarts({ drain, prePull }: SidecarSetDiff): readonly string[] {
  return [...(drain ? [drainText(drain)] : []), ...(prePull ? [pulledFirstText(prePull)] : [])];
}

function showWaves({ waves = [] }: SidecarSetDiff, screen: Screen): void {
  if (waves.length > 0) screen.line({ text: "Waves, one after the other:", color: "bold" });
  for (const { name, fates } of waves) {
    const counts = FATES.flatMap(([kind]) => (fates[kind] === undefined ? [] : `${fates[kind]} ${SHORT[kind]}`));
    const lines = wrap(`${waveName(name)}: ${counts.join(", ") || "no pods"}`, screen.width - 2, 2);
    for (const line of lines) screen.line(`  ${line}`);
  }
}

function showFate(pods: readonly PodFate[], [kind, text, color]: (typeof FATES)[number], screen: Screen): void {
  const those = pods.filter((pod) => pod.kind === kind);
  if (those.length === 0) return;
  screen.line(`  ${String(those.length).padStart(5)} `, { text, color });
  const fields = [...new Set(those.flatMap((pod) => ("fields" in pod ? pod.fields : [])))];
  const hindrances = [...new Set(those.flatMap((pod) => ("fields" in pod ? (pod.hindrance ?? []) : [])))];
  if (hindrances.length > 0) paragraph(`because ${hindrances.join("; ")}`, screen);
  if (fields.length > 0) paragraph(`because of ${fields.join(", ")}`, screen);
  if (kind === "updated") return;
  const named = those.slice(0, NAMED).map(({ namespace, name }) => `${namespace}/${name}`);
  const more = those.length > NAMED ? [`${those.length - NAMED} more (-o json has all)`] : [];
  paragraph([...named, ...more].join(", "), screen);
}

function paragraph(text: string, screen: Screen): void {
  const [first = "", ...rest] = wrap(text, screen.width, 8);
  for (const line of [`        ${first}`, ...rest]) screen.line({ text: line, color: "dim" });
}

/** A value in few characters; -o json has all of it. */
function shown(value: unknown, { width }: Pick<Screen, "width"> = { width: Number.POSITIVE_INFINITY }): string {
  if (value === undefined) return "(nothing)";
  const text = JSON.stringify(value);
  const room = Number.isFinite(width) ? width - 6 : 400;
  return text.length > room ? `${text.slice(0, room - 1)}…` : text;
}

/** One SidecarSet's review in a comment on a pull request; all texts are Markdown. */
export interface Review {
  /** cells of the row: the change, the effect on pods, and the duration */
  readonly change: string;
  readonly pods: string;
  readonly rollout?: string;
  /** blocks of the section below the table; empty: the row says all */
  readonly blocks: readonly string[];
  /** the exit code */
  readonly code: number;
}

/** Exit code 3 is a result, such as pods that would be left behind; no result may hide the failures 1 and 2. */
const WORST_LAST = [0, DIFFERS, 1, 2];

/** A row for each SidecarSet, then a section for each one with more to say. @returns the worst exit code */
export async function printReviews<Given extends { readonly sidecarSet: SidecarSet }>(
  { screen }: Session,
  all: readonly Given[],
  review: (given: Given) => Promise<Review>,
): Promise<number> {
  const reviews: (Review & { readonly name: string })[] = [];
  for (const given of all) {
    const name = given.sidecarSet.metadata?.name ?? "";
    const read = await review(given).catch((error: unknown): Review => {
      if (!(error instanceof CliError)) throw error;
      screen.warn(error.message);
      return { change: "**refused**", pods: "", blocks: [], code: 2 };
    });
    reviews.push({ name, ...read });
  }
  const hasRollout = reviews.some(({ rollout }) => rollout !== undefined);
  const rows = reviews.map(({ name, change, pods, rollout = "" }) => [
    ...[code(name), change, pods],
    ...(hasRollout ? [rollout] : []),
  ]);
  const isRefused = reviews.some(({ code }) => code === 2);
  const begin = [
    "### SidecarSets: what this does to the pods that run",
    markdownTable(["SidecarSet", "change", "pods", ...(hasRollout ? ["rollout"] : [])], rows),
    ...(screen.warnings.length > 0 ? [alert(isRefused ? "CAUTION" : "WARNING", screen.warnings)] : []),
  ];
  const sections = reviews.flatMap(({ name, blocks }) =>
    blocks.length === 0 ? [] : [`#### ${code(name)}\n\n${blocks.join("\n\n")}`],
  );
  screen.text(withoutSecrets(markdownOf(begin, sections)));
  return WORST_LAST.findLast((code) => reviews.some((one) => one.code === code)) ?? 0;
}

const CHANGES_SHOWN = 30;

/** Pods by the change's effect on them, for the table and for their row. */
export function reviewOfChange(meaning: Meaning): Omit<Review, "code"> {
  if ("isNew" in meaning) {
    const { pods, renewals, excluded } = meaning;
    const lacks = pods.map((pod): PodFate => ({ kind: "lacks", ...pod }));
    const left = excluded.map(
      ({ namespace, pods: count }) =>
        `${counted(count, "pod", "pods")} in ${namespace} can never get its sidecars: API servers ask no webhook there.`,
    );
    const warning = left.length > 0 ? [alert("WARNING", left)] : [];
    return {
      change: "new",
      pods: podsText(lacks),
      blocks: [...fateBlocks(lacks), ...warning, ...renewalBlocks(renewals)],
    };
  }
  const { changes, pods, renewals, noRenewal, byRollout, disruptionBudgets = [] } = meaning;
  if (changes.length === 0) return { change: "none", pods: podsText(pods), blocks: [] };
  const lines = changes
    .slice(0, CHANGES_SHOWN)
    .flatMap(({ path, before, after, effect, advice }) => [
      `  ${path}: ${EFFECTS[effect][0]}`,
      `- ${shown(before)}`,
      `+ ${shown(after)}`,
      ...(advice === undefined ? [] : [`  ${advice}`]),
    ]);
  const left = changes.length - CHANGES_SHOWN;
  const warnings = [
    ...(noRenewal === undefined ? [] : [`Recreating pods does not help yet: ${noRenewal}`]),
    ...disruptionBudgets.map(({ pods, standing }) => budgetLine(pods, standing)),
  ];
  return {
    change: counted(changes.length, "field"),
    pods: podsText(pods),
    blocks: [
      codeBlock("diff", [...lines, ...(left > 0 ? [`  ${counted(left, "more change")}`] : [])]),
      ...fateBlocks(pods),
      ...beforeRestarts(meaning).map(prose),
      ...(warnings.length > 0 ? [alert("WARNING", warnings)] : []),
      ...renewalBlocks(renewals),
      ...(byRollout === undefined ? [] : [prose(byRollout)]),
      ...(meaning.waves
        ? [
            codeBlock(
              "text",
              shownLines((screen) => showWaves(meaning, screen)),
            ),
          ]
        : []),
    ],
  };
}

function podsText(pods: readonly PodFate[]): string {
  const counts = FATES.map(([kind]) => [kind, pods.filter((pod) => pod.kind === kind).length] as const);
  return counts.flatMap(([kind, count]) => (count === 0 ? [] : `${count} ${SHORT[kind]}`)).join(", ") || "no pods";
}

function fateBlocks(pods: readonly PodFate[]): readonly string[] {
  const rows = FATES.flatMap(([kind, text]) => {
    const those = pods.filter((pod) => pod.kind === kind);
    const reasons = those.flatMap((pod) =>
      "fields" in pod ? [...pod.fields, ...(pod.hindrance ? [pod.hindrance] : [])] : [],
    );
    const because = [...new Set(reasons)].slice(0, NAMED).map(prose).join("; ");
    const named = those.slice(0, NAMED).map(({ namespace, name }) => code(`${namespace}/${name}`));
    return those.length === 0 ? [] : [[String(those.length), text, because, named.join(" ")]];
  });
  return rows.length === 0 ? [] : [markdownTable(["pods", "what happens", "because of", "such as"], rows)];
}

function renewalBlocks(renewals: SidecarSetDiff["renewals"]): readonly string[] {
  if (renewals.length === 0) return [];
  const lines = shownLines((screen) => showRenewals(renewals, screen)).slice(2);
  return [
    "These commands recreate the pods that need it, by workload:",
    codeBlock(
      "sh",
      lines.map((line) => line.trimStart()),
    ),
  ];
}

function change({ before, after }: SidecarSetDiff["hash"]): string {
  const short = (hash: string) => hash.slice(0, 10) || "(none)";
  return before === after ? `${short(before)}, the same` : `${short(before)} → ${short(after)}`;
}
