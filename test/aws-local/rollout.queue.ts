/**
 * Tests SidecarSets that go through a queue, with our function at both ends, an embedded cluster, and ElasticMQ as SQS.
 */
import type { SQSEvent } from "aws-lambda";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { handler } from "../../functions/lambda/rollout.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { sendWork } from "../../shared/aws/send-work.ts";
import { tickWork, type Work } from "../../shared/core/rollout/queue/work.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { deploy, type HttpsCluster, readPods, release, sidecarSet, versionsOf } from "../controller/fixture.ts";
import { PATIENT } from "../support/patient.ts";
import { type Delivery, poll } from "./poller.ts";
import { openQueueSite, type QueueSite } from "./queue-site.ts";
import { createQueues, waiting } from "./queues.ts";
import { CREDENTIALS, REGION, type Sqs } from "./server.ts";

const SETS = 200;
const WORKERS = 8;
const MINUTE = Date.parse("2026-01-01T00:00:00Z");
/** The visibility timeout, shorter than a deployment's minute, so that failed messages return during the test. */
const VISIBILITY_SECONDS = 2;
const context = { getRemainingTimeInMillis: () => 20_000 };

let site: QueueSite;
let sqs: Sqs;
let cluster: HttpsCluster;
let queue = { url: "", region: REGION };
let failedUrl = "";
let count = 0;

beforeAll(async () => {
  site = await openQueueSite();
  ({ sqs, cluster } = site);
  const { accessKeyId, secretAccessKey } = CREDENTIALS;
  const env = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: "" };
  const all = { ...env, AWS_REGION: REGION, AWS_ENDPOINT_URL: sqs.endpoint, KUBECONFIG: site.kubeconfig };
  for (const [name, value] of Object.entries({ ...all, LOG_LEVEL: "error" })) vi.stubEnv(name, value);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await site?.close();
});

beforeEach(async () => {
  const options = { stage: `test-${++count}`, workers: WORKERS, visibilitySeconds: VISIBILITY_SECONDS };
  const { work, failedUrl: failed } = await createQueues(sqs, options);
  [queue, failedUrl] = [work, failed];
  vi.stubEnv("QUEUE_URL", work.url);
});

const access = () => ({ credentials: CREDENTIALS, endpoint: sqs.endpoint });
const send = (work: readonly Work[]) => sendWork(queue, work, access());
const tick = (minute = 0) => handler({ scheduledTime: new Date(MINUTE + minute * 60_000).toISOString() }, context);
const worker = (event: SQSEvent) => handler(event, context);
const setOf = ({ body }: Delivery) => (JSON.parse(body) as Work).sidecarSet;

/** Counts pairs of messages in one group that were served at the same time. */
function overlaps(deliveries: readonly Delivery[]): number {
  const byBegin = deliveries.toSorted((one, other) => one.beganAt - other.beganAt);
  const busyUntil = new Map<string, number>();
  return byBegin.filter(({ group, beganAt, endedAt }) => {
    const isOverlap = beganAt < (busyUntil.get(group) ?? 0);
    busyUntil.set(group, Math.max(endedAt, busyUntil.get(group) ?? 0));
    return isOverlap;
  }).length;
}

describe(`${SETS} SidecarSets`, () => {
  const names = Array.from({ length: SETS }, (_, index) => `set-${String(index).padStart(3, "0")}`);

  test("each SidecarSet is served once by one of several workers, also if messages arrive twice, and then nothing is left to do", async () => {
    await Promise.all(names.map((name) => cluster.cluster.create<SidecarSet>(SIDECARSETS, sidecarSet(name, 1, {}))));
    await Promise.all([tick(), tick()]);
    expect(await waiting(sqs, queue.url)).toBe(SETS);
    const options = { sqs, queueUrl: queue.url, workers: WORKERS, serve: worker };
    const deliveries = await poll({ ...options, isOver: ({ length }) => length >= SETS });
    expect(deliveries.flatMap(({ failure }) => failure ?? [])).toEqual([]);
    expect(deliveries.map(setOf).toSorted()).toEqual(names);
    expect(overlaps(deliveries)).toBe(0);
    const { items } = await cluster.cluster.list<SidecarSet>(SIDECARSETS);
    expect(items.filter(({ status }) => status?.observedGeneration === 1)).toHaveLength(SETS);
    expect(await waiting(sqs, failedUrl)).toBe(0);

    await Promise.all([1, 2, 3, 4, 5].map(tick));
    expect(await waiting(sqs, queue.url)).toBe(SETS);
  });
});

test("messages of one SidecarSet are served in their order, one at a time, with any number of workers", async () => {
  const sets = ["one", "two", "three"];
  const turns = Array.from({ length: 10 }, (_, minute) => sets.map((set) => tickWork(set, MINUTE + minute * 60_000)));
  for (const turn of turns) await send(turn);
  const serve = () => new Promise((resolve) => setTimeout(resolve, 20 * Math.random()));
  const isOver = ({ length }: readonly Delivery[]) => length >= 30;
  const deliveries = await poll({ sqs, queueUrl: queue.url, workers: WORKERS, serve, isOver });
  for (const set of sets) {
    const own = deliveries.filter((delivery) => setOf(delivery) === set);
    const minutes = own.map(({ body }) => (JSON.parse(body) as { readonly minute: number }).minute);
    expect(minutes).toEqual(turns.map((_, minute) => MINUTE / 60_000 + minute));
  }
  expect(overlaps(deliveries)).toBe(0);
});

test("a message that can't be served comes back five times, then waits apart, while its neighbours are served", async () => {
  const body = { QueueUrl: queue.url, MessageGroupId: "poison", MessageDeduplicationId: "poison" };
  await sqs.call("SendMessage", { ...body, MessageBody: "not ours" });
  await send([tickWork("set-000", MINUTE)]);
  let isMoved = false;
  const watch = setInterval(async () => {
    isMoved = (await waiting(sqs, failedUrl)) === 1;
  }, 200);
  const deliveries = await poll({ sqs, queueUrl: queue.url, workers: 2, serve: worker, isOver: () => isMoved });
  clearInterval(watch);
  const failures = deliveries.flatMap(({ failure }) => failure ?? []);
  expect(failures).toHaveLength(5);
  expect(new Set(failures)).toEqual(new Set([expect.stringMatching(/is none of ours/)]));
  expect(deliveries.filter(({ group }) => group === "set-000")).toMatchObject([{ group: "set-000" }]);
});

test("a hint comes before its change: the worker waits for the hash, and then patches the first pod", async () => {
  await deploy(cluster.cluster, "hinted", 1, {});
  const hash = "hash2";
  await send([{ kind: "change", sidecarSet: "hinted", hash, generation: 2, request: "uid" }]);
  const isOver = ({ length }: readonly Delivery[]) => length >= 1;
  const served = poll({ sqs, queueUrl: queue.url, workers: 1, serve: worker, isOver });
  await new Promise((resolve) => setTimeout(resolve, 500));
  await release(cluster.cluster, "hinted", 2);
  const releasedAt = performance.now();
  await vi.waitFor(async () => expect(versionsOf(await readPods(cluster.cluster, "hinted"))).toEqual(["2"]), PATIENT);
  const tookMs = performance.now() - releasedAt;
  process.stdout.write(`first pod patched ${Math.round(tookMs)} ms after the release\n`);
  expect(tookMs).toBeLessThan(2_000);
  expect(await served).toMatchObject([{ group: "hinted" }]);
  const { metadata } = await cluster.cluster.get<SidecarSet>(SIDECARSETS, { name: "hinted" });
  expect(metadata?.annotations?.[HASH_ANNOTATION]).toBe(hash);
});
