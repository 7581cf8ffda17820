/** `plan` of an Advanced StatefulSet: what passes would do to its pods, step by step, until its end. */
import type { SetPlanWish } from "../../../shared/controller/statefulset/dry-run.ts";
import type { SetKey } from "../../../shared/controller/statefulset/observe.ts";
import type { SetReport } from "../../../shared/controller/statefulset/report.ts";
import { explainSet, isSettled } from "../../../shared/core/statefulset/explain/explain-set.ts";
import type {
  PlannedSetPod,
  PlannedSetStep,
  SetRolloutPlan,
} from "../../../shared/core/statefulset/plan/plan-set-rollout.ts";
import { counted } from "../../../shared/go/counted.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { runSetTick, troubleOfSets } from "../../server/statefulset-tick.ts";
import { duration } from "../../terminal/duration.ts";
import type { Part, Screen } from "../../terminal/screen.ts";
import { printTable, wrap } from "../../terminal/table.ts";
import type { Input } from "../command.ts";
import type { SetTarget } from "../input/target.ts";
import type { Session } from "../session.ts";
import { readGivenStatefulSet } from "./given-statefulset.ts";
import { keyOf, readSetNamed } from "./read-statefulset.ts";

const NOT_DONE = 3;
const DEADLINE_MS = 300_000;

/** @returns the exit code */
export async function planStatefulSet(input: Input, session: Session, target: SetTarget): Promise<number> {
  const cluster = await session.cluster();
  const key = await keyOf(session, target);
  const plan = await wishOf(input, cluster, key);
  const set = `${key.namespace}/${key.name}`;
  const report = await runSetTick(cluster, { deadlineMs: DEADLINE_MS, dryRun: true, set, plan });
  const trouble = troubleOfSets(report);
  for (const sentence of trouble) session.screen.warn(sentence);
  const [only] = report.sets;
  const planned = only?.plan;
  if (trouble.length > 0 || only === undefined || planned === undefined) return 1;
  session.print(report, (screen) => show(only, planned, { screen, hasPods: input.isSet("pods") }));
  return planned.isComplete || isSettled(planned.after) ? 0 : NOT_DONE;
}

async function wishOf(input: Input, cluster: Cluster, key: SetKey): Promise<SetPlanWish> {
  const readyAfterSeconds = (input.durationMs("ready-after") ?? 5_000) / 1000;
  const before = await readSetNamed(cluster, key);
  const set = await readGivenStatefulSet(input.list("filename"), before, cluster);
  return { readyAfterSeconds, ...(set ? { set } : {}) };
}

interface Form {
  readonly screen: Screen;
  readonly hasPods: boolean;
}

function show({ namespace, name }: SetReport, plan: SetRolloutPlan, form: Form): void {
  const { screen } = form;
  const { steps, before, isComplete } = plan;
  screen.line({ text: `StatefulSet ${namespace}/${name}`, color: "bold" }, `: ${explainSet(before)}`);
  if (steps.length === 0) screen.line("No pod would be touched.");
  else showSteps(plan, form);
  for (const line of wrap(endText(plan), screen.width))
    screen.line({ text: line, color: isComplete ? "green" : "yellow" });
}

function endText({ steps, seconds, before, after, isComplete, isCutShort, problem }: SetRolloutPlan): string {
  const pods = new Set(steps.flatMap(({ pods }) => pods.map(({ name }) => name)));
  const isUpdate = steps.some(({ pods }) => pods.some(({ action }) => action === "replace" || action === "update"));
  const least = steps.reduce((least, { ready }) => Math.min(least, ready), before.ready);
  const serving = isUpdate ? `, at least ${least} of ${after.desired} ready at any time` : "";
  const taken = `${counted(pods.size, "pod")} in ${counted(steps.length, "step")}, ${duration(seconds)}${serving}.`;
  const end = isComplete ? "All are there, updated and ready then." : `Then: ${explainSet(after)}.`;
  return [
    ...(steps.length > 0 ? [taken] : []),
    ...(isCutShort ? ["There are more steps than are shown."] : []),
    end,
    ...(problem ? [`Every pass ends early: ${problem}.`] : []),
  ].join(" ");
}

const ROWS_AT_ONCE = 40;

/** A long plan shows its beginning and its end. */
function showSteps({ steps, readyAfterSeconds, after }: SetRolloutPlan, { screen, hasPods }: Form): void {
  const rows = steps.map((step) => rowOf(step, after.desired));
  const half = ROWS_AT_ONCE / 2;
  const hidden = rows.length - ROWS_AT_ONCE;
  const dots: readonly Part[] = ["…", "", "", { text: `${hidden} more steps (-o json has all)`, color: "dim" }];
  const shown = hidden > 0 && !hasPods ? [...rows.slice(0, half), dots, ...rows.slice(-half)] : rows;
  const taken = `Every pod is taken to be ready ${duration(readyAfterSeconds)} after it was created or changed.`;
  screen.line({ text: taken, color: "dim" });
  printTable(screen, ["AT", "UPDATED", "READY", "PODS"], shown);
  if (!hasPods) return;
  for (const [index, { atSeconds, pods }] of steps.entries()) {
    screen.line({ text: `Step ${index + 1}, at ${duration(atSeconds)}`, color: "bold" });
    for (const pod of pods) screen.line(`  ${podText(pod)}`);
  }
}

/** One after the other: what is done, and with whom first. */
function rowOf({ atSeconds, pods, updated, ready }: PlannedSetStep, desired: number): readonly Part[] {
  const actions = [...new Set(pods.map(({ action }) => action))];
  const parts = actions.map((action) => {
    const those = pods.filter((pod) => pod.action === action);
    const more = those.length > 1 ? ` and ${those.length - 1} more` : "";
    return `${action} ${those[0]?.name}${more}`;
  });
  return [duration(atSeconds), String(updated), `${ready}/${desired}`, parts.join(", ")];
}

function podText({ name, action, images = [] }: PlannedSetPod): string {
  const change = images.map(({ container, from, to }) => `${container} ${from} → ${to}`).join(", ");
  return change ? `${action} ${name}  ${change}` : `${action} ${name}`;
}
