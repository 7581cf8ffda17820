/** Lists generated pods into a view and decides on them in its own process: the pods' part of a tick, without calls. */
import { keepHeapSmall } from "../../../functions/lambda/heap.ts";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { PodView } from "../../../shared/controller/pod-store/pod-view.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { UNTOUCHED } from "../../support/rollout-fixture.ts";
import { rolloutPod, sidecarSets } from "../fixture.ts";
import { answerCalls } from "../process/answer-calls.ts";

export interface PodStorePlan {
  readonly pods: number;
  readonly decisions: number;
}

export interface PodStoreRun {
  /** peak megabytes of the whole process */
  readonly peakMegabytes: number;
  /** milliseconds for storing listed pods, and for the decisions; generating the pods does not count */
  readonly cpuMs: number;
}

const CONTEXT = {
  now: "2026-01-01T00:00:00Z",
  kruiseNamespace: "kruise-system",
  settings: DEFAULT_ROLLOUT_SETTINGS,
} as const;
const PAGE_SIZE = 500;

function run({ pods: count, decisions }: PodStorePlan): PodStoreRun {
  keepHeapSmall();
  const [sidecarSet] = sidecarSets(1);
  if (sidecarSet === undefined) throw new Error("no SidecarSet");
  const view = new PodView(sidecarSet);
  let cpu = 0;
  const timed = <T>(work: () => T): T => {
    const before = process.cpuUsage();
    const done = work();
    const { user, system } = process.cpuUsage(before);
    cpu += (user + system) / 1000;
    return done;
  };
  const rows: number[] = [];
  for (let from = 0; from < count; from += PAGE_SIZE) {
    const length = Math.min(PAGE_SIZE, count - from);
    // The pods are parsed, like pods that were read. A program's literal strings would be shared by all pods.
    const page = Array.from(
      { length },
      (_, at) => JSON.parse(JSON.stringify(rolloutPod(from + at, sidecarSet))) as Pod,
    );
    timed(() => {
      for (const pod of page) rows.push(view.gather(pod));
    });
  }
  timed(() => view.complete([rows]));
  for (let times = 0; times < decisions; times++) {
    const { summary } = timed(() => decide({ sidecarSet, pods: view.records, revisions: [], ...UNTOUCHED }, CONTEXT));
    if (summary.waiting !== count) throw new Error(`${summary.waiting} of ${count} pods wait`);
  }
  return { peakMegabytes: (process.resourceUsage().maxRSS * 1024) / 1e6, cpuMs: cpu };
}

answerCalls({ run });
