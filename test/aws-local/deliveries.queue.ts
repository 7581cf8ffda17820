/**
 * Tests the promises of a FIFO queue, one by one: order, repeated messages, killed functions, late functions, refused
 * messages.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { SQSEvent } from "aws-lambda";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { handler } from "../../functions/lambda/rollout.ts";
import type { Queue } from "../../shared/aws/access.ts";
import { sendWork } from "../../shared/aws/send-work.ts";
import { tickWork, type Work } from "../../shared/core/rollout/queue/work.ts";
import { deploy, type HttpsCluster, readPods, release, versionsOf } from "../controller/fixture.ts";
import { ledgerViolations } from "../controller/history.ts";
import { PATIENT } from "../support/patient.ts";
import { poll, type Received, receive } from "./poller.ts";
import { openQueueSite, type QueueSite } from "./queue-site.ts";
import { createQueues, waiting } from "./queues.ts";
import { CREDENTIALS, REGION, type Sqs } from "./server.ts";

const MINUTE = Date.parse("2026-01-01T00:00:00Z");
/** Seconds that are longer than a pass takes here, on a busy machine. */
const VISIBILITY_SECONDS = 10;
/** The delay for late messages in seconds. */
const SHORT_SECONDS = 2;

let site: QueueSite;
let sqs: Sqs;
let cluster: HttpsCluster;
let queue: Queue;
let failedUrl = "";
let count = 0;

beforeAll(async () => {
  site = await openQueueSite();
  ({ sqs, cluster } = site);
  vi.stubEnv("KUBECONFIG", site.kubeconfig);
  vi.stubEnv("LOG_LEVEL", "error");
  vi.stubEnv("AWS_REGION", REGION);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await site?.close();
});
beforeEach(() => lendFor(VISIBILITY_SECONDS));

/** Creates queues for this test alone. */
async function lendFor(visibilitySeconds: number): Promise<void> {
  const options = { stage: `deliveries-${++count}`, workers: 2, visibilitySeconds };
  const { work, failedUrl: failed } = await createQueues(sqs, options);
  [queue, failedUrl] = [work, failed];
}

const send = (work: readonly Work[]) => sendWork(queue, work, { credentials: CREDENTIALS, endpoint: sqs.endpoint });
const take = () => receive({ sqs, queueUrl: queue.url });
const done = ({ ReceiptHandle }: Received) => sqs.call("DeleteMessage", { QueueUrl: queue.url, ReceiptHandle });
const workOf = (message: Received | undefined) => message && (JSON.parse(message.Body) as Work);
const tickOf = (set: string, minute = 0) => tickWork(set, MINUTE + minute * 60_000);
const serve = (event: SQSEvent) => handler(event, { getRemainingTimeInMillis: () => 20_000 });
const patchesOf = (pod: string) =>
  cluster.history().filter((write) => {
    const { resource, verb, subresource, name } = write;
    return resource === "pods" && verb === "patch" && subresource === "" && name === pod;
  });

async function taken(): Promise<Received> {
  const message = await take();
  if (message === undefined) throw new Error("the queue gives no message");
  return message;
}

test("while a message is under way, no worker gets the next one of its SidecarSet, and another SidecarSet's is served", async () => {
  await send([tickOf("one", 0)]);
  await send([tickOf("one", 1), tickOf("two", 1)]);
  const first = await taken();
  expect(workOf(first)).toEqual(tickOf("one", 0));
  expect(workOf(await take())).toEqual(tickOf("two", 1));
  expect(await take()).toBeUndefined();
  await done(first);
  expect(workOf(await take())).toEqual(tickOf("one", 1));
});

test("a tick that is delivered twice counts once, even if its message was served long before", async () => {
  await send([tickOf("one")]);
  await send([tickOf("one")]);
  expect(await waiting(sqs, queue.url)).toBe(1);
  await done(await taken());
  await send([tickOf("one")]);
  expect(await take()).toBeUndefined();
  await send([tickOf("one", 1)]);
  expect(workOf(await take())).toEqual(tickOf("one", 1));
});

test("the messages that the queue refuses are reported, and all others arrive, also from later requests", async () => {
  const names = Array.from({ length: 395 }, (_, index) => `set-${index}`);
  for (const at of [3, 170, 171]) names.splice(at, 0, `not a name ${at}`);
  await expect(send(names.map((name) => tickOf(name)))).rejects.toThrow(
    /^the queue of rollouts did not take [12] of 10 messages: InvalidParameterValue$/,
  );
  expect(await waiting(sqs, queue.url)).toBe(395);
});

test("the message of a function that is killed during its work comes back, and the next function completes it", async () => {
  await deploy(cluster.cluster, "killed", 6, { maxUnavailable: 1 });
  await release(cluster.cluster, "killed", 2, { maxUnavailable: 1 });
  await send([tickOf("killed", 0)]);
  await send([tickOf("killed", 1)]);
  const before = cluster.history().length;
  const { Body } = await taken();
  const child = spawn(process.execPath, [join(import.meta.dirname, "serve-message.ts"), Body], { stdio: "inherit" });
  const isPatched = () =>
    cluster
      .history()
      .slice(before)
      .some(({ resource }) => resource === "pods");
  await vi.waitFor(() => expect(isPatched()).toBe(true), { ...PATIENT, interval: 1 });
  child.kill("SIGKILL");
  expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
  expect(versionsOf(await readPods(cluster.cluster, "killed"))).toContain("1");

  const isOver = ({ length }: { readonly length: number }) => length >= 2;
  const deliveries = await poll({ sqs, queueUrl: queue.url, workers: 2, serve, isOver });
  expect(deliveries.map(({ body, failure }) => [body, failure])).toEqual([
    [Body, undefined],
    [expect.stringContaining(`"minute":${MINUTE / 60_000 + 1}`), undefined],
  ]);
  expect(new Set(versionsOf(await readPods(cluster.cluster, "killed")))).toEqual(new Set(["2"]));
  expect(ledgerViolations(cluster.history(), "killed")).toEqual([]);
  expect(await waiting(sqs, failedUrl)).toBe(0);
});

test("a function that keeps a message too long and the function that gets it next upgrade each pod only once", async () => {
  await lendFor(SHORT_SECONDS);
  await deploy(cluster.cluster, "late", 4, { maxUnavailable: 1 });
  await release(cluster.cluster, "late", 2, { maxUnavailable: 1 });
  await send([tickOf("late")]);
  const first = await taken();
  const second = await vi.waitFor(taken, { timeout: 30_000, interval: 200 });
  expect(second.MessageId).toBe(first.MessageId);
  const eventOf = ({ Body: body }: Received) => ({ Records: [{ body }] }) as SQSEvent;
  await Promise.all([serve(eventOf(first)), serve(eventOf(second))]);
  for (const index of [0, 1, 2, 3]) expect(patchesOf(`late-${index}`)).toHaveLength(1);
  expect(ledgerViolations(cluster.history(), "late")).toEqual([]);
  await expect(done(first)).rejects.toThrow(/ReceiptHandleIsInvalid/);
});
