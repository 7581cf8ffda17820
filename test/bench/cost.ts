/** Computes the price of a month on AWS from measured milliseconds, bytes and counts. */
import { AUDIT_MINUTES } from "../../shared/core/rollout/queue/work.ts";
import {
  ALARM_METRIC_MONTH,
  FARGATE_GB_HOUR,
  FARGATE_PROCESSOR_HOUR,
  FIFO_REQUEST,
  HTTP_API_REQUEST,
  INTERNET_GB,
  LAMBDA_GB_SECOND,
  LAMBDA_REQUEST,
  LOAD_BALANCER_HOUR,
  LOAD_BALANCER_UNIT_GB,
  LOAD_BALANCER_UNIT_HOUR,
  LOG_GB,
  SCHEDULER_INVOCATION,
} from "./prices.ts";

export interface Measurements {
  /** milliseconds of a tick that finds nothing to do */
  readonly idleTickMs: number;
  /** milliseconds of a pod's admission, the runtime's work included */
  readonly podMs: number;
  /** bytes of the answer to one pod */
  readonly podAnswerBytes: number;
  /** bytes of the lines that an idle tick logs */
  readonly tickLogBytes: number;
  readonly alarmMetrics: number;
  /** number of reads of a tick, and of an admission, that wait for each other */
  readonly tickWaits: number;
  readonly podWaits: number;
}

/** Dollars by item, and their sum. */
export interface Cost {
  readonly parts: Readonly<Record<string, number>>;
  readonly total: number;
}

const MEMORY_GB = 0.5;
/** Memory of the pod webhook in serverless.yml. */
const POD_MEMORY_GB = 1.769;
/** Lambda gives a whole processor with 1,769 MB, so computing takes longer with less memory. */
const FULL_PROCESSOR_GB = 1.769;
const MINUTES = 60 * 24 * 30;
const HOURS = 24 * 30;
/** Calls of a month that keep an environment of the pod webhook warm. */
const PINGS = MINUTES / 5;
/** Size of the review of a pod with its managed fields. */
const REVIEW_BYTES = 10_000;

/** The assumed milliseconds until an API server in the same region has answered a read. */
export const READ_MS = 3;

/**
 * Returns the price of calls with this computing time on a whole processor, and this number of successive reads. Lambda
 * rounds up to one millisecond.
 */
function lambda(calls: number, milliseconds: number, waits = 0, memoryGb = MEMORY_GB): number {
  const billedMs = Math.ceil(milliseconds * (FULL_PROCESSOR_GB / memoryGb) + waits * READ_MS);
  return calls * (LAMBDA_REQUEST + (billedMs / 1000) * memoryGb * LAMBDA_GB_SECOND);
}

function cost(parts: Readonly<Record<string, number>>): Cost {
  return { parts, total: Object.values(parts).reduce((sum, part) => sum + part, 0) };
}

const KEPT_WARM = "an environment of the pod webhook kept warm: Scheduler and Lambda";

/** Returns the price of a month for a cluster in which nothing happens. */
export function idleMonth(measured: Measurements): Cost {
  const { idleTickMs, tickWaits, tickLogBytes, alarmMetrics, podMs, podWaits } = measured;
  return cost({
    "ticks: Scheduler": MINUTES * SCHEDULER_INVOCATION,
    "ticks: Lambda": lambda(MINUTES, idleTickMs, tickWaits),
    "ticks: logs": ((MINUTES * tickLogBytes) / 1e9) * LOG_GB,
    [KEPT_WARM]: PINGS * SCHEDULER_INVOCATION + lambda(PINGS, podMs, podWaits, POD_MEMORY_GB),
    alarms: alarmMetrics * ALARM_METRIC_MONTH,
  });
}

/** Returns the price of that many pods a minute for a whole month by Function URL, on top of an idle month. */
export function podsMonth(podsPerMinute: number, { podMs, podWaits }: Pick<Measurements, "podMs" | "podWaits">): Cost {
  return cost({ "admissions: Lambda": lambda(podsPerMinute * MINUTES, podMs, podWaits, POD_MEMORY_GB) });
}

/**
 * Returns the price of that many idle clusters with one set of functions. `alarmMetrics`: the number for all clusters.
 */
export function idleClustersMonth(clusters: number, { alarmMetrics, ...measured }: Measurements): number {
  const { total, parts } = idleMonth({ ...measured, alarmMetrics: 0 });
  const { [KEPT_WARM]: warm = 0 } = parts;
  return clusters * (total - warm) + warm + alarmMetrics * ALARM_METRIC_MONTH;
}

/** Returns the price of two tasks with a quarter of a processor and 0.5 GB, and a load balancer for API servers. */
export function fargateMonth(): number {
  const tasks = 2 * HOURS * (0.25 * FARGATE_PROCESSOR_HOUR + 0.5 * FARGATE_GB_HOUR);
  return tasks + HOURS * LOAD_BALANCER_HOUR;
}

/** Returns the number of pods a minute, for a whole month, above which functions cost more than these tasks. */
export function breakEvenPods(measured: Measurements): number {
  const ofOne = podsMonth(1, measured).total;
  return (fargateMonth() - idleMonth(measured).total) / ofOne;
}

export interface QueueMeasurements {
  /** milliseconds of a message's pass over a settled SidecarSet */
  readonly passMs: number;
  /** bytes of the lines that this pass logs */
  readonly passLogBytes: number;
  /** milliseconds of the schedule's call: to list all SidecarSets, and to compute each message */
  readonly listMs: number;
  readonly sendMs: number;
}

/** Messages in one request that sends, and requests to take a message out and delete it. */
const [SENT_AT_ONCE, REQUESTS_TO_SERVE] = [10, 2];

/**
 * Returns the cost of SidecarSets that go through a queue, on top of an idle month. Each pass is assumed to find no
 * work.
 */
export function queueMonth(
  { sidecarSets, isUnderWay }: { readonly sidecarSets: number; readonly isUnderWay: boolean },
  { passMs, passLogBytes, listMs, sendMs }: QueueMeasurements,
): Cost {
  const each = sidecarSets / (isUnderWay ? 1 : AUDIT_MINUTES);
  const messages = each * MINUTES;
  return cost({
    "messages: SQS": messages * (1 / SENT_AT_ONCE + REQUESTS_TO_SERVE) * FIFO_REQUEST,
    "messages: Lambda": lambda(messages, passMs),
    "messages: logs": ((messages * passLogBytes) / 1e9) * LOG_GB,
    "ticks, which list and send: Lambda": lambda(MINUTES, listMs + each * sendMs),
  });
}

/** Returns the cost of other front doors, and of answers that leave the region. */
export function doorsMonth(podsPerMinute: number, { podAnswerBytes }: Measurements) {
  const pods = podsPerMinute * MINUTES;
  // API servers keep their connections, so the processed bytes cost most.
  const units = (podsPerMinute * 60 * (REVIEW_BYTES + podAnswerBytes)) / 1e9 / LOAD_BALANCER_UNIT_GB;
  return {
    "HTTP API": pods * HTTP_API_REQUEST,
    "load balancer": HOURS * (LOAD_BALANCER_HOUR + LOAD_BALANCER_UNIT_HOUR * units),
    "answers to the internet": ((pods * podAnswerBytes) / 1e9) * INTERNET_GB,
  };
}

/**
 * Returns the price of a rollout of `pods` pods in batches of `batch`. Each pod is ready after `readySeconds`, and the
 * function runs the whole time.
 */
export function rolloutOnce(pods: number, batch: number, readySeconds: number): Cost & { readonly minutes: number } {
  const minutes = (Math.ceil(pods / batch) * readySeconds) / 60;
  const calls = Math.ceil(minutes);
  const gbSeconds = minutes * 60 * MEMORY_GB * LAMBDA_GB_SECOND;
  return {
    ...cost({ "ticks: Scheduler and Lambda": calls * (SCHEDULER_INVOCATION + LAMBDA_REQUEST) + gbSeconds }),
    minutes,
  };
}
