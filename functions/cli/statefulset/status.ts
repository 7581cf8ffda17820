/** `status` of an Advanced StatefulSet: its revisions and pods, and how far it is. */
import { explainSet, isSettled } from "../../../shared/core/statefulset/explain/explain-set.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { duration } from "../../terminal/duration.ts";
import type { Part, Screen } from "../../terminal/screen.ts";
import { wrap } from "../../terminal/table.ts";
import { bar, showTree } from "../../terminal/tree.ts";
import type { Input } from "../command.ts";
import type { SetTarget } from "../input/target.ts";
import { watch } from "../input/watch.ts";
import { NOT_DONE } from "../input/watch-code.ts";
import type { Session } from "../session.ts";
import { progressOfSet, type SetPodRow, type SetProgress } from "./progress.ts";
import { type AdvancedStatefulSet, readStatefulSet } from "./read-statefulset.ts";
import { templateImages } from "./template-images.ts";

interface Status {
  readonly facts: AdvancedStatefulSet;
  readonly progress: SetProgress;
}

/** @returns the exit code */
export async function showStatefulSetStatus(input: Input, session: Session, target: SetTarget): Promise<number> {
  const cluster = await session.cluster();
  const look = async () => lookAt(await readStatus(session, cluster, target), input.isSet("pods"));
  if (input.isSet("watch")) return await watch(input, session, look);
  const { data, show } = await look();
  session.print(data, show);
  return 0;
}

async function readStatus(session: Session, cluster: Cluster, target: SetTarget): Promise<Status> {
  const facts = await readStatefulSet(session, cluster, target);
  return { facts, progress: progressOfSet(facts) };
}

function lookAt(status: Status, hasAll: boolean) {
  const { facts, progress } = status;
  const why = explainSet(progress.standing);
  const data = { ...facts.key, why, ...progress };
  return { why, data, show: (screen: Screen) => show(status, screen, hasAll), code: codeOf(progress) };
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

/** undefined: it goes on by itself. */
function codeOf({ standing, isSeen, isStuck }: SetProgress): number | undefined {
  if (isStuck) return NOT_DONE;
  if (!isSettled(standing) || !isSeen) return undefined;
  return standing.hold === "none" || standing.hold === "partition" ? 0 : NOT_DONE;
}
