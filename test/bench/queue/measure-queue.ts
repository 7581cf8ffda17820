/**
 * Measures the time until a tick's messages are in the queue, sent one by one and in parallel, and their monthly cost.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLocalCluster } from "../../../infra/local/cluster.ts";
import type { Queue } from "../../../shared/aws/access.ts";
import { sendWork } from "../../../shared/aws/send-work.ts";
import { queueMessage, tickWork, type Work } from "../../../shared/core/rollout/queue/work.ts";
import { connectCluster } from "../../../shared/kube/client.ts";
import { SIDECARSETS } from "../../../shared/kube/port.ts";
import { startSqs } from "../../aws-local/elasticmq.ts";
import { createQueues, waiting } from "../../aws-local/queues.ts";
import { CREDENTIALS, type Sqs } from "../../aws-local/server.ts";
import { sidecarSet } from "../../controller/fixture.ts";
import { type FunctionProcess, startFunction } from "../../lambda/runtime-process.ts";
import { type QueueMeasurements, queueMonth } from "../cost.ts";
import { prepareSubjects } from "../lambda-subjects.ts";
import { delayed } from "./delayed.ts";
import type { QueueFigures, SendRow } from "./queue-table.ts";

const MONTH_OF = 50_000;
const DELAYS_MS = [0, 10];
const MESSAGES = 100;
/** Number of messages that do not count because V8 still compiles. */
const WARM = 25;
const BATCH = 10;
const CALL_MS = 20_000;
const MINUTE_MS = 60_000;

export async function measureQueue(options: { sidecarSets: number; rounds: number }): Promise<QueueFigures> {
  const sqs = await startSqs();
  try {
    const { rows, sendMs } = await measureSending(sqs, options);
    const measured = { ...(await measureMessages()), sendMs, listMs: (await bareListSeconds()) * 1_000 };
    const monthOf = MONTH_OF;
    const settledMonth = queueMonth({ sidecarSets: monthOf, isUnderWay: false }, measured);
    const underWayMonth = queueMonth({ sidecarSets: monthOf, isUnderWay: true }, measured);
    const { sidecarSets } = options;
    return { server: sqs.name, sidecarSets, rows, measured, monthOf, settledMonth, underWayMonth };
  } finally {
    await sqs.close();
  }
}

/** Measures how messages are sent. `sendMs`: milliseconds of computing for one message. */
async function measureSending(sqs: Sqs, { sidecarSets, rounds }: { sidecarSets: number; rounds: number }) {
  const rows: SendRow[] = [];
  let sendMs = Number.POSITIVE_INFINITY;
  for (const delayMs of DELAYS_MS) {
    const slow = await delayed(sqs.endpoint, delayMs);
    const access = { credentials: CREDENTIALS, endpoint: slow.endpoint };
    const oneByOne: number[] = [];
    const atOnce: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const stage = `bench-${delayMs}-${round}`;
      const { work: queue } = await createQueues(sqs, { stage, workers: 2, visibilitySeconds: 60 });
      const works = (minute: number) =>
        Array.from({ length: sidecarSets }, (_, index) => tickWork(`set-${index}`, minute * MINUTE_MS));
      oneByOne.push(await secondsOf(() => sendOneByOne(queue, works(1), access)));
      const before = process.cpuUsage();
      atOnce.push(await secondsOf(() => sendWork(queue, works(2), access)));
      const { user, system } = process.cpuUsage(before);
      sendMs = Math.min(sendMs, (user + system) / 1_000 / sidecarSets);
      const there = await waiting(sqs, queue.url);
      if (there !== 2 * sidecarSets) throw new Error(`${there} of ${2 * sidecarSets} messages are in the queue`);
      await sqs.call("DeleteQueue", { QueueUrl: queue.url });
    }
    await slow.close();
    rows.push({ delayMs, oneByOne: Math.min(...oneByOne), atOnce: Math.min(...atOnce) });
  }
  return { rows, sendMs };
}

async function sendOneByOne(queue: Queue, works: readonly Work[], access: Parameters<typeof sendWork>[2]) {
  for (let at = 0; at < works.length; at += BATCH) await sendWork(queue, works.slice(at, at + BATCH), access);
}

async function secondsOf(run: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await run();
  return (performance.now() - began) / 1_000;
}

/** Serves messages about settled SidecarSets, one after the other, in a warm process. */
async function measureMessages(): Promise<Pick<QueueMeasurements, "passMs" | "passLogBytes">> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-queue-"));
  const local = await startLocalCluster();
  try {
    const subject = (await prepareSubjects(folder, local)).find(({ name }) => name === "rollout");
    if (subject === undefined) throw new Error("there is no function rollout");
    const { url: server, caCertificate: certificateAuthority, token } = local;
    const cluster = connectCluster({ server, certificateAuthority, token: async () => token });
    const names = Array.from({ length: MESSAGES }, (_, index) => `set-${index}`);
    for (const name of names) await cluster.create(SIDECARSETS, sidecarSet(name, 1, {}));
    const started = await startFunction(subject);
    try {
      await started.invoke({}, CALL_MS);
      for (const name of names.slice(0, WARM)) await serve(started, name);
      const logBefore = started.logBytes();
      const times: number[] = [];
      for (const name of names.slice(WARM)) times.push(await serve(started, name));
      const passLogBytes = (started.logBytes() - logBefore) / times.length;
      const passMs = times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)] ?? Number.NaN;
      return { passMs, passLogBytes };
    } finally {
      await started.kill();
    }
  } finally {
    await local.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns the milliseconds of this minute's message about a settled SidecarSet. */
async function serve({ invoke }: FunctionProcess, name: string): Promise<number> {
  const { MessageBody: body } = queueMessage(tickWork(name, Date.now()));
  const began = performance.now();
  const report = JSON.stringify(await invoke({ Records: [{ body }] }, CALL_MS));
  if (!report.includes('"stop":"settled"')) throw new Error(`rollout answered ${report}`);
  return performance.now() - began;
}

/** Returns the seconds to list 50,000 SidecarSets, as `npm run bench -- first-decision` has measured them. */
async function bareListSeconds(): Promise<number> {
  const { firstDecision } = JSON.parse(await readFile("test/bench/figures.json", "utf8")) as {
    readonly firstDecision: { readonly sidecarSets: number; readonly bareSeconds: number };
  };
  if (firstDecision.sidecarSets !== MONTH_OF) throw new Error("figures.json has no list of so many SidecarSets");
  return firstDecision.bareSeconds;
}
