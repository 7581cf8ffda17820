/** `plan` of an Advanced StatefulSet: the passes' actions on its pods, step by step, to the end. */

import type { AdmissionRequest } from "../../../shared/api/admission.ts";
import { SIDECARSET_V1BETA1, STATEFUL_SET_KIND } from "../../../shared/api/names.ts";
import type { StatefulSet, StorageClass } from "../../../shared/api/stateful-set.ts";
import { listAll } from "../../../shared/controller/rollout/observe-pods.ts";
import type { SetKey } from "../../../shared/controller/statefulset/observe.ts";
import type { SetPlanWish } from "../../../shared/controller/statefulset/reconcile.ts";
import type { SetReport } from "../../../shared/controller/statefulset/report.ts";
import { explainSet, isSetSettled } from "../../../shared/core/statefulset/explain/explain-set.ts";
import { mutateStatefulSet } from "../../../shared/core/statefulset/mutate.ts";
import type {
  PlannedSetPod,
  PlannedSetStep,
  SetRolloutPlan,
} from "../../../shared/core/statefulset/plan/plan-set-rollout.ts";
import { validateStatefulSet } from "../../../shared/core/statefulset/validate.ts";
import { counted } from "../../../shared/go/counted.ts";
import { type Cluster, STORAGE_CLASSES } from "../../../shared/kube/port.ts";
import { readConfig } from "../../../shared/settings/config.ts";
import { runSetTick, troubleOfSets } from "../../server/tick.ts";
import { duration } from "../../terminal/duration.ts";
import { type ReadObject, readObjects } from "../../terminal/read-objects.ts";
import { CliError, type Part, type Screen } from "../../terminal/screen.ts";
import { printTable, wrap } from "../../terminal/table.ts";
import type { Input } from "../command.ts";
import { SET_KIND, type SetTarget } from "../input/read-set.ts";
import type { Session } from "../session.ts";
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
  return planned.isComplete || isSetSettled(planned.after) ? 0 : NOT_DONE;
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

/** Actions of a step in order, each with its first pods. */
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

// Reads an Advanced StatefulSet from a file, in the form that the webhook would store: valid, with defaults.

/** The file's object as the update of `before` would store it; undefined: no file was given. @throws CliError */
async function readGivenStatefulSet(
  files: readonly string[],
  before: StatefulSet,
  cluster: Cluster,
): Promise<StatefulSet | undefined> {
  if (files.length === 0) return undefined;
  const { name, namespace } = before.metadata ?? {};
  const found = (await readObjects(files)).filter(({ object: { kind } }) => kind === STATEFUL_SET_KIND);
  const [only, second] = found.filter(({ object: { metadata } }) => metadata?.name === name);
  if (only === undefined) {
    const others = found.map(({ object }) => object.metadata?.name ?? "(no name)").join(", ");
    throw new CliError(`${files.join(", ")}: no ${SET_KIND} ${name} in there${others ? `, but ${others}` : ""}`);
  }
  const { object, place } = only;
  if (second !== undefined) throw new CliError(`${second.place}: StatefulSet ${name} is given twice; leave one out`);
  if (object.apiVersion !== SIDECARSET_V1BETA1)
    throw new CliError(
      `${place}: it is a StatefulSet of ${object.apiVersion}; write apiVersion: ${SIDECARSET_V1BETA1}`,
    );
  if ((object.metadata?.namespace ?? namespace) !== namespace)
    throw new CliError(
      `${place}: it is for the namespace ${object.metadata?.namespace}, not ${namespace}; choose with -n`,
    );
  return await stored(only, before, cluster);
}

async function stored({ object, place }: ReadObject, before: StatefulSet, cluster: Cluster): Promise<StatefulSet> {
  const { featureGates: gates } = readConfig();
  // Fields that an API server fills in on an update.
  const { uid, name, namespace, creationTimestamp, generation, resourceVersion } = before.metadata ?? {};
  const own = { uid, name, namespace, creationTimestamp, generation, resourceVersion };
  const metadata = { ...object.metadata, ...own };
  const mutated = mutateStatefulSet(requestOf({ ...object, metadata } as StatefulSet, before), gates);
  if (mutated.kind === "denied") throw new CliError(`${place}: ${mutated.message}; correct it there`);
  const set = (mutated.object ?? { ...object, metadata }) as StatefulSet;
  const storageClasses = gates.StatefulSetAutoResizePVCGate ? await listClasses(cluster) : [];
  const validated = validateStatefulSet(requestOf(set, before), { gates, storageClasses });
  if (validated.kind === "denied") throw new CliError(`${place}: ${validated.message}; correct it there`);
  return set;
}

function requestOf(object: StatefulSet, oldObject: StatefulSet): AdmissionRequest {
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "statefulsets" };
  return { uid: "plan", resource, operation: "UPDATE", object, oldObject };
}

async function listClasses(cluster: Cluster): Promise<readonly StorageClass[]> {
  return (await listAll<StorageClass, StorageClass>(cluster, STORAGE_CLASSES, {}, (one) => one)).items;
}
