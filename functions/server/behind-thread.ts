/** The thread that runs beside the webhooks of `serve`; behind.ts starts it. */
import { once } from "node:events";
import { getPriority, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import {
  type ReadReportContext,
  readDetail,
  readOverview,
  readPodExplanation,
} from "../../shared/controller/rollout/read-report.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import type { Refresh } from "../../shared/core/inspect/report/document.ts";
import { renderPage, renderPodPage } from "../../shared/core/inspect/report/page.ts";
import { connect } from "../../shared/kube/connect.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { ObjectKey } from "../../shared/kube/port.ts";
import { createBatchedLog, createLog, withoutSecrets } from "../../shared/log.ts";
import { readCluster, readConfig } from "../../shared/settings/config.ts";
import type { BehindPlan, Failure, FromThread, ToThread } from "./behind.ts";
import { createMetrics } from "./metrics.ts";
import { createWakeUp, tickAll } from "./ticks.ts";
import { withTraces } from "./tracing.ts";
import { type MakePage, otherOf, pagesAbove, refreshAfter, STILL, type Wanted } from "./ui.ts";

async function run({ kubeconfig, tickMs, logFrom, isReporting }: BehindPlan): Promise<void> {
  yieldToReviews();
  const { kruiseNamespace, featureGates: settings } = readConfig();
  const print = (lines: string) => send({ kind: "log", lines });
  const log = logFrom === undefined ? createLog("error", () => undefined) : createBatchedLog(logFrom, print);
  const toCluster = () => connect(kubeconfig ?? readCluster());
  const [end, wakeUp, metrics] = [new AbortController(), createWakeUp(), createMetrics()];
  const context = async () => {
    const cluster = await toCluster();
    return { cluster, clusterName: "", clock: systemClock, kruiseNamespace, settings };
  };
  const makePage = inTurn({ context, elapsed: () => performance.now() });
  const answer = async (page: Wanted | undefined) => {
    if (page === undefined) return metrics.text();
    const made = await makePage(page);
    return made === undefined ? undefined : withoutSecrets(made);
  };
  parentPort?.on("message", (message: ToThread) => {
    if (message === "wake") return wakeUp.wake();
    if (message === "end") return end.abort();
    const { id, page } = message;
    answer(page).then(
      (text) => send({ kind: "answer", id, text }),
      (error: unknown) => send({ kind: "failure", id, failure: failureOf(error) }),
    );
  });
  const onReport = (report: PassReport) => {
    metrics.addPass(report, Date.now());
    if (isReporting) send({ kind: "report", report });
  };
  try {
    await withTraces(log, async () => {
      const ticking = { connect: toCluster, log, wakeUp, signal: end.signal, onReport };
      const ended = tickMs === undefined ? once(end.signal, "abort") : tickAll({ ...ticking, tickMs });
      // Settings that cannot be used fail here at once.
      await Promise.race([ended, Promise.resolve()]);
      send({ kind: "ready" });
      await ended;
    });
  } catch (error) {
    send({ kind: "unusable", message: failureOf(error).message });
  }
  // Open connections would keep the thread alive.
  process.exit();
}

/** Gives reviews priority when there is too much work for the processors. Only Linux has a priority for each thread. */
function yieldToReviews(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(0, Math.min(19, getPriority(0) + 10));
  } catch {
    // Some sandboxes forbid a process to change its priority.
  }
}

function send(message: FromThread): void {
  parentPort?.postMessage(message);
}

function failureOf(error: unknown): Failure {
  if (error instanceof KubeError) return { message: error.message, code: error.code, reason: error.reason };
  return { message: error instanceof Error ? error.message : String(error) };
}

interface PageSource {
  /** context of a page; it is read for every page that is not cached */
  readonly context: () => Promise<ReadReportContext>;
  /** milliseconds of a clock that only goes forward */
  readonly elapsed: () => number;
}

/** A second request within this time gets the same page, because a page may cost a list of every pod. */
const KEPT_MS = 5_000;

/** Makes one page at a time, and keeps it for five seconds. */
function inTurn(source: PageSource): MakePage {
  let last: { readonly key: string; readonly at: number; readonly page: ReturnType<MakePage> } | undefined;
  return (wanted) => {
    const key = JSON.stringify(wanted);
    if (last !== undefined && last.key === key && source.elapsed() - last.at < KEPT_MS) return last.page;
    const before = last?.page.catch(() => undefined);
    const page = Promise.resolve(before).then(() => makePage(source, wanted));
    const entry = { key, at: source.elapsed(), page };
    last = entry;
    page.catch(() => {
      if (last === entry) last = undefined;
    });
    return page;
  };
}

async function makePage({ context, elapsed }: PageSource, wanted: Wanted): Promise<string | undefined> {
  const begin = elapsed();
  const render = await readPage(await context(), wanted);
  if (render === undefined) return undefined;
  const refreshSeconds = wanted.isStill ? undefined : refreshAfter(elapsed() - begin);
  return render({ seconds: refreshSeconds, other: otherOf(wanted) });
}

type Render = (refresh: Refresh) => string;

async function readPage(context: ReadReportContext, wanted: Wanted): Promise<Render | undefined> {
  const { name, pod, isStill } = wanted;
  const up = pagesAbove(wanted);
  const address = (path: string) => (isStill ? `${path}?${STILL}` : path);
  if (name === undefined) {
    const overview = await readOverview(context);
    return (refresh) => renderPage(overview, { linkTo: (one) => address(`ui/${one}`), refresh });
  }
  if (pod === undefined) {
    const detail = await readDetail(context, name);
    if (detail === undefined) return undefined;
    const content = { at: detail.at, cluster: context.clusterName, idle: undefined, details: [detail] };
    const linkToPod = (one: ObjectKey) => address(`${name}/pods/${one.namespace}/${one.name}`);
    return (refresh) => renderPage(content, { linkToPod, up, refresh });
  }
  const explanation = await readPodExplanation(context, name, pod);
  if (explanation === undefined) return undefined;
  return (refresh) => renderPodPage(explanation, { at: explanation.at, cluster: context.clusterName, refresh, up });
}

await run(workerData as BehindPlan);
