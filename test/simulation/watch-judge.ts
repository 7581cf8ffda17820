/** Asks `status -w` for its exit code at this moment, and reports a code that a recount of the store contradicts. */
import { standingOf, watchCode } from "../../functions/cli/input/progress.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { isHalfUpgraded } from "./end-state.ts";
import { hasLabels } from "./label-match.ts";
import type { IsInNamespace } from "./namespace-witness.ts";
import { hashOfPod, isPodReady, isWorking } from "./objects.ts";
import { partitionNow, selects } from "./permission.ts";
import { type ReaderOptions, readNow } from "./read-now.ts";
import { isOfFailedPass } from "./status-words.ts";

export interface WatchJudgeOptions extends ReaderOptions {
  readonly isIn: IsInNamespace;
  readonly violated: (what: string) => void;
}

/**
 * With one of these reasons of Blocked, or failing passes, a watch may end with an error although every pod is updated
 * and works. The last wave may wait for checks without a value.
 */
const ENDS_ALL: ReadonlySet<string> = new Set(["Halted", "AnnotationUnreadable", "Metrics"]);

/** Facts about one SidecarSet in the store at this moment. */
interface Recount {
  readonly isSeen: boolean;
  /** true if nobody wants updates */
  readonly isAtRest: boolean;
  readonly isDone: boolean;
  /** number of updated pods that are not ready */
  readonly down: number;
  /** number of old pods that neither the partition nor the strategy's selector holds back */
  readonly owed: number;
  readonly endsAll: boolean;
}

/** Judges the watch of one SidecarSet. */
export async function judgeWatch(options: WatchJudgeOptions, name: string): Promise<void> {
  const { violated } = options;
  const read = await readNow(options, name);
  if (!read) return;
  const { sidecarSet, ...observed } = read.observation;
  const progress = standingOf(sidecarSet, { ...observed, ...read.context, lastPass: undefined });
  const problem = codeProblem(watchCode({ sidecarSet, progress }), recount(options, name));

  if (problem) violated(`status -w ${name} ${problem}: ${progress.summary.hold}`);
}

function recount({ server, isIn }: WatchJudgeOptions, name: string): Recount {
  const set = server.peek<SidecarSet>(SIDECARSETS, { name });
  if (!set) return { isSeen: false, isAtRest: false, isDone: false, down: 0, owed: 0, endsAll: false };
  const { selector = {}, paused = false, type } = set.spec.updateStrategy ?? {};
  const hash = set.metadata?.annotations?.[HASH_ANNOTATION];
  const pods = server
    .all<Pod>(PODS)
    .filter((pod) => !pod.metadata?.deletionTimestamp && selects(set, pod, isIn))
    .map((pod) => ({ pod, isUpdated: hashOfPod(pod, name) === hash }));
  const updated = pods.filter(({ isUpdated }) => isUpdated).map(({ pod }) => pod);
  const old = pods.filter(({ pod, isUpdated }) => !isUpdated && hasLabels(pod.metadata?.labels, selector));
  const blocked = set.status?.conditions?.find((condition) => condition.type === "Blocked");
  return {
    isSeen: (set.status?.observedGeneration ?? 0) >= (set.metadata?.generation ?? 0),
    isAtRest: paused || type === "NotUpdate",
    isDone: pods.every(
      ({ pod, isUpdated }) => isUpdated && isWorking(pod) && !isHalfUpgraded(pod, name) && !hasEarlyStart(pod, name),
    ),
    down: updated.filter((pod) => !isPodReady(pod)).length,
    owed: Math.max(0, old.length - partitionNow(set, pods.length)),
    endsAll: blocked?.status === "True" && (ENDS_ALL.has(blocked.reason) || isOfFailedPass(set.status)),
  };
}

/**
 * True if a container started before the write of its values. It may still have the earlier values, or its node's clock
 * may be behind: a watch waits a minute.
 */
function hasEarlyStart({ metadata, status }: Pod, set: string): boolean {
  const text = metadata?.annotations?.[`${set}.sidecarset.kruise.io/values`] ?? "{}";
  const { before = {} } = JSON.parse(text) as {
    readonly before?: Readonly<Record<string, { readonly since: string }>>;
  };
  return (status?.containerStatuses ?? []).some(
    ({ name, state }) => (state?.running?.startedAt ?? "") < (before[name]?.since ?? ""),
  );
}

/** Returns the problem; undefined: the recount allows this exit code. `code`: undefined while the watch continues. */
function codeProblem(code: number | undefined, recounted: Recount): string | undefined {
  const { isSeen, isAtRest, isDone, endsAll } = recounted;
  const isOver = isSeen && isDone;
  if (code === 0) return earlyEnd(recounted);
  if (code !== undefined) return isOver && !endsAll ? "ends badly, and every pod is updated and works" : undefined;
  if (isOver) return "goes on, and every pod is updated and works";
  return isAtRest ? "goes on, and nobody asks for updates" : undefined;
}

function earlyEnd({ isSeen, down, owed }: Recount): string | undefined {
  if (!isSeen) return "ends well, and no pass has seen this generation";
  if (down > 0) return `ends well, and ${down} updated pods are not ready`;
  return owed > 0 ? `ends well, and ${owed} pods are to be updated still` : undefined;
}
