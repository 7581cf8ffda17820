import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SQSEvent } from "aws-lambda";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { handler as dryRun } from "../../functions/lambda/dry-run.ts";
import { handler as rollout } from "../../functions/lambda/rollout.ts";
import { missedPodsFilter } from "../../infra/aws/log-filters.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { startLocalCluster } from "../../infra/local/cluster.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { queueMessage, tickWork } from "../../shared/core/rollout/queue/work.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  deploy,
  type HttpsCluster,
  injectedPod,
  NAMESPACE,
  readPods,
  release,
  startHttpsCluster,
  versionsOf,
} from "./fixture.ts";

let test: HttpsCluster;
let folder = "";
beforeAll(async () => {
  test = await startHttpsCluster();
  folder = await mkdtemp(join(tmpdir(), "rollout-"));
  await writeFile(join(folder, "config"), test.kubeconfig);
  vi.stubEnv("KUBECONFIG", join(folder, "config"));
  vi.stubEnv("LOG_LEVEL", "info");
  await deploy(test.cluster, "lambda", 1, {});
  await release(test.cluster, "lambda", 2);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
  await test.close();
});
afterEach(() => vi.restoreAllMocks());

const context = { getRemainingTimeInMillis: () => 20_000 };

function captureLog(): { readonly lines: () => readonly Record<string, unknown>[] } {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  return { lines: () => write.mock.calls.map(([line]) => JSON.parse(String(line))) };
}

it("the dry-run function plans the upgrade and writes nothing", async () => {
  captureLog();
  const before = test.history().length;
  const report = await dryRun({ sidecarSet: "lambda" }, context);
  expect(report.isDryRun).toBe(true);
  expect(report.sidecarSets[0]?.planned).toContainEqual(expect.stringContaining("upgrade pod shop/lambda-0"));
  expect(test.history().length).toBe(before);
});

it.each<[string, object]>([
  ["messages of the queue", { Records: [{ body: queueMessage(tickWork("lambda", Date.now())).MessageBody }] }],
  ["dryRun: false", { sidecarSet: "lambda", dryRun: false }],
  ["a prototype", JSON.parse('{"__proto__":{"dryRun":false},"sidecarSet":"lambda"}')],
])("dry-run makes no pass and writes nothing for an event with %s", async (_what, event) => {
  captureLog();
  const before = test.history().length;
  const report = await dryRun(event as never, context);
  expect([report.isDryRun, test.history().length]).toEqual([true, before]);
});

it.each([
  { sidecarSet: "../../../../api/v1/namespaces/kruise-system/secrets/x" },
  { sidecarSet: "x?watch=true" },
  { sidecarSet: { a: 1 } },
  { sidecarSet: 5 },
  { sidecarSet: "lambda", readyAfterSeconds: 1e308 },
  { sidecarSet: "lambda", readyAfterSeconds: -1 },
])("the dry-run function refuses an event with an invalid field and reads nothing: %j", async (event) => {
  const before = test.history().length;
  expect(() => dryRun(event as never, context)).toThrow("of the event is not valid");
  expect(test.history().length).toBe(before);
});

it("the rollout function serves a scheduled event and logs one line per SidecarSet and one for the pass", async () => {
  const log = captureLog();
  const scheduled = { source: "aws.events", "detail-type": "Scheduled Event", detail: {} };
  const report = await rollout(scheduled as object, context);
  expect(report).toMatchObject({ isDryRun: false, problems: [], sidecarSets: [{ name: "lambda", stop: "settled" }] });
  expect(versionsOf(await readPods(test.cluster, "lambda"))).toEqual(["2"]);
  expect(log.lines()).toMatchObject([
    { level: "info", message: "SidecarSet lambda", stop: "settled", tally: { upgraded: 1 } },
    { level: "info", message: "pass", calls: { "PATCH pods": 1 } },
  ]);
});

it("the missed pods that the alarm counts are also logged at LOG_LEVEL warn", async () => {
  vi.stubEnv("LOG_LEVEL", "warn");
  const { metadata, spec } = injectedPod("lambda", "bare");
  // A pod does not count if it was created in the same second in which the SidecarSet began to select it.
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  await test.cluster.create<Pod>(PODS, { metadata: { ...metadata, annotations: {} }, spec });
  const log = captureLog();
  await rollout({}, context);
  const { FilterPattern } = missedPodsFilter(await readSettings("sidecarset", "test", async () => "")).Properties;
  const [, path = ""] = /^\{ \$\.([\w.]+) > 0 \}$/.exec(FilterPattern) ?? [];
  const counted = log
    .lines()
    .map((line) => path.split(".").reduce<unknown>((one, name) => (one as never)?.[name], line));
  await test.cluster.delete(PODS, { namespace: NAMESPACE, name: "bare" });
  vi.stubEnv("LOG_LEVEL", "info");
  expect(counted).toEqual([1]);
});

it("the rollout function does all work that needs no queue and then fails when the queue is unreachable", async () => {
  const log = captureLog();
  await release(test.cluster, "lambda", 3);
  vi.stubEnv("QUEUE_URL", "http://127.0.0.1:1/1/rollout.fifo");
  for (const name of ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]) vi.stubEnv(name, "eu-central-1");
  vi.stubEnv("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
  await expect(rollout({}, context)).rejects.toThrow(/127\.0\.0\.1:1/);
  for (const name of ["QUEUE_URL", "AWS_ENDPOINT_URL"]) vi.stubEnv(name, "");
  const pass = log.lines().find(({ message }) => message === "pass");
  expect(pass).toMatchObject({ calls: { "LIST pods": 1, "LIST containerrecreaterequests": 1 } });
});

it("a message fails when its SidecarSet cannot be served, and is served once when it comes again", async () => {
  captureLog();
  const { MessageBody: body } = queueMessage(tickWork("lambda", Date.now()));
  const event = { Records: [{ body }] } as SQSEvent;
  const keepIn = (ledgerNamespace: string) =>
    test.cluster.patch(
      SIDECARSETS,
      { name: "lambda" },
      { type: "merge", body: { status: { ledgerNamespace } } },
      { subresource: "status" },
    );
  await keepIn("elsewhere");
  await expect(rollout(event, context)).rejects.toThrow("SidecarSet lambda: its ledger is kept in namespace elsewhere");
  await keepIn("");
  expect(await rollout(event, context)).toMatchObject({ sidecarSets: [{ name: "lambda", stop: "settled" }] });
  expect(await rollout(event, context)).toBeUndefined();
});

it("the remaining time is read again when the pass of each message begins", async () => {
  captureLog();
  await release(test.cluster, "lambda", 4);
  const writesAtLook: number[] = [];
  const goingDown = {
    getRemainingTimeInMillis: () => {
      writesAtLook.push(test.history().length);
      return 20_000 - writesAtLook.length;
    },
  };
  const Records = [60_000, 120_000].map((ms) => ({
    body: queueMessage(tickWork("lambda", Date.now() + ms)).MessageBody,
  }));
  await rollout({ Records } as SQSEvent, goingDown);
  expect(versionsOf(await readPods(test.cluster, "lambda"))).toEqual(["4"]);
  const [first = 0, second = 0, ...others] = writesAtLook;
  expect([others, second > first]).toEqual([[], true]);
});

it("an unreachable API server fails the scheduled invocation, and a dry run reports it as a problem", async () => {
  const log = captureLog();
  await writeFile(join(folder, "gone"), test.kubeconfig.replace(/127\.0\.0\.1:\d+/, "127.0.0.1:1"));
  vi.stubEnv("KUBECONFIG", join(folder, "gone"));
  await expect(rollout({}, context)).rejects.toThrow(/127\.0\.0\.1:1/);
  expect(log.lines().map(({ level, message }) => [level, message])).toContainEqual(["info", "pass"]);
  expect((await dryRun({}, context)).problems.at(-1)).toContain("127.0.0.1:1");
  vi.stubEnv("QUEUE_URL", "https://sqs.example.com/rollout.fifo");
  vi.stubEnv("AWS_REGION", "eu-central-1");
  await expect(rollout({}, context)).rejects.toThrow(/127\.0\.0\.1:1/);
  vi.stubEnv("QUEUE_URL", "");
});

it("the rollout function does not fail in a cluster without the SidecarSet definition", async () => {
  captureLog();
  vi.stubEnv("KUBECONFIG", join(folder, "bare"));
  const bare = await startLocalCluster();
  try {
    await writeFile(join(folder, "bare"), bare.kubeconfig());
    const { problems, sidecarSets } = await rollout({}, context);
    expect([problems.length > 0, sidecarSets]).toEqual([true, []]);
  } finally {
    await bare.close();
  }
});

it("a missing kubeconfig file fails the invocation with one sentence", async () => {
  vi.stubEnv("KUBECONFIG", join(folder, "missing"));
  await expect(rollout({}, context)).rejects.toThrow(/there is no file .*missing: set KUBECONFIG/);
});
