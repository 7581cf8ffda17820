/** `plan`: a rollout, step by step, until it is done or held up. */

import { explain } from "../../../shared/controller/rollout/dry-run.ts";
import type { SidecarSetReport } from "../../../shared/controller/rollout/report.ts";
import { BOOK, severityOf } from "../../../shared/core/rollout/book.ts";
import type { PlannedPod, PlannedStep, RolloutPlan } from "../../../shared/core/rollout/plan/planned-step.ts";
import { waveName } from "../../../shared/core/rollout/rules/waves/wave-text.ts";
import { unavailableOf } from "../../../shared/core/rollout/summary.ts";
import { counted } from "../../../shared/go/counted.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { runTick, troubleOf } from "../../server/tick.ts";
import { duration } from "../../terminal/duration.ts";
import { code, codeBlock, collapsed, markdownTable, prose } from "../../terminal/markdown.ts";
import { CliError, type Part, type Screen } from "../../terminal/screen.ts";
import { printTable, wrap } from "../../terminal/table.ts";
import type { Command, Input } from "../command.ts";
import { readGivenSet, readNeighbours, readNewSet, requireValid, showNewSet, storedSet } from "../input/given-set.ts";
import { readSet, TARGET_ARGUMENT, type Target, targetOf } from "../input/read-set.ts";
import { type Session, shownLines } from "../session.ts";
import { planStatefulSet } from "../statefulset/plan.ts";
import { drainText, givenSets, meaningOf, printReviews, pulledFirstText, type Review, reviewOfChange } from "./diff.ts";

const NOT_DONE = 3;
const DEADLINE_MS = 300_000;

export const PLAN: Command = {
  name: "plan",
  group: "Before a change",
  summary: "the rollout step by step until its end: which pods, in which order, under which limit, how long",
  details:
    "The decisions are those of the rollout itself; nodes are simulated, and take --ready-after for every pod. Nothing is written. -o json is what the dry run of the rollout function answers; -o markdown is for a comment on a pull request, about every SidecarSet in the files, with what diff says.",
  arguments: [
    { ...TARGET_ARGUMENT, name: "[NAME]", about: `${TARGET_ARGUMENT.about}; default: the SidecarSet in the file` },
  ],
  options: [
    { flags: "-f, --filename <FILE>", about: "as if this were stored; - is stdin", isList: true },
    {
      flags: "--ready-after <DURATION>",
      about: "how long a pod is not ready after its images were changed; default: 5s",
    },
    { flags: "--pods", about: "every pod of every step by name" },
  ],
  outputs: ["table", "json", "yaml", "markdown"],
  examples: [
    "sidecarset plan log-agent",
    "sidecarset plan -f log-agent.yaml --ready-after 30s",
    "sidecarset plan -f deploy/ -o markdown > comment.md",
    "sidecarset plan statefulset.apps.kruise.io/db -n shop",
  ],
  exits: ["3 pods would be left behind, and not because the strategy says so"],
  run: async (input, session) => {
    const target = targetIn(input);
    if (target?.kind === "statefulset") return planStatefulSet(input, session, target);
    if (session.output === "markdown") return printPlanReviews(input, session, target?.name);
    const given = await readGivenSet(session.screen, input.list("filename"), target?.name);
    const name = target?.name ?? given?.sidecarSet.metadata?.name ?? "";
    const cluster = await session.cluster();
    if (given !== undefined && (await storedSet(cluster, given)) === undefined) {
      const effect = await readNewSet(session, cluster, given);
      session.print(effect, (screen) => showNewSet(effect, name, screen));
      return 0;
    }
    const planned = await readPlan(input, session, { cluster, name, given });
    if (planned === undefined) return 1;
    const { report, set, plan } = planned;
    session.print(report, (screen) => show(set, plan, { screen, hasPods: input.isSet("pods") }));
    return codeOfPlan(plan);
  },
};

function codeOfPlan(plan: RolloutPlan): number {
  return plan.isComplete || isHeldOnPurpose(plan) ? 0 : NOT_DONE;
}

/** The plan of a rollout; undefined: planning failed, and a warning says why. */
async function readPlan(input: Input, session: Session, planned: Wished) {
  const { cluster, name } = planned;
  const report = await runTick(cluster, {
    deadlineMs: DEADLINE_MS,
    dryRun: true,
    sidecarSet: name,
    plan: await wishOf(input, session, planned),
    settings: await session.passSettings(cluster),
  });
  const trouble = troubleOf(report);
  for (const sentence of trouble) session.screen.warn(sentence);
  const [set] = report.sidecarSets;
  return trouble.length > 0 || set?.plan === undefined ? undefined : { report, set, plan: set.plan };
}

/**
 * Plans of the stored SidecarSet with this name, or of the file's; without a name, of every SidecarSet in the files.
 */
async function printPlanReviews(input: Input, session: Session, name: string | undefined): Promise<number> {
  const cluster = await session.cluster();
  const files = input.list("filename");
  if (files.length > 0)
    return printReviews(session, await givenSets(session, files, name), async (given) => {
      const meaning = await meaningOf(session, cluster, given);
      const review = reviewOfChange(meaning);
      if ("isNew" in meaning) return { ...review, code: 0 };
      const wished = { cluster, name: given.sidecarSet.metadata?.name ?? "", given };
      return withPlan(review, await readPlan(input, session, wished));
    });
  const stored = await readSet(cluster, name ?? "");
  return printReviews(session, [{ sidecarSet: stored }], async () => {
    const planned = await readPlan(input, session, { cluster, name: name ?? "", given: undefined });
    const { updated = 0, matched = 0 } = planned?.plan.before ?? {};
    return withPlan({ change: "none", pods: `${updated} of ${matched} updated`, blocks: [] }, planned);
  });
}

function withPlan(review: Omit<Review, "code">, planned: Awaited<ReturnType<typeof readPlan>>): Review {
  if (planned === undefined) return { ...review, rollout: "**not planned**", code: 1 };
  const { plan } = planned;
  const hasSection = review.blocks.length > 0 || plan.steps.length > 0;
  return {
    ...review,
    rollout: prose(takenText(plan) || "nothing would be done"),
    blocks: hasSection ? [...review.blocks, ...planBlocks(plan)] : [],
    code: codeOfPlan(plan),
  };
}

function planBlocks(plan: RolloutPlan): readonly string[] {
  const { steps } = plan;
  if (steps.length === 0) return [prose(resultText(plan))];
  const rows = restartRows(steps.flatMap(({ pods }) => pods));
  return [
    ...(rows.length > 0 ? [markdownTable(["container that restarts", "from", "to", "pods"], rows)] : []),
    `${prose(`${updatedNow(plan)}.`)} ${prose(resultText(plan))}`,
    collapsed(counted(steps.length, "step"), [
      codeBlock(
        "text",
        shownLines((screen) => showSteps(plan, { screen, hasPods: false })),
      ),
    ]),
  ];
}

/** One row for each change of an image, with the number of pods that make it. */
function restartRows(pods: readonly PlannedPod[]): readonly (readonly string[])[] {
  const rows = pods.flatMap(({ images, isReplaced }) =>
    isReplaced
      ? [["all", "", "another pod takes its place"]]
      : images.map(({ container, from, to }) => [container, from, to].map(code)),
  );
  const same = Map.groupBy(rows, (row) => row.join("\n"));
  return [...same.values()].map((those) => [...(those[0] ?? []), String(those.length)]);
}

/** The target that the arguments name; undefined: the SidecarSet in the file. @throws CliError */
function targetIn(input: Input): Target | undefined {
  const [text] = input.arguments;
  if (text !== undefined) return targetOf(text);
  if (input.list("filename").length > 0) return undefined;
  throw new CliError("NAME is missing; write the name of a SidecarSet, or -f FILE");
}

/** True if the SidecarSet's own settings hold the remaining pods back. */
function isHeldOnPurpose({ after }: RolloutPlan): boolean {
  return severityOf(after) === "held";
}

interface Wished {
  readonly cluster: Cluster;
  readonly name: string;
  readonly given: Awaited<ReturnType<typeof readGivenSet>>;
}

async function wishOf(input: Input, session: Session, { cluster, name, given }: Wished) {
  const readyAfterSeconds = (input.durationMs("ready-after") ?? 5_000) / 1000;
  const before = await readSet(cluster, name);
  if (given === undefined) return { readyAfterSeconds };
  requireValid(given.sidecarSet, before, given.place, await readNeighbours(session, cluster, given.sidecarSet));
  return { readyAfterSeconds, sidecarSet: given.sidecarSet };
}

interface Form {
  readonly screen: Screen;
  readonly hasPods: boolean;
}

function show({ name }: SidecarSetReport, plan: RolloutPlan, form: Form): void {
  const { screen } = form;
  const { steps, isComplete } = plan;
  screen.line({ text: `SidecarSet ${name}`, color: "bold" }, `: ${updatedNow(plan)}`);
  if (steps.length === 0) screen.line("Nothing would be done.");
  else showSteps(plan, form);
  for (const line of wrap(resultText(plan), screen.width))
    screen.line({ text: line, color: isComplete ? "green" : "yellow" });
}

function updatedNow(plan: RolloutPlan): string {
  const { updated, matched } = plan.before;
  return `${updated} of ${counted(matched, "pod")} updated now${heldNow(plan)}`;
}

/** Pods, steps and time of the plan, without a full stop; empty: nothing would be done. */
function takenText(plan: RolloutPlan): string {
  const { steps, seconds } = plan;
  if (steps.length === 0) return "";
  const pods = steps.reduce((sum, step) => sum + (step.purpose === "upgrade" ? step.pods.length : 0), 0);
  return `${counted(pods, "pod")} in ${counted(steps.length, "step")}, ${duration(seconds)}, ${downText(plan)}`;
}

function resultText(plan: RolloutPlan): string {
  const taken = takenText(plan);
  const end = plan.isComplete ? "All are updated and ready then." : `Then: ${explain("oneRound", plan.after)}.`;
  return `${taken === "" ? "" : `${taken}. `}${plan.isCutShort ? "There are more steps than are shown. " : ""}${end}`;
}

/** The reason why the rollout waits now; the plan assumes that it ends. */
function heldNow({ steps, before }: RolloutPlan): string {
  const clause = BOOK[before.hold].clause(before);
  return steps.length === 0 || before.selected > 0 || clause === "" ? "" : `; ${clause}`;
}

/** Text about pods that are down. OpenKruise updates pods that were already down, and they stay down. */
function downText({ steps, before, downBefore }: RolloutPlan): string {
  const most = Math.max(unavailableOf(before), ...steps.map(({ down }) => down));
  const limit = Math.max(...steps.map(({ maxUnavailable }) => maxUnavailable));
  const text = `at most ${most} unavailable at once`;
  if (most <= limit) return text;
  if (downBefore === 0) return `${text}, though maxUnavailable is ${limit}`;
  const already = counted(downBefore, "pod is", "pods are");
  return `${text}, though maxUnavailable is ${limit}: ${already} down already, and neither they nor their update use any of it`;
}

const ROWS_AT_ONCE = 40;

/** A long plan shows its beginning and its end. */
function showSteps(plan: RolloutPlan, { screen, hasPods }: Form): void {
  const { steps, readyAfterSeconds } = plan;
  const rows = steps.map((step): readonly Part[] => rowOf(step));
  const half = ROWS_AT_ONCE / 2;
  const hidden = rows.length - ROWS_AT_ONCE;
  const isLong = hidden > 0 && !hasPods;
  const dots: readonly Part[] = ["…", "", "", { text: `${hidden} more steps (-o json has all)`, color: "dim" }];
  const shown = isLong ? [...rows.slice(0, half), dots, ...rows.slice(-half)] : rows;
  screen.line({ text: `Every pod is taken to be ready again after ${duration(readyAfterSeconds)}.`, color: "dim" });
  for (const text of assumptions(plan)) screen.line({ text, color: "dim" });
  printTable(screen, ["AT", "UPDATED", "DOWN/MAX", "PODS"], shown);
  if (!hasPods) return;
  for (const [index, { atSeconds, pods, purpose }] of steps.entries()) {
    screen.line({ text: `Step ${index + 1}, at ${duration(atSeconds)}`, color: "bold" });
    for (const pod of pods)
      screen.line(
        `  ${pod.namespace}/${pod.name}  ${purpose === "drain" ? "leaves the endpoints of its Services" : changeText(pod)}`,
      );
  }
}

/** Assumptions of the plan, and the waits that it counts. */
function assumptions(plan: RolloutPlan): readonly string[] {
  const { steps, gate, drain, checks, before } = plan;
  return [
    ...(heldNow(plan) === "" || steps[0]?.atSeconds !== 0
      ? []
      : ["What holds the rollout now is taken to end at once."]),
    ...(gate === undefined ? [] : [`The gate at ${gate} is taken to allow every step; it is not asked.`]),
    ...(drain ? [drainText(drain)] : []),
    ...pullsText(before.rules.prePull),
    ...(checks ? [checksText(checks, before)] : []),
    ...(before.trouble && before.selected > 0 ? [`It is known that ${before.trouble.text}.`] : []),
  ];
}

/** Text about image pulls. The plan leaves out pods of nodes that could not pull. */
function pullsText(pulls: RolloutPlan["before"]["rules"]["prePull"]): readonly string[] {
  const nodes = (pulls?.nodes ?? 0) - (pulls?.failedCount ?? 0);
  return pulls && nodes > 0 ? [`${pulledFirstText({ ...pulls, nodes })} That is not in the times below.`] : [];
}

function changeText({ images, isReplaced }: PlannedPod): string {
  if (isReplaced) return "replaced by another pod";
  return images.map(({ container, from, to }) => `${container} ${from} → ${to}`).join(", ");
}

/** Text about metric checks. Times in a plan assume that no check stops the rollout. */
function checksText(
  { names, intervalSeconds }: NonNullable<RolloutPlan["checks"]>,
  { rules: { waves } }: RolloutPlan["before"],
): string {
  const apart = `${duration(intervalSeconds)} apart or more, which is not in the times below`;
  return `Checks of metrics (${names.join(", ")}) are taken to pass; the server is not asked. Passes evaluate them before each step${waves ? " and before a wave is passed" : ""}, ${apart}.`;
}

const DONE_TO: Readonly<Record<PlannedStep["purpose"], string>> = {
  upgrade: "",
  drain: ": drain",
  putBack: ": put back",
  flip: ": empty the old container",
  resize: ": change cpu and memory",
};

function rowOf(step: PlannedStep): readonly Part[] {
  const { atSeconds, purpose, pods, updated, down, maxUnavailable, waves, held } = step;
  const [first] = pods;
  const others = pods.length > 1 ? ` and ${pods.length - 1} more` : "";
  const place = waves === undefined ? "" : ` (${waves.map(waveName).join(", ")})`;
  const what = `${first?.namespace}/${first?.name}${others}${place}`;
  return [
    duration(atSeconds),
    String(updated),
    `${down}/${maxUnavailable}`,
    `${what}${DONE_TO[purpose]}${replacedText(step)}${heldText(held)}`,
  ];
}

function replacedText({ pods, restarts }: PlannedStep): string {
  if (restarts !== undefined) return `: restart ${restarts.join(", ")}`;
  const count = pods.filter(({ isReplaced }) => isReplaced).length;
  if (count === 0) return "";
  return count === pods.length ? ": replace" : `: replace ${count} of them`;
}

function heldText(held: PlannedStep["held"]): string {
  return held ? `; ${counted(held.pods, "pod waits", "pods wait")} for ${held.budgets.join(", ")}` : "";
}
