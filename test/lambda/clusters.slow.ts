/** Tests a deployment for several clusters: one is healthy, and four fail in different ways. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { SQSEvent } from "aws-lambda";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { handler as mutatePod } from "../../functions/lambda/mutate-pod.ts";
import { handler as rollout } from "../../functions/lambda/rollout.ts";
import { logFilters } from "../../infra/aws/log-filters.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { createCertificates } from "../../infra/local/http/https-server.ts";
import type { AdmissionReview } from "../../shared/api/admission.ts";
import { queueMessage, tickWork } from "../../shared/core/rollout/queue/work.ts";
import { clusterPath } from "../../shared/webhook/server/cluster-path.ts";
import { pathSecretOf } from "../../shared/webhook/server/path-secret.ts";
import { deploy, type HttpsCluster, readPods, release, startHttpsCluster, versionsOf } from "../controller/fixture.ts";
import { countedBy } from "../support/metric-filter.ts";
import { newPod } from "../support/objects.ts";
import { functionUrl } from "./events.ts";

vi.hoisted(() => {
  // Lambda sets the environment before a function starts. The function reads the table at its first request.
  process.env["CLUSTERS"] = "/none";
  process.env["AUTHENTICATION"] = "secret-path";
  process.env["LOG_LEVEL"] = "error";
});

const SECRET = randomBytes(32).toString("base64url");
/** Clusters whose requests fail at once. */
const AT_ONCE = ["down", "wrong-ca", "revoked"] as const;
const IN_TROUBLE = ["slow", ...AT_ONCE] as const;
/** Milliseconds of the timeout that the API server sends. */
const WAIT_MS = 5_000;

let well: HttpsCluster;
let folder: string;
/** A server that accepts connections and never answers. */
let silent: Server;

beforeAll(async () => {
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  well = await startHttpsCluster();
  folder = await mkdtemp(join(tmpdir(), "clusters-"));
  silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const address = silent.address();
  const port = typeof address === "object" ? address?.port : 0;
  const { authority } = await createCertificates();
  const [own = ""] = /(?<=server: )\S+/.exec(well.kubeconfig) ?? [];
  const configs: Readonly<Record<string, string>> = {
    well: well.kubeconfig,
    down: well.kubeconfig.replace(own, "https://127.0.0.1:1"),
    slow: well.kubeconfig.replace(own, `https://127.0.0.1:${port}`),
    "wrong-ca": well.kubeconfig.replace(
      /(?<=certificate-authority-data: )\S+/,
      Buffer.from(authority).toString("base64"),
    ),
    revoked: well.kubeconfig.replace(/(?<=token: )\S+/, "revoked-token-of-this-test"),
  };
  const table: Record<string, object> = {};
  for (const [name, text] of Object.entries(configs)) {
    await writeFile(join(folder, name), text);
    table[name] = { KUBECONFIG: join(folder, name) };
  }
  table["misspelt"] = { KUBECONFIG: join(folder, "well"), CLIENT_QPX: "1" };
  await writeFile(join(folder, "secrets"), SECRET);
  await writeFile(join(folder, "table"), JSON.stringify(table));
  vi.stubEnv("PATH_SECRETS", join(folder, "secrets"));
  vi.stubEnv("CLUSTERS", join(folder, "table"));
});
afterAll(async () => {
  vi.unstubAllEnvs();
  silent.close();
  await well.close();
  await rm(folder, { recursive: true, force: true });
});
afterEach(() => void vi.restoreAllMocks());

const REVIEW = JSON.stringify({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request: {
    uid: "u",
    operation: "CREATE",
    resource: { group: "", version: "v1", resource: "pods" },
    namespace: "default",
    object: newPod({ name: "a" }, { containers: [{ name: "a" }] }),
  },
});

/** Returns the answer to a pod of `cluster`, with the path secret of `secretOf`. */
async function ask(cluster: string, secretOf = cluster) {
  const secret = pathSecretOf(SECRET, `${clusterPath(secretOf)}/mutate-pod`);
  const event = functionUrl({ path: `${clusterPath(cluster)}/s/${secret}/mutate-pod`, body: REVIEW });
  const { statusCode, body = "" } = await mutatePod({
    ...event,
    rawQueryString: `timeout=${WAIT_MS / 1_000}s`,
  } as typeof event);
  return { statusCode, body };
}

/** Advances the clock until the requests time out. */
async function runOut<T>(asking: Promise<T>): Promise<T> {
  let isOver = false;
  const over = asking.finally(() => {
    isOver = true;
  });
  over.catch(() => undefined);
  while (!isOver) {
    await sleep(50);
    await vi.advanceTimersByTimeAsync(WAIT_MS / 10);
  }
  return over;
}

/** Captures the log lines. */
function quietLog() {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  return () => write.mock.calls.map(([line]) => JSON.parse(String(line)) as Readonly<Record<string, unknown>>);
}

/** Moves only the wall clock. */
function later(): void {
  vi.setSystemTime(Date.now() + 100_000);
}

/** Returns how many lines for the cluster a filter of the template counts. */
async function countedFor(cluster: string, id: string, lines: readonly Readonly<Record<string, unknown>>[]) {
  const file = join(folder, "deployed");
  await writeFile(file, '{"well": {"EKS_CLUSTER": "well"}}');
  const settings = await readSettings("sidecarset", "test", async (name) => (name === "clusters" ? file : ""));
  const filter = logFilters(settings)[id];
  if (filter === undefined) throw new Error(`no filter ${id}`);
  return countedBy(
    filter,
    lines.filter((line) => line["cluster"] === cluster),
  );
}

describe("the pod webhook for several clusters:", () => {
  // Time passes only in the test's steps, so a busy machine makes no answer late.
  beforeAll(() => void vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"] }));
  afterAll(() => void vi.useRealTimers());

  test("the pod webhook answers a healthy cluster without delay while other clusters fail", async () => {
    quietLog();
    const twenty = (name: string) => Array.from({ length: 20 }, () => ask(name));
    const [slow, others] = [Promise.all(twenty("slow")), Promise.all(AT_ONCE.flatMap(twenty))];
    const began = performance.now();
    for (let turn = 0; turn < 20; turn++) {
      const { statusCode, body } = await ask("well");
      expect([statusCode, (JSON.parse(body) as AdmissionReview).response?.allowed]).toEqual([200, true]);
    }
    expect(performance.now()).toBe(began);
    const answers = [...(await others), ...(await runOut(slow))];
    const codes = new Set(answers.map(({ statusCode }) => statusCode));
    expect([...codes]).toEqual([500]);
  });

  test("the pod webhook logs the failure of a cluster with the cluster's name", async () => {
    const lines = quietLog();
    later();
    const asking = ask("slow");
    const [down, wrongCa, revoked] = (await Promise.all(AT_ONCE.map((name) => ask(name)))).map(({ body }) => body);
    const { body: slow } = await runOut(asking);
    expect(down).toContain("nothing listens on https://127.0.0.1:1");
    expect(slow).toContain("the API server has not answered within 4 s");
    expect(wrongCa).toContain("not signed by the certificate authority");
    expect(revoked).toContain("401 Unauthorized");
    expect(new Set(lines().map(({ cluster }) => cluster))).toEqual(new Set(IN_TROUBLE));
    expect(await countedFor("down", "PodErrorsOfClusterFilter", lines())).toBeGreaterThan(0);
    expect(await countedFor("well", "PodErrorsOfClusterFilter", lines())).toBe(0);
  });

  test("the pod webhook says at once why it refuses while a cluster does not answer, and one pod waits again after five seconds", async () => {
    const lines = quietLog();
    later();
    const began = performance.now();
    const [waiting, another] = [ask("slow"), ask("slow")];
    expect(await runOut(waiting)).toMatchObject({ statusCode: 500 });
    expect(await runOut(another)).toMatchObject({ statusCode: 500 });
    expect(performance.now() - began).toBeGreaterThan(2_000);
    const then = performance.now();
    for (let turn = 0; turn < 3; turn++)
      expect(await ask("slow")).toMatchObject({
        statusCode: 500,
        body: expect.stringContaining("the API server has not answered within 4 s"),
      });
    expect(performance.now()).toBe(then);
    // A cluster that fails at once delays no request and gets all of them.
    for (let turn = 0; turn < 3; turn++) expect(await ask("down")).toMatchObject({ statusCode: 500 });
    expect(await ask("well")).toMatchObject({ statusCode: 200 });
    later();
    expect(await ask("slow", "well")).toMatchObject({ statusCode: 401 });
    const again = performance.now();
    expect(await runOut(ask("slow"))).toMatchObject({ statusCode: 500 });
    expect(performance.now() - again).toBeGreaterThan(2_000);
    expect(lines().some(({ cluster }) => cluster === "well")).toBe(false);
  });

  test("an invalid setting of one cluster does not affect the other clusters", async () => {
    const lines = quietLog();
    expect(await ask("misspelt")).toMatchObject({ statusCode: 503 });
    expect(JSON.stringify(lines())).toContain("cluster misspelt has CLIENT_QPX, which is none of KUBECONFIG");
    expect(await ask("well")).toMatchObject({ statusCode: 200 });
  });

  test("the path of a cluster accepts neither another cluster's secret nor the stored secret itself", async () => {
    quietLog();
    expect(await ask("well", "down")).toMatchObject({ statusCode: 401 });
    expect(await ask("down", "well")).toMatchObject({ statusCode: 401 });
    const kept = functionUrl({ path: `${clusterPath("well")}/s/${SECRET}/mutate-pod`, body: REVIEW });
    expect(await mutatePod(kept)).toMatchObject({ statusCode: 401 });
  });

  test.each([
    ["a path without a cluster", (secret: string) => `/s/${secret}/mutate-pod`],
    ["a path of an unknown cluster", (secret: string) => `/clusters/other/s/${secret}/mutate-pod`],
    ["a path with the cluster after the secret", (secret: string) => `/s/${secret}/clusters/well/mutate-pod`],
  ])("the pod webhook answers 401 to %s", async (_, pathOf) => {
    quietLog();
    const secret = pathSecretOf(SECRET, "/mutate-pod");
    expect(await mutatePod(functionUrl({ path: pathOf(secret), body: REVIEW }))).toMatchObject({ statusCode: 401 });
  });
});

describe("passes over several clusters:", () => {
  const context = { getRemainingTimeInMillis: () => 60_000 };

  test("one call of the rollout function updates the healthy cluster and names the failed clusters", async () => {
    const lines = quietLog();
    await deploy(well.cluster, "agent", 2, {});
    await release(well.cluster, "agent", 2, { maxUnavailable: 2 });
    const passes = rollout({}, context);
    const failed = await passes.then(
      () => "",
      (error: Error) => error.message,
    );
    for (const name of [...IN_TROUBLE, "misspelt"]) expect(failed).toContain(`cluster ${name}: `);
    expect(failed).not.toContain("cluster well");
    expect(versionsOf(await readPods(well.cluster, "agent"))).toEqual(["2", "2"]);
    const named = lines().filter(({ message }) => message === "the pass over the cluster failed");
    expect(new Set(named.map(({ cluster }) => cluster))).toEqual(new Set([...IN_TROUBLE, "misspelt"]));
  });

  test("a failed pass counts in the log filter of its own cluster", async () => {
    const lines = quietLog();
    await expect(rollout({ cluster: "down" }, context)).rejects.toThrow("nothing listens on");
    expect(await countedFor("down", "RolloutLogGroupFailedOfClusterFilter", lines())).toBe(1);
    expect(await countedFor("well", "RolloutLogGroupFailedOfClusterFilter", lines())).toBe(0);
  });

  test("the rollout function requires that a call or a message names a known cluster", async () => {
    quietLog();
    const report = await rollout({ cluster: "well", dryRun: true }, context);
    expect(report).toMatchObject({ isDryRun: true, sidecarSets: [{ name: "agent" }] });
    const record = (cluster?: string) =>
      ({ Records: [{ body: queueMessage(tickWork("agent", Date.now()), cluster).MessageBody }] }) as SQSEvent;
    expect(await rollout(record("well"), context)).toMatchObject({ sidecarSets: [{ name: "agent" }] });
    await expect(rollout(record("down"), context)).rejects.toThrow("nothing listens on");
    await expect(rollout(record(), context)).rejects.toThrow('there is no cluster ""');
    await expect(rollout({ cluster: "other" }, context)).rejects.toThrow('there is no cluster "other"');
    await expect(rollout({ sidecarSet: "agent" }, context)).rejects.toThrow("may be in several clusters");
  });

  test("messages of two clusters have different groups and different deduplication ids", () => {
    const [eu, us] = ["eu", "us"].map((cluster) => queueMessage(tickWork("agent", 0), cluster));
    expect(eu?.MessageGroupId).toBe("eu/agent");
    expect(us?.MessageGroupId).toBe("us/agent");
    expect(eu?.MessageDeduplicationId).not.toBe(us?.MessageDeduplicationId);
  });
});
