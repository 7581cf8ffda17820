/** A change to an Advanced StatefulSet that is stored only if nobody else changed it since it was read. */

import type { ControllerRevision, Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { changePatch } from "../../../shared/controller/statefulset/act.ts";
import { commandText } from "../../../shared/core/pod/command-text.ts";
import { compareRevisions, isOwn, isSameRevision } from "../../../shared/core/sidecarset/revision/compare-revisions.ts";
import { isBroken, isMonotonic } from "../../../shared/core/statefulset/explain/trace-pod.ts";
import { revisionOf } from "../../../shared/core/statefulset/pods/pod-phase.ts";
import { newSetRevision, restoreTemplate } from "../../../shared/core/statefulset/revisions.ts";
import { counted } from "../../../shared/go/counted.ts";
import { type Cluster, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { CliError, type Part } from "../../terminal/screen.ts";
import { printTable } from "../../terminal/table.ts";
import type { Input } from "../command.ts";
import { showUnchanged, storeChange } from "../input/change-set.ts";
import { SET_KIND, type SetTarget } from "../input/read-set.ts";
import type { Session } from "../session.ts";
import { type AdvancedStatefulSet, readStatefulSet } from "./read-statefulset.ts";
import { templateImages } from "./status.ts";

export interface StatefulSetChange {
  readonly before: StatefulSet;
  readonly after: StatefulSet;
  /** the change, as in "db: paused" */
  readonly text: string;
  /** notes about the change, each one sentence */
  readonly notes?: readonly string[];
}

/** Writes the change; with --dry-run the API server checks it, webhooks included, and stores nothing. */
export async function changeStatefulSet(
  input: Input,
  session: Session,
  cluster: Cluster,
  { before, after, ...change }: StatefulSetChange,
): Promise<void> {
  const { namespace = "", name = "" } = before.metadata ?? {};
  await storeChange(input, session, {
    title: `StatefulSet ${namespace}/${name}`,
    subject: { namespace, statefulSet: name },
    name,
    change,
    before,
    read: () => cluster.get<StatefulSet>(STATEFUL_SETS, { namespace, name }),
    store: (resourceVersion, options) => {
      const rested = { ...before, metadata: { ...before.metadata, resourceVersion } } as StatefulSet;
      return cluster.patch(STATEFUL_SETS, { namespace, name }, changePatch(rested, after), options);
    },
  });
}

// `undo` and `history` of an Advanced StatefulSet: a return to the pod template that a revision recorded.

export async function undoStatefulSet(input: Input, session: Session, target: SetTarget): Promise<number> {
  const cluster = await session.cluster();
  const facts = await readStatefulSet(session, cluster, target);
  const { set } = facts;
  const revision = revisionFor(facts, input.number("to-revision", 1));
  if (isCurrent(facts, revision)) {
    const { namespace = "", name = "" } = set.metadata ?? {};
    const why = `has the pod template of revision ${revision.revision} already`;
    showUnchanged(session, { namespace, statefulSet: name }, why);
    return 0;
  }
  const text = `back to revision ${revision.revision} (${templateImages(revision)})`;
  const after = restoreTemplate(set, revision);
  await changeStatefulSet(input, session, cluster, { before: set, after, text, notes: notesOf(facts, revision) });
  return 0;
}

/** Notes about settings that keep pods from returning by themselves. */
function notesOf({ set, seen }: AdvancedStatefulSet, { metadata }: ControllerRevision): readonly string[] {
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  const partition = rollingUpdate?.partition ?? 0;
  const isKept = isMonotonic(seen) && !seen.gates.StatefulSetUnblocked && type !== "OnDelete";
  const isLost = (pod: Pod) => isBroken(pod) && revisionOf(pod) !== metadata?.name;
  const lost = isKept ? seen.pods.filter(isLost).map((pod) => pod.metadata?.name) : [];
  return [
    ...(type === "OnDelete" ? ["The update strategy is OnDelete: pods go back when they are deleted."] : []),
    ...(rollingUpdate?.paused
      ? [
          `The update is paused: pods go back after ${commandText`sidecarset resume ${SET_KIND}/${set.metadata?.name} -n ${set.metadata?.namespace}`}.`,
        ]
      : []),
    ...(partition > 0 ? [`The partition is ${partition}: so many pods stay as they are.`] : []),
    ...(lost.length > 0
      ? [
          `A set that keeps order never updates a pod that is not ready: ${commandText`kubectl -n ${set.metadata?.namespace} delete pod ${lost}`} lets it go on.`,
        ]
      : []),
  ];
}

export async function showHistory(session: Session, target: SetTarget): Promise<number> {
  const facts = await readStatefulSet(session, await session.cluster(), target);
  const rows = newestFirst(facts).map((one) => ({
    revision: one.revision,
    name: one.metadata?.name ?? "",
    created: one.metadata?.creationTimestamp ?? "",
    images: templateImages(one),
    pods: facts.seen.pods.filter((pod) => revisionOf(pod) === one.metadata?.name).length,
    isCurrent: isCurrent(facts, one),
  }));
  printHistory(session, rows);
  return 0;
}

interface HistoryRow extends Readonly<Record<"name" | "created" | "images", string>> {
  readonly revision: number;
  readonly pods: number;
  readonly isCurrent: boolean;
  /** outcome of the revision; absent for an ordered set, which does not record it */
  readonly outcome?: string;
  /** paths of fields that differ from the revision before, beside images; absent for an ordered set */
  readonly changed?: readonly string[];
}

export function printHistory(session: Session, rows: readonly HistoryRow[]): void {
  session.print(rows, (screen) => {
    const hasOutcomes = rows.some(({ outcome }) => outcome !== undefined);
    const hasChanges = rows.some(({ changed }) => changed?.length);
    const cells = rows.map((row): readonly Part[] => [
      row.isCurrent ? { text: `${row.revision} *`, color: "green" } : String(row.revision),
      row.name,
      row.created,
      String(row.pods),
      ...(hasOutcomes ? [row.outcome ?? ""] : []),
      row.images,
      ...(hasChanges ? [String(row.changed)] : []),
    ]);
    const titles = ["REVISION", "NAME", "CREATED", "PODS", ...(hasOutcomes ? ["OUTCOME"] : []), "IMAGES"];
    if (cells.length === 0) screen.line("No pass has recorded a revision yet.");
    else printTable(screen, hasChanges ? [...titles, "CHANGED"] : titles, cells);
  });
}

function newestFirst({ set, snapshot }: AdvancedStatefulSet): readonly ControllerRevision[] {
  return snapshot.revisions.filter((one) => isOwn(one, set)).toSorted((a, b) => compareRevisions(b, a));
}

/** True if the revision records the present pod template. */
function isCurrent({ set }: AdvancedStatefulSet, revision: ControllerRevision): boolean {
  return isSameRevision(revision, newSetRevision(set, revision.revision, set.status?.collisionCount ?? 0));
}

function revisionFor(facts: AdvancedStatefulSet, wanted: number | undefined): ControllerRevision {
  const all = newestFirst(facts);
  const { name } = facts.key;
  if (wanted !== undefined) {
    const found = all.find(({ revision }) => revision === wanted);
    if (found) return found;
    const numbers = all.map(({ revision }) => revision).join(", ");
    throw new CliError(`--to-revision ${wanted}: there is no such revision, but ${numbers || "none at all"}`);
  }
  const previous = all.find((one) => !isCurrent(facts, one));
  if (previous) return previous;
  const there = counted(all.length, "revision");
  throw new CliError(
    `${SET_KIND} ${name} has no previous revision, of ${there}; sidecarset history shows what there is`,
  );
}
