/**
 * The thread beside the webhooks of `serve`: passes, pages and metrics of passes, so that no admission waits for them.
 */
import { Worker } from "node:worker_threads";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { Log, LogLevel } from "../../shared/log.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";
import { within } from "../../shared/webhook/server/http.ts";
import type { MakePage, Wanted } from "./ui.ts";

/** The thread's start data. */
export interface BehindPlan {
  /** path of a kubeconfig; absent: the cluster of the environment's settings */
  readonly kubeconfig?: string | undefined;
  /** milliseconds between passes; absent: no passes */
  readonly tickMs?: number | undefined;
  /** lowest level of the log; absent: the thread logs nothing */
  readonly logFrom?: LogLevel | undefined;
  /** the caller wants a report of each pass */
  readonly isReporting: boolean;
}

interface Asked {
  readonly id: number;
  /** the requested page; absent: the metrics of passes */
  readonly page?: Wanted;
}

export type ToThread = "wake" | "end" | Asked;

export type FromThread =
  | { readonly kind: "ready" }
  | { readonly kind: "unusable"; readonly message: string }
  | { readonly kind: "log"; readonly lines: string }
  | { readonly kind: "report"; readonly report: PassReport }
  | Answered;

type Answered =
  | { readonly kind: "answer"; readonly id: number; readonly text: string | undefined }
  | { readonly kind: "failure"; readonly id: number; readonly failure: Failure };

/** An error in a form that can cross threads, which removes its class and its own fields. */
export interface Failure {
  readonly message: string;
  /** the code of a KubeError */
  readonly code?: number;
  readonly reason?: string;
}

export interface Behind {
  /** Resolves when the thread has read its settings; rejects with ConfigError when passes cannot use theirs. */
  readonly start: () => Promise<void>;
  /** Makes the next pass start soon. */
  readonly wake: () => void;
  readonly makePage: MakePage;
  /** The metrics of passes, or the last known ones if the thread does not answer in time. */
  readonly metrics: () => Promise<string>;
  /** Resolves when the running pass has ended between two rounds. */
  readonly close: () => Promise<void>;
}

export interface BehindOptions {
  readonly log: Log;
  /** takes lines that are already formatted */
  readonly print: (lines: string) => void;
  readonly onReport: (report: PassReport) => void;
  /** the file of the thread; absent: the product's own */
  readonly thread?: URL;
}

/** The path of the thread's file. The built file is beside this file's chunk. */
const THREAD = new URL(import.meta.url.endsWith(".ts") ? "behind-thread.ts" : "behind-thread.mjs", import.meta.url);
/** Milliseconds before a new start, so that a thread that always fails does not use a whole processor. */
const AGAIN_MS = 5_000;
/** Time limit for metrics; Prometheus gives up after ten seconds. */
const METRICS_MS = 3_000;

/** A thread that is started again after an error. Meanwhile the webhooks continue to answer. */
export function threadBehind(plan: BehindPlan, { log, print, onReport, thread = THREAD }: BehindOptions): Behind {
  const ready = Promise.withResolvers<void>();
  const waiting = new Map<number, PromiseWithResolvers<string | undefined>>();
  /** undefined: the thread has not started, or starts again soon */
  let worker: Worker | undefined;
  let isReady = false;
  let isClosing = false;
  let lastId = 0;
  let lastMetrics = "";

  const begin = () => {
    if (isClosing) return;
    worker = new Worker(thread, { workerData: plan, name: "passes" });
    worker.on("message", take);
    worker.on("error", (error) => log.error("the thread of passes and pages ended by an error", { error }));
    worker.on("exit", ended);
  };
  const ended = () => {
    worker = undefined;
    for (const { reject } of waiting.values()) reject(gone());
    waiting.clear();
    ready.reject(new Error("the thread of passes and pages ended before it had begun; the log says why"));
    if (isReady) setTimeout(begin, AGAIN_MS).unref();
  };
  const take = (message: FromThread) => {
    if (message.kind === "ready") {
      isReady = true;
      ready.resolve();
    } else if (message.kind === "unusable") ready.reject(new ConfigError(message.message));
    else if (message.kind === "log") print(message.lines);
    else if (message.kind === "report") onReport(message.report);
    else settle(message);
  };
  const settle = (message: Answered) => {
    const one = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.kind === "answer") one?.resolve(message.text);
    else one?.reject(errorOf(message.failure));
  };
  const tell = (message: ToThread) => worker?.postMessage(message);
  const ask = (page?: Wanted): Promise<string | undefined> => {
    if (worker === undefined) return Promise.reject(gone());
    const id = ++lastId;
    const answer = Promise.withResolvers<string | undefined>();
    waiting.set(id, answer);
    tell(page === undefined ? { id } : { id, page });
    return answer.promise;
  };
  return {
    start: () => {
      begin();
      return ready.promise;
    },
    wake: () => tell("wake"),
    makePage: ask,
    metrics: async () => {
      lastMetrics = (await within(METRICS_MS, () => ask()).catch(() => undefined)) ?? lastMetrics;
      return lastMetrics;
    },
    close: async () => {
      isClosing = true;
      if (worker === undefined) return;
      const over = Promise.withResolvers<void>();
      // The log already has its error, and node:events would throw it again.
      worker.once("exit", () => over.resolve());
      tell("end");
      await over.promise;
    },
  };
}

function gone(): Error {
  return new Error("the thread of passes and pages has ended, and begins again soon");
}

function errorOf({ message, code, reason }: Failure): Error {
  return code === undefined || reason === undefined ? new Error(message) : new KubeError(message, { code, reason });
}
