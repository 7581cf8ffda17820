/** Tests the deployed bundles in their own processes, with AWS' runtime client if it is installed. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { bundle } from "../../infra/build.ts";
import { startLocalCluster } from "../../infra/local/cluster.ts";
import { LEASES } from "../../shared/kube/port.ts";
import { prepareSubjects, type Subject } from "../bench/lambda-subjects.ts";
import {
  deploy,
  type HttpsCluster,
  KRUISE_NAMESPACE,
  readPods,
  readSet,
  release,
  startHttpsCluster,
  versionsOf,
} from "../controller/fixture.ts";
import { ledgerViolations, mostUnavailable } from "../controller/history.ts";
import { PATIENT } from "../support/patient.ts";
import { type FunctionProcess, startFunction } from "./runtime-process.ts";

const TIMEOUT_MS = 60_000;

let folder: string;
const running: FunctionProcess[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-runtime-"));
});
afterEach(async () => {
  for (const each of running.splice(0)) await each.kill();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function start(options: Parameters<typeof startFunction>[0]): Promise<FunctionProcess> {
  const started = await startFunction(options);
  running.push(started);
  return started;
}

describe("webhooks as processes:", () => {
  let subjects: readonly Subject[];
  let close: () => Promise<void>;
  beforeAll(async () => {
    const local = await startLocalCluster();
    close = local.close;
    subjects = await prepareSubjects(folder, local);
  });
  afterAll(() => close());

  const subject = (name: string): Subject => {
    const found = subjects.find((each) => each.name === name);
    if (found === undefined) throw new Error(`no function ${name}`);
    return found;
  };

  test.each(["mutate-sidecarset", "convert-sidecarset", "mutate-pod", "validate-sidecarset"])(
    "%s gives the same answer to the same event twice",
    async (name) => {
      const { event, ...options } = subject(name);
      const { invoke } = await start(options);
      const [first, second] = [await invoke(event, TIMEOUT_MS), await invoke(event, TIMEOUT_MS)];
      expect(first).toMatchObject({ statusCode: 200 });
      const timeless = (answer: unknown) =>
        JSON.stringify(answer).replace(/"patch\\":\\"[^"\\]*/, (patch) =>
          Buffer.from(patch.slice('"patch\\":\\"'.length), "base64")
            .toString()
            .replace(/\d{4}-\d\d-\d\dT[\d:]+Z/g, "T"),
        );
      expect(timeless(second)).toBe(timeless(first));
    },
  );

  test("mutate-pod answers an event after its process was stopped and continued", async () => {
    const { event, ...options } = subject("mutate-pod");
    const { process, invoke } = await start(options);
    await invoke(event, TIMEOUT_MS);
    process.kill("SIGSTOP");
    const answer = invoke(event, TIMEOUT_MS);
    expect(await Promise.race([answer, sleep(1_500, "frozen")])).toBe("frozen");
    process.kill("SIGCONT");
    expect(await answer).toMatchObject({ statusCode: 200, body: expect.stringContaining('"patchType":"JSONPatch"') });
  });
});

describe("the rollout function as a process:", () => {
  let cluster: HttpsCluster;
  let options: Parameters<typeof startFunction>[0];
  beforeAll(async () => {
    cluster = await startHttpsCluster();
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, cluster.kubeconfig);
    options = { folder: join(folder, "rollout-function"), env: { KUBECONFIG: kubeconfig, LOG_LEVEL: "error" } };
    await bundle("rollout", options.folder);
  });
  afterAll(() => cluster.close());

  /** Starts a rollout of four pods from version 1 to 2, one at a time. Returns the length of the history. */
  async function prepare(name: string): Promise<number> {
    await deploy(cluster.cluster, name, 4, { maxUnavailable: 1 });
    await release(cluster.cluster, name, 2, { maxUnavailable: 1 });
    return cluster.history().length;
  }

  async function firstUpdated(name: string): Promise<void> {
    const oneIsUpdated = async () => expect(versionsOf(await readPods(cluster.cluster, name))).toContain("2");
    await vi.waitFor(oneIsUpdated, { ...PATIENT, interval: 5 });
  }

  async function expectDone(name: string, since: number): Promise<void> {
    expect(versionsOf(await readPods(cluster.cluster, name))).toEqual(["2", "2", "2", "2"]);
    expect(mostUnavailable(cluster.history(), name, since)).toBe(1);
    expect(ledgerViolations(cluster.history(), name)).toEqual([]);
    const { status, metadata } = await readSet(cluster.cluster, name);
    expect(status).toMatchObject({ observedGeneration: metadata?.generation, updatedReadyPods: 4 });
  }

  /** Deletes the leases, so that the next pass does not wait for the old holder. */
  async function expireLease(): Promise<void> {
    const { items } = await cluster.cluster.list(LEASES, { namespace: KRUISE_NAMESPACE });
    for (const { metadata } of items)
      await cluster.cluster.delete(LEASES, { namespace: KRUISE_NAMESPACE, name: metadata?.name ?? "" });
  }

  test("two calls for the same SidecarSet at once complete the rollout and stay within maxUnavailable", async () => {
    const since = await prepare("twice");
    const ticks = await Promise.all([start(options), start(options)]);
    await Promise.all(ticks.map(({ invoke }) => invoke({ sidecarSet: "twice" }, TIMEOUT_MS)));
    await expectDone("twice", since);
  });

  test("a call completes the rollout of a killed call and stays within maxUnavailable", async () => {
    const since = await prepare("killed");
    const first = await start(options);
    first.invoke({ sidecarSet: "killed" }, TIMEOUT_MS).catch(() => "cut off");
    await firstUpdated("killed");
    await first.kill();
    running.splice(running.indexOf(first), 1);
    await expireLease();
    const next = await start(options);
    await next.invoke({ sidecarSet: "killed" }, TIMEOUT_MS);
    await expectDone("killed", since);
  });

  test("a stopped call that continues after another call completed its rollout breaks no rule", async () => {
    const since = await prepare("frozen");
    const first = await start(options);
    const late = first.invoke({ sidecarSet: "frozen" }, TIMEOUT_MS);
    await firstUpdated("frozen");
    first.process.kill("SIGSTOP");
    await expireLease();
    const next = await start(options);
    await next.invoke({ sidecarSet: "frozen" }, TIMEOUT_MS);
    first.process.kill("SIGCONT");
    await late;
    await expectDone("frozen", since);
  });

  test("a call returns its report before its deadline when the rollout needs more time", async () => {
    await prepare("slow");
    await release(cluster.cluster, "slow", 3, { maxUnavailable: 1, image: "registry.example/proxy:does-not-exist" });
    await expireLease();
    const { invoke } = await start(options);
    const report = await invoke({ sidecarSet: "slow" }, 8_000);
    expect(report).toMatchObject({ problems: [], sidecarSets: [{ name: "slow" }] });
  });
});
