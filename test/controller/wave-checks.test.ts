/** Tests waves with metric checks, pass by pass: the queries before a wave is passed, with killed passes in between. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConfigMap, Pod } from "../../shared/api/kubernetes.ts";
import { METRICS_ANNOTATION, WAVES_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { newPassMemory, runPass } from "../../shared/controller/pass.ts";
import { ledgerName } from "../../shared/core/ledger.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type CheckRecord, parseRecords } from "../../shared/core/rollout/rules/checks/check-records.ts";
import { type Cluster, NAMESPACES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { faultyCluster } from "./faults.ts";
import {
  fastClock,
  imageOf,
  injectedPod,
  isReady,
  KRUISE_NAMESPACE,
  readSet,
  release,
  sidecarSet,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

const STAGES = ["dev", "staging"];
const clock = fastClock(20);

let test: TestCluster;
let cluster: Cluster;
/** Returns the value of each query. */
let valueIs: (query: string) => string;
let asked: string[] = [];
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
  for (const stage of STAGES) await cluster.create(NAMESPACES, { metadata: { name: stage, labels: { stage } } });
});
afterAll(() => test.close());

interface PassFacts {
  readonly via?: Cluster;
  readonly deadlineMs?: number;
  /** milliseconds by which the API server's clock is ahead */
  readonly aheadMs?: number;
  /** milliseconds that a check takes */
  readonly askedForMs?: number;
}

async function pass(name: string, { via = cluster, deadlineMs = 60_000, aheadMs = 0, askedForMs = 0 }: PassFacts = {}) {
  let ahead = aheadMs;
  const measure = async (query: string) => {
    asked.push(query);
    ahead += askedForMs;
    return { values: [valueIs(query)] };
  };
  const { sidecarSets } = await runPass(
    { ...via, serverTimeMs: () => clock.epochMs() + ahead },
    {
      deadlineMs,
      kruiseNamespace: KRUISE_NAMESPACE,
      sidecarSet: name,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: true,
      clock,
      memory: newPassMemory(),
      gates: { refusals: new Map(), ask: async () => ({ allow: true }), measure },
    },
  );
  return sidecarSets[0];
}

/** Creates a pod in each stage, and releases version 2. */
async function begin(name: string, waves: Readonly<Record<string, object>>, check: object = {}): Promise<void> {
  const list = STAGES.map((stage) => ({
    name: stage,
    namespaceSelector: { matchLabels: { stage } },
    ...waves[stage],
  }));
  const checks = [{ name: "errors", query: "errors", max: 5, intervalSeconds: 1, ...check }];
  await cluster.create(SIDECARSETS, sidecarSet(name, 1, { maxUnavailable: 1 }));
  for (const namespace of STAGES) {
    const pod = injectedPod(name, name);
    await cluster.create(PODS, { ...pod, metadata: { ...pod.metadata, namespace } });
  }
  await expect.poll(async () => (await podsOf(name)).every(isReady)).toBe(true);
  const annotations = { [WAVES_ANNOTATION]: JSON.stringify(list), [METRICS_ANNOTATION]: JSON.stringify(checks) };
  asked = [];
  valueIs = () => "1";
  await pass(name);
  await cluster.patch(SIDECARSETS, { name }, { type: "merge", body: { metadata: { annotations } } });
  await release(cluster, name, 2, { maxUnavailable: 1 });
}

const podsOf = async (name: string): Promise<readonly Pod[]> =>
  (await cluster.list<Pod>(PODS, { labelSelector: `app=${name}` })).items;
const updatedIn = async (name: string) =>
  (await podsOf(name))
    .filter(({ spec }) => spec.containers[1]?.image === imageOf(2))
    .map(({ metadata }) => metadata?.namespace)
    .toSorted();
/** True if the pod was updated at any time so far. */
const wasUpdated = (name: string, namespace: string) =>
  test.history().some(({ object }) => {
    const { kind, metadata, spec } = object as unknown as Pod;
    return (
      kind === "Pod" && metadata?.name === name && metadata.namespace === namespace && imageIn(spec) === imageOf(2)
    );
  });
const imageIn = ({ containers }: Pod["spec"]) => containers[1]?.image;
const passedIn = ({ status }: SidecarSet) =>
  (status?.waves?.list ?? []).flatMap(({ name, passedAt }) => (passedAt === undefined ? [] : [name]));
const conditionOf = ({ status }: SidecarSet, type: string) => status?.conditions?.find((one) => one.type === type);

/**
 * Judges all writes in order: before a wave passes, its checks must be evaluated after it was complete. Returns the
 * number of judged waves.
 */
function judge(name: string): number {
  let judged = 0;
  let records: readonly CheckRecord[] = [];
  let before: readonly string[] = [];
  for (const { object } of test.history()) {
    const written = object as unknown as ConfigMap & SidecarSet;
    if (written.metadata?.name === ledgerName(name)) records = parseRecords(written.data?.["checks"]);
    if (written.kind !== "SidecarSet" || written.metadata?.name !== name) continue;
    const turned = wavesIn(written).filter((one) => one.passedAt !== undefined && !before.includes(one.name));
    expect(turned.filter(({ completeSince }) => !records.some((one) => isProof(one, completeSince)))).toEqual([]);
    judged += turned.length;
    before = passedIn(written);
  }
  return judged;
}

function wavesIn({ status }: SidecarSet) {
  return status?.waves?.revision === "hash2" ? status.waves.list : [];
}

function isProof({ outcome, isUsed, at }: CheckRecord, completeSince = ""): boolean {
  return outcome === "pass" && isUsed === undefined && at >= completeSince;
}

describe("waves with metric checks:", () => {
  it("a pass queries a wave's checks before the first batch and after each batch, and then begins the next wave", async () => {
    await begin("plain", {});
    expect((await pass("plain"))?.why).toBe("2 of 2 pods updated, 2 of them ready");
    expect(await updatedIn("plain")).toEqual(STAGES);
    // The next batch uses the last evaluation of the previous wave, or a new one after the interval.
    expect([3, 4]).toContain(asked.length);
    expect(judge("plain")).toBe(2);
    expect(conditionOf(await readSet(cluster, "plain"), "Progressing")?.reason).toBe("Finished");
    asked = [];
    await pass("plain");
    expect(asked).toEqual([]);
  });

  it("a wave is passed even if its metric queries take seconds", async () => {
    await begin("slow", {});
    expect((await pass("slow", { askedForMs: 3_000 }))?.why).toBe("2 of 2 pods updated, 2 of them ready");
    expect(judge("slow")).toBe(2);
  });

  it("a failing check after a wave's last batch halts or undoes the rollout, also in the last wave", async () => {
    await begin("bad", {});
    valueIs = () => (wasUpdated("bad", "dev") ? "9" : "1");
    await pass("bad");
    expect(await updatedIn("bad")).toEqual(["dev"]);
    const set = await readSet(cluster, "bad");
    expect([passedIn(set), conditionOf(set, "Blocked")]).toEqual([
      [],
      expect.objectContaining({ reason: "Halted", message: expect.stringMatching(/^the check errors is at 9/) }),
    ]);
    await begin("last", {}, { onFailure: "undo" });
    valueIs = () => (wasUpdated("last", "staging") ? "9" : "1");
    const report = await pass("last");
    expect(report?.tally.undone).toContain("the check errors is at 9, which has to be at most 5");
    asked = [];
    await pass("last");
    expect(await updatedIn("last")).toEqual([]);
    expect(asked).toEqual([]);
  });

  it("a wave is passed only by checks after its soak time, and the status says what it waits for", async () => {
    await begin("soaks", { dev: { soakSeconds: 600 } }, { failuresAllowed: 100 });
    await pass("soaks");
    expect([asked.length, await updatedIn("soaks")]).toEqual([1, ["dev"]]);
    expect(conditionOf(await readSet(cluster, "soaks"), "Progressing")?.reason).toBe("WaveSoaking");
    valueIs = () => "9";
    await pass("soaks", { aheadMs: 700_000, deadlineMs: 8_000 });
    const set = await readSet(cluster, "soaks");
    expect(await updatedIn("soaks")).toEqual(["dev"]);
    expect(conditionOf(set, "Blocked")).toMatchObject({
      reason: "Metrics",
      message: expect.stringMatching(/^wave dev is not passed yet: the check errors is at 9/),
    });
    valueIs = () => "1";
    await pass("soaks", { aheadMs: 800_000 });
    expect(await updatedIn("soaks")).toEqual(STAGES);
    expect(judge("soaks")).toBe(2);
  });

  it("no wave is passed without its checks when passes are killed at any call", async () => {
    await begin("killed", {});
    const most = { calls: 0 };
    for (let index = 3; index < 40; index += 2) {
      const killed = faultyCluster(cluster, "killAfter", (call) => call === index);
      await Promise.race([pass("killed", { via: killed }), killed.struck]);
      most.calls = Math.max(most.calls, killed.calls.length);
    }
    await pass("killed");
    expect(most.calls).toBeGreaterThan(9);
    expect(await updatedIn("killed")).toEqual(STAGES);
    expect(judge("killed")).toBe(2);
  });

  it("a wave without checks is passed at once and causes no query", async () => {
    await begin("none", { dev: { checks: [] } });
    await pass("none");
    expect(await updatedIn("none")).toEqual(STAGES);
    expect([2, 3]).toContain(asked.length);
  });
});

it("a wave without pods is not passed in a round in which a check has just failed", async () => {
  const name = "empty";
  await begin(name, {}, { failuresAllowed: 3 });
  const wave = (stage: string, more: object = {}) => ({
    name: stage,
    namespaceSelector: { matchLabels: { stage } },
    ...more,
  });
  const list = [wave("first", { checks: [] }), wave("second", { soakSeconds: 600 })];
  const annotations = { [WAVES_ANNOTATION]: JSON.stringify(list) };
  await cluster.patch(SIDECARSETS, { name }, { type: "merge", body: { metadata: { annotations } } });
  await pass(name, { deadlineMs: 8_000 });
  expect(passedIn(await readSet(cluster, name))).toEqual(["first"]);
  const move = (stage: string) =>
    cluster.patch(NAMESPACES, { name: "dev" }, { type: "merge", body: { metadata: { labels: { stage } } } });
  // The pod moves into a passed wave. It then needs that wave's checks in the round that would pass the next wave.
  await move("first");
  valueIs = () => "9";
  await pass(name, { aheadMs: 700_000, deadlineMs: 3_500 });
  await move("dev");
  expect(asked).not.toEqual([]);
  expect(passedIn(await readSet(cluster, name))).toEqual(["first"]);
  expect(await updatedIn(name)).toEqual([]);
});
