/** `status` of an Advanced StatefulSet: its revisions and pods, and how far it is. */
import { setTimeout as sleep } from "node:timers/promises";
import { explainSet, isSettled } from "../../../shared/core/statefulset/explain/explain-set.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { duration } from "../../terminal/duration.ts";
import type { Part, Screen } from "../../terminal/screen.ts";
import { wrap } from "../../terminal/table.ts";
import { bar, showTree } from "../../terminal/tree.ts";
import type { Input } from "../command.ts";
import type { SetTarget } from "../input/target.ts";
import type { Session } from "../session.ts";
import { progressOfSet, type SetPodRow, type SetProgress } from "./progress.ts";
import { type AdvancedStatefulSet, readStatefulSet } from "./read-statefulset.ts";
import { templateImages } from "./template-images.ts";

const NOT_DONE = 3;
const WATCH_MS = 2_000;

interface Status {
  readonly facts: AdvancedStatefulSet;
  readonly progress: SetProgress;
}

/** @returns the exit code */
export async function showStatefulSetStatus(input: Input, session: Session, target: SetTarget): Promise<number> {
  const cluster = await session.cluster();
  if (input.isSet("watch")) return await watch(input, session, { cluster, target });
  const status = await readStatus(session, cluster, target);
  session.print(dataOf(status), (screen) => show(status, screen, input.isSet("pods")));
  return 0;
}

async function readStatus(session: Session, cluster: Cluster, target: SetTarget): Promise<Status> {
  const facts = await readStatefulSet(session, cluster, target);
  return { facts, progress: progressOfSet(facts) };
}

function dataOf({ facts: { key }, progress }: Status) {
  return { ...key, why: explainSet(progress.standing), ...progress };
}

function show({ facts, progress }: Status, screen: Screen, hasAll: boolean): void {
  const { standing, pods, etaSeconds, isSeen } = progress;
  const { namespace, name } = facts.key;
  const ready = pods.filter((pod) => pod.isUpdated && pod.isReady).length;
  const eta = etaSeconds === undefined ? "" : `  about ${duration(etaSeconds)} left`;
  screen.line(
    { text: `${namespace}/${name}`, color: "bold" },
    "  ",
    ...bar(ready, standing.updated, standing.desired),
    eta,
  );
  for (const line of wrap(explainSet(standing), screen.width)) screen.line(line);
  if (!isSeen) screen.line({ text: "No pass has seen the latest change yet.", color: "yellow" });
  const leaves = pods.map((row) => ({ ...row, label: row.name, state: stateOf(row) }));
  showTree({ revisions: facts.snapshot.revisions, pods: leaves, imagesOf: templateImages, hasAll }, screen);
}

function stateOf({ state, isReady, isUpdated }: SetPodRow): Part {
  if (!isReady) return { text: state, color: "red" };
  return { text: state, color: isUpdated ? "green" : "yellow" };
}

interface Watched {
  readonly cluster: Cluster;
  readonly target: SetTarget;
}

/** On a terminal the tree is redrawn; elsewhere each change is a line. */
async function watch(input: Input, session: Session, { cluster, target }: Watched): Promise<number> {
  const endsAt = performance.now() + (input.durationMs("timeout") ?? Number.POSITIVE_INFINITY);
  for (let last = ""; ; ) {
    const status = await readStatus(session, cluster, target);
    last = showChange(status, session, last, input.isSet("pods"));
    const code = codeOf(status.progress) ?? (performance.now() > endsAt ? NOT_DONE : undefined);
    if (code !== undefined) return code;
    await sleep(WATCH_MS);
  }
}

function showChange(status: Status, session: Session, last: string, hasAll: boolean): string {
  const why = explainSet(status.progress.standing);
  const { screen, output } = session;
  if (output !== "table" && why !== last) session.printNext(dataOf(status));
  if (output !== "table") return why;
  if (screen.isTerminal) {
    screen.clear();
    show(status, screen, hasAll);
  } else if (why !== last) screen.line(why);
  return why;
}

/** undefined: it goes on by itself. */
function codeOf({ standing, isSeen, isStuck }: SetProgress): number | undefined {
  if (isStuck) return NOT_DONE;
  if (!isSettled(standing) || !isSeen) return undefined;
  return standing.hold === "none" || standing.hold === "partition" ? 0 : NOT_DONE;
}
