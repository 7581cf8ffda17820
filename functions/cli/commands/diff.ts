/** `diff`: what a changed SidecarSet means for the pods that run. */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { diffSidecarSets, type PodFate, type SidecarSetDiff } from "../../../shared/core/inspect/diff/diff.ts";
import type { Effect } from "../../../shared/core/inspect/diff/spec-changes.ts";
import { waveName } from "../../../shared/core/rollout/waves/wave-text.ts";
import { counted } from "../../../shared/go/counted.ts";
import { CliError } from "../../terminal/error.ts";
import { showRenewals } from "../../terminal/renewals.ts";
import type { Color, Screen } from "../../terminal/screen.ts";
import { wrap } from "../../terminal/table.ts";
import type { Command } from "../command.ts";
import { readGivenSet, readNeighbours, requireValid } from "../input/given-set.ts";
import { showNewSet, storedSet } from "../input/new-set.ts";
import { readFacts } from "../input/read-set.ts";

const DIFFERS = 3;

export const DIFF: Command = {
  name: "diff",
  group: "Before a change",
  summary: "what a changed SidecarSet means: which pods are updated in place, which need to be recreated, and why",
  details: "Nothing is written. The file is checked as the webhook would check it.",
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
  outputs: ["table", "json", "yaml"],
  examples: ["sidecarset diff -f log-agent.yaml"],
  exits: [`${DIFFERS} with --exit-code: the file differs from what is stored`],
  run: async (input, session) => {
    const given = await readGivenSet(session.screen, input.list("filename"), input.arguments[0]);
    if (given === undefined) throw new CliError("-f is missing: the file of the changed SidecarSet, or - for stdin");
    const name = given.sidecarSet.metadata?.name ?? "";
    const cluster = await session.cluster();
    if ((await storedSet(cluster, given)) === undefined) {
      await showNewSet(session, cluster, given);
      return input.isSet("exit-code") ? DIFFERS : 0;
    }
    const { sidecarSet: before, facts } = await readFacts(session, cluster, name);
    requireValid(given.sidecarSet, before, given.place, await readNeighbours(session, cluster, given.sidecarSet));
    const after = { ...given.sidecarSet, metadata: { ...before.metadata, ...given.sidecarSet.metadata } };
    const { facts: then } = await readFacts(session, cluster, name, after);
    const diff = diffSidecarSets({ ...then, before, after, pods: ofEither(facts.pods, then.pods) });
    session.print(diff, (screen) => show(diff, name, screen));
    return input.isSet("exit-code") && diff.changes.length > 0 ? DIFFERS : 0;
  },
};

/** The changed one may have another selector. */
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

/** In the line of a wave. */
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

function show(diff: SidecarSetDiff, name: string, screen: Screen): void {
  const { changes, hash, hashWithoutImage, pods, renewals, disruptionBudgets = [] } = diff;
  if (changes.length === 0) screen.line(`SidecarSet ${name} is as it is stored.`);
  else screen.line({ text: `SidecarSet ${name}`, color: "bold" });
  for (const { path, before, after, effect } of changes) {
    const [text, color] = EFFECTS[effect];
    screen.line(`  ${path}  `, { text, color });
    screen.line({ text: `    - ${shown(before, screen)}`, color: "dim" });
    screen.line({ text: `    + ${shown(after, screen)}`, color: "dim" });
  }
  if (changes.length > 0) {
    screen.line(`  hash                ${change(hash)}`);
    screen.line(`  hash without images ${change(hashWithoutImage)}`);
  }
  screen.line();
  screen.line({ text: `Pods: ${pods.length}`, color: "bold" });
  for (const [kind, text, color] of FATES) showFate(pods, [kind, text, color], screen);
  showWaves(diff, screen);
  showRenewals(renewals, screen);
  if (diff.noRenewal !== undefined)
    screen.line({ text: `Recreating pods does not help yet: ${diff.noRenewal}`, color: "yellow" });
  for (const { pods: count, standing } of disruptionBudgets)
    screen.line({ text: `  ${counted(count, "pod is", "pods are")} updated as ${standing}`, color: "yellow" });
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

/** Short, since -o json has all of it. */
function shown(value: unknown, { width }: Screen): string {
  if (value === undefined) return "(nothing)";
  const text = JSON.stringify(value);
  const room = Number.isFinite(width) ? width - 6 : 400;
  return text.length > room ? `${text.slice(0, room - 1)}…` : text;
}

function change({ before, after }: SidecarSetDiff["hash"]): string {
  const short = (hash: string) => hash.slice(0, 10) || "(none)";
  return before === after ? `${short(before)}, the same` : `${short(before)} → ${short(after)}`;
}
