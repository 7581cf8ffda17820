/** Several clusters from one deployment: one is well, and four are in trouble of every kind. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { SQSEvent } from "aws-lambda";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { OPEN_MS } from "../../functions/lambda/breaker.ts";
import { handler as mutatePod } from "../../functions/lambda/mutate-pod.ts";
import { handler as rollout } from "../../functions/lambda/rollout.ts";
import { logFilters } from "../../infra/aws/log-filters.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { createCertificates } from "../../infra/local/http/certificates.ts";
import type { AdmissionReview } from "../../shared/api/admission.ts";
import { messageOf, tickWork } from "../../shared/core/rollout/queue/work.ts";
import { clusterPath } from "../../shared/webhook/server/cluster-path.ts";
import { pathSecretOf } from "../../shared/webhook/server/path-secret.ts";
import { deploy, type HttpsCluster, readPods, release, startHttpsCluster, versionsOf } from "../controller/fixture.ts";
import { countedBy } from "../support/metric-filter.ts";
import { newPod } from "../support/objects.ts";
import { functionUrl } from "./events.ts";

vi.hoisted(() => {
  // Lambda sets the environment before a function starts; where the table is kept is read with the first request.
  process.env["CLUSTERS"] = "/none";
  process.env["AUTHENTICATION"] = "secret-path";
  process.env["LOG_LEVEL"] = "error";
});

const SECRET = randomBytes(32).toString("base64url");
/** Fail at once. */
const AT_ONCE = ["down", "wrong-ca", "revoked"] as const;
const IN_TROUBLE = ["slow", ...AT_ONCE] as const;
/** As the API server says it. */
const WAIT_MS = 3_000;

let well: HttpsCluster;
let folder: string;
/** Takes connections, and never says a word. */
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

/** The answer to a pod of `cluster`, by the secret that was made for the path of `secretOf`. */
async function ask(cluster: string, secretOf = cluster) {
  const secret = pathSecretOf(SECRET, `${clusterPath(secretOf)}/mutate-pod`);
  const event = functionUrl({ path: `${clusterPath(cluster)}/s/${secret}/mutate-pod`, body: REVIEW });
  const { statusCode, body = "" } = await mutatePod({
    ...event,
    rawQueryString: `timeout=${WAIT_MS / 1_000}s`,
  } as typeof event);
  return { statusCode, body };
}

/** Lets the time that requests have run out, once all of them have begun. */
async function runOut<T>(asking: Promise<T>): Promise<T> {
  let isOver = false;
  const over = asking.finally(() => {
    isOver = true;
  });
  over.catch(() => undefined);
  while (!isOver) {
    await sleep(50);
    vi.advanceTimersByTime(WAIT_MS / 10);
  }
  return over;
}

/** Nothing but what is asked for; the log is what this test wants to see. */
function quietLog() {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  return () => write.mock.calls.map(([line]) => JSON.parse(String(line)) as Readonly<Record<string, unknown>>);
}

/** By the clock on the wall alone. */
function later(): void {
  vi.setSystemTime(Date.now() + 10 * OPEN_MS);
}

/** How many lines that name the cluster a filter of the template counts. */
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

describe("the pod webhook", () => {
  // Time passes only where a test lets it pass: no answer is late because this machine is busy.
  beforeAll(() => void vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"] }));
  afterAll(() => void vi.useRealTimers());

  test("answers the cluster that is well in no time, while the others are asked for", async () => {
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

  test("says what is wrong with a cluster, by its name in the log", async () => {
    const lines = quietLog();
    later();
    const asking = ask("slow");
    const [down, wrongCa, revoked] = (await Promise.all(AT_ONCE.map((name) => ask(name)))).map(({ body }) => body);
    const { body: slow } = await runOut(asking);
    expect(down).toContain("nothing listens on https://127.0.0.1:1");
    expect(slow).toContain("no decision after");
    expect(wrongCa).toContain("not signed by the certificate authority");
    expect(revoked).toContain("401 Unauthorized");
    expect(new Set(lines().map(({ cluster }) => cluster))).toEqual(new Set(IN_TROUBLE));
    expect(await countedFor("down", "PodErrorsOfClusterFilter", lines())).toBeGreaterThan(0);
    expect(await countedFor("well", "PodErrorsOfClusterFilter", lines())).toBe(0);
  });

  test("is not held up for long by a cluster that does not answer, once two requests were", async () => {
    const lines = quietLog();
    later();
    // What was begun when it did not answer: one is let through, and fails as late as before.
    const began = performance.now();
    const [trying, refused] = [ask("slow"), await ask("slow")];
    expect([refused.statusCode, performance.now() - began]).toEqual([503, 0]);
    expect(await runOut(trying)).toMatchObject({ statusCode: 500 });
    expect(performance.now() - began).toBeGreaterThan(2_000);
    expect(JSON.parse(refused.body)).toMatchObject({
      kind: "Status",
      message: expect.stringContaining("did not answer"),
    });
    expect(await ask("slow")).toMatchObject({ statusCode: 503 });
    // One that fails at once holds nothing up, and is asked each time.
    for (let turn = 0; turn < 3; turn++) expect(await ask("down")).toMatchObject({ statusCode: 500 });
    expect(await ask("well")).toMatchObject({ statusCode: 200 });
    // A stranger proves nothing.
    later();
    expect(await ask("slow", "well")).toMatchObject({ statusCode: 401 });
    expect(await runOut(ask("slow"))).toMatchObject({ statusCode: 500 });
    expect(await ask("slow", "well")).toMatchObject({ statusCode: 503 });
    expect(lines().some(({ cluster }) => cluster === "well")).toBe(false);
  });

  test("a setting that cannot be used is trouble of its own cluster", async () => {
    const lines = quietLog();
    expect(await ask("misspelt")).toMatchObject({ statusCode: 503 });
    expect(JSON.stringify(lines())).toContain("cluster misspelt has CLIENT_QPX, which is none of KUBECONFIG");
    expect(await ask("well")).toMatchObject({ statusCode: 200 });
  });

  test("the secret of a cluster opens no path of another, nor does the one that is kept", async () => {
    quietLog();
    expect(await ask("well", "down")).toMatchObject({ statusCode: 401 });
    expect(await ask("down", "well")).toMatchObject({ statusCode: 401 });
    const kept = functionUrl({ path: `${clusterPath("well")}/s/${SECRET}/mutate-pod`, body: REVIEW });
    expect(await mutatePod(kept)).toMatchObject({ statusCode: 401 });
  });

  test.each([
    ["no cluster", (secret: string) => `/s/${secret}/mutate-pod`],
    ["a cluster that is not in the table", (secret: string) => `/clusters/other/s/${secret}/mutate-pod`],
    ["a cluster behind the secret", (secret: string) => `/s/${secret}/clusters/well/mutate-pod`],
  ])("%s in the path is answered as a stranger is", async (_, pathOf) => {
    quietLog();
    const secret = pathSecretOf(SECRET, "/mutate-pod");
    expect(await mutatePod(functionUrl({ path: pathOf(secret), body: REVIEW }))).toMatchObject({ statusCode: 401 });
  });
});

describe("passes", () => {
  const context = { getRemainingTimeInMillis: () => 60_000 };

  test("one call serves all clusters: the rollout of the one that is well ends, the others are named", async () => {
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

  test("a tick that fails is counted by the alarm of its own cluster", async () => {
    const lines = quietLog();
    await expect(rollout({ cluster: "down" }, context)).rejects.toThrow("nothing listens on");
    expect(await countedFor("down", "RolloutLogGroupFailedOfClusterFilter", lines())).toBe(1);
    expect(await countedFor("well", "RolloutLogGroupFailedOfClusterFilter", lines())).toBe(0);
  });

  test("a call or a message names its cluster", async () => {
    quietLog();
    const report = await rollout({ cluster: "well", dryRun: true }, context);
    expect(report).toMatchObject({ isDryRun: true, sidecarSets: [{ name: "agent" }] });
    const record = (cluster?: string) =>
      ({ Records: [{ body: messageOf(tickWork("agent", Date.now()), cluster).MessageBody }] }) as SQSEvent;
    expect(await rollout(record("well"), context)).toMatchObject({ sidecarSets: [{ name: "agent" }] });
    await expect(rollout(record("down"), context)).rejects.toThrow("nothing listens on");
    await expect(rollout(record(), context)).rejects.toThrow('there is no cluster ""');
    await expect(rollout({ cluster: "other" }, context)).rejects.toThrow('there is no cluster "other"');
    await expect(rollout({ sidecarSet: "agent" }, context)).rejects.toThrow("may be in several clusters");
  });

  test("messages of two clusters wait for none of each other, and are no duplicates", () => {
    const [eu, us] = ["eu", "us"].map((cluster) => messageOf(tickWork("agent", 0), cluster));
    expect(eu?.MessageGroupId).toBe("eu/agent");
    expect(us?.MessageGroupId).toBe("us/agent");
    expect(eu?.MessageDeduplicationId).not.toBe(us?.MessageDeduplicationId);
  });
});
