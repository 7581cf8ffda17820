/** Tests waves, pass by pass: the order of writes when passes are killed, pods are relabelled, or writes come late. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { WAVES_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { newPassMemory, type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, NAMESPACES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { faultyCluster } from "./faults.ts";
import {
  eventually,
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

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
  for (const stage of STAGES) await cluster.create(NAMESPACES, { metadata: { name: stage, labels: { stage } } });
});
afterAll(() => test.close());

const STAGES = ["dev", "staging", "production"];
const clock = fastClock(20);

const options = (name: string, more: Partial<PassOptions> = {}): PassOptions => ({
  deadlineMs: 600_000,
  kruiseNamespace: KRUISE_NAMESPACE,
  sidecarSet: name,
  settings: DEFAULT_ROLLOUT_SETTINGS,
  follow: true,
  clock,
  memory: newPassMemory(),
  ...more,
});

type Waves = Readonly<Record<string, object>>;
const annotationOf = (more: Waves) =>
  JSON.stringify(
    ["dev", "staging"].map((name) => ({ name, namespaceSelector: { matchLabels: { stage: name } }, ...more[name] })),
  );
const annotate = (name: string, waves: Waves | null) =>
  cluster.patch(
    SIDECARSETS,
    { name },
    {
      type: "merge",
      body: { metadata: { annotations: { [WAVES_ANNOTATION]: waves && annotationOf(waves) } } },
    },
  );

/** Creates two pods in each stage, and releases version 2. */
async function begin(name: string, waves: Waves = {}): Promise<void> {
  await cluster.create(SIDECARSETS, sidecarSet(name, 1, { maxUnavailable: 1 }));
  for (const namespace of STAGES)
    for (const at of [0, 1]) {
      const pod = injectedPod(name, `${name}-${at}`);
      await cluster.create(PODS, { ...pod, metadata: { ...pod.metadata, namespace } });
    }
  await eventually(async () => expect((await podsOf(name)).every(isReady)).toBe(true));
  await annotate(name, waves);
  await release(cluster, name, 2, { maxUnavailable: 1 });
}

const podsOf = async (name: string): Promise<readonly Pod[]> =>
  (await cluster.list<Pod>(PODS, { labelSelector: `app=${name}` })).items;
const imageIn = ({ spec }: Pod) => spec.containers[1]?.image;

async function updatedIn(name: string, version = 2): Promise<readonly string[]> {
  const updated = (await podsOf(name)).filter((pod) => imageIn(pod) === imageOf(version));
  return updated.map(({ metadata }) => metadata?.namespace ?? "").toSorted();
}

const DONE = STAGES.flatMap((stage) => [stage, stage]).toSorted();

/**
 * Judges all writes in order. A pod may get its new image only after every pod of earlier stages is ready with it.
 * Before that the status must say that the earlier waves are passed. Returns the number of judged writes.
 */
function judge(name: string, version = 2): number {
  const pods = new Map<string, Pod>();
  let passed: readonly string[] = [];
  let judged = 0;
  for (const { object } of test.history()) {
    const written = object as unknown as Pod & SidecarSet;
    if (written.kind === "SidecarSet" && written.metadata?.name === name) passed = passedIn(written, version);
    if (written.kind !== "Pod" || written.metadata?.labels?.["app"] !== name) continue;
    const key = `${written.metadata.namespace}/${written.metadata.name}`;
    const isUpdate = isUpdateOf(pods.get(key), written, version);
    pods.set(key, written);
    if (!isUpdate) continue;
    judged++;
    const earlier = STAGES.slice(0, STAGES.indexOf(written.metadata.namespace ?? ""));
    const isLate = (pod: Pod) => !(imageIn(pod) === imageOf(version) && isReady(pod));
    const before = [...pods.values()].filter(({ metadata }) => earlier.includes(metadata?.namespace ?? ""));
    expect(passed, key).toEqual(expect.arrayContaining(earlier));
    expect(before.filter(isLate), key).toEqual([]);
  }
  return judged;
}

function passedIn({ status }: SidecarSet, version: number): readonly string[] {
  const { waves } = status ?? {};
  if (waves?.revision !== `hash${version}`) return [];
  return waves.list.flatMap((one) => (one.passedAt === undefined ? [] : [one.name]));
}

function isUpdateOf(before: Pod | undefined, after: Pod, version: number): boolean {
  return before !== undefined && imageIn(before) !== imageOf(version) && imageIn(after) === imageOf(version);
}

describe("waves:", () => {
  it("one pass upgrades all waves in order without soak times, and the status drops the waves with the annotation", async () => {
    await begin("plain");
    await runPass(cluster, options("plain"));
    expect(await updatedIn("plain")).toEqual(DONE);
    expect(judge("plain")).toBe(6);
    const { waves, observedAnnotations } = (await readSet(cluster, "plain")).status ?? {};
    expect(waves?.list.map(({ name, updatedReady }) => [name, updatedReady])).toEqual([
      ["dev", 2],
      ["staging", 2],
    ]);
    expect(Object.keys(observedAnnotations ?? {})).toEqual([WAVES_ANNOTATION]);
    const { length } = test.history();
    await runPass(cluster, options("plain"));
    expect(test.history().slice(length)).toEqual([]);
    await annotate("plain", null);
    await runPass(cluster, options("plain"));
    expect((await readSet(cluster, "plain")).status).not.toHaveProperty("waves");
  });

  it("a later pass ends the soak of a wave, also after a pass was killed in between", async () => {
    await begin("soaks", { dev: { soakSeconds: 120 } });
    await runPass(cluster, options("soaks"));
    expect(await updatedIn("soaks")).toEqual(["dev", "dev"]);
    const since = (await readSet(cluster, "soaks")).status?.waves?.list[0]?.completeSince;
    expect(since).toMatch(/Z$/);
    await runPass(cluster, options("soaks"));
    expect(await updatedIn("soaks")).toEqual(["dev", "dev"]);
    const later = { ...cluster, serverTimeMs: () => Date.now() + 3_600_000 };
    const killed = faultyCluster(later, "killAfter", (_, call) => call.startsWith("PATCH sidecarsets"));
    await Promise.race([runPass(killed, options("soaks")), killed.struck]);
    const [dev] = (await readSet(cluster, "soaks")).status?.waves?.list ?? [];
    expect([dev?.completeSince, dev?.passedAt]).toEqual([since, expect.stringMatching(/Z$/)]);
    expect(await updatedIn("soaks")).toEqual(["dev", "dev"]);
    // By the server's present clock the soak has not ended. A passed wave stays passed.
    await runPass(cluster, options("soaks"));
    expect(await updatedIn("soaks")).toEqual(DONE);
    expect(judge("soaks")).toBe(6);
  });

  it.each([
    ["ahead", 86_400_000],
    ["behind", -86_400_000],
  ])("a wave does not end its soak early when a pass's own clock is a day %s", async (word, byMs) => {
    const name = `day-${word}`;
    const wrong = { ...clock, epochMs: () => clock.epochMs() + byMs };
    await begin(name, { dev: { soakSeconds: 120 } });
    // The clock is wrong when the wave is complete, or when its soak must have ended.
    await runPass(cluster, options(name, byMs < 0 ? { clock: wrong } : {}));
    await runPass(cluster, options(name, byMs > 0 ? { clock: wrong } : {}));
    expect(await updatedIn(name)).toEqual(["dev", "dev"]);
    const [dev] = (await readSet(cluster, name)).status?.waves?.list ?? [];
    expect(Math.abs(Date.parse(dev?.completeSince ?? "") - Date.now())).toBeLessThan(60_000);
    await runPass({ ...cluster, serverTimeMs: () => Date.now() + 121_000 }, options(name, { clock: wrong }));
    expect(await updatedIn(name)).toEqual(DONE);
  });

  it("waves keep their order when passes are killed at any call", async () => {
    await begin("calls");
    const calls = { most: 0 };
    for (let index = 3; index < 40; index += 3) {
      const faulty = faultyCluster(cluster, "killAfter", (call) => call === index);
      await Promise.race([runPass(faulty, options("calls")), faulty.struck]);
      calls.most = Math.max(calls.most, faulty.calls.length);
    }
    await runPass(cluster, options("calls"));
    expect(calls.most).toBeGreaterThan(9);
    expect(await updatedIn("calls")).toEqual(DONE);
    expect(judge("calls")).toBe(6);
  });

  it("a paused wave holds the later waves, and a passed wave stays passed when an old pod joins it", async () => {
    await begin("paused", { staging: { paused: true } });
    await runPass(cluster, options("paused"));
    expect(await updatedIn("paused")).toEqual(["dev", "dev", "staging", "staging"]);
    const ready = (await readSet(cluster, "paused")).status?.conditions?.find(({ type }) => type === "Progressing");
    expect([ready?.reason, ready?.message]).toEqual(["WavePaused", expect.stringContaining("wave staging is paused")]);
    await annotate("paused", {});
    const once = faultyCluster(cluster, "killAfter", (_, call) => call === "PATCH pods");
    await Promise.race([runPass(once, options("paused")), once.struck]);
    // An old pod joins the wave dev, which has passed.
    const late = injectedPod("paused", "late");
    await cluster.create(PODS, { ...late, metadata: { ...late.metadata, namespace: "dev" } });
    const passedAt = (await readSet(cluster, "paused")).status?.waves?.list[0]?.passedAt;
    await runPass(cluster, options("paused"));
    expect(await updatedIn("paused")).toEqual(["dev", ...DONE]);
    expect((await readSet(cluster, "paused")).status?.waves?.list[0]?.passedAt).toBe(passedAt);
  });

  it("another release begins again with the first wave, also when it is the previous release", async () => {
    await begin("again");
    await runPass(cluster, options("again"));
    await annotate("again", { dev: { paused: true } });
    await release(cluster, "again", 3, { maxUnavailable: 1 });
    await runPass(cluster, options("again"));
    expect(await updatedIn("again", 3)).toEqual(["dev", "dev"]);
    await release(cluster, "again", 2, { maxUnavailable: 1 });
    await runPass(cluster, options("again"));
    const { waves } = (await readSet(cluster, "again")).status ?? {};
    expect([waves?.revision, waves?.list.map(({ passedAt }) => passedAt)]).toEqual(["hash2", [undefined, undefined]]);
  });

  it("a pass assigns a namespace to the wave of its current labels", async () => {
    await begin("labels", { dev: { paused: true } });
    const patch = (stage: string) =>
      cluster.patch(NAMESPACES, { name: "production" }, { type: "merge", body: { metadata: { labels: { stage } } } });
    await patch("dev");
    await runPass(cluster, options("labels"));
    await patch("production");
    expect(await updatedIn("labels")).toEqual(["dev", "dev", "production", "production"]);
  });
});

it("a pass fails and upgrades nothing when the definition prunes status.waves", async () => {
  await begin("pruned");
  const forgetful: Cluster = {
    ...cluster,
    patch: async (resource, key, patch, more) => {
      const answer = await cluster.patch(resource, key, patch, more);
      const { waves: _, ...status } = (answer as SidecarSet).status ?? {};
      return (resource === SIDECARSETS ? { ...answer, status } : answer) as never;
    },
  };
  const { sidecarSets } = await runPass(forgetful, options("pruned"));
  expect(sidecarSets.map(({ stop, why }) => [stop, why])).toEqual([
    ["failed", expect.stringContaining("does not keep status.waves: install the one of this version")],
  ]);
  expect(await updatedIn("pruned")).toEqual([]);
});

it("a pass lists namespaces only with the waves annotation", async () => {
  await cluster.create(SIDECARSETS, sidecarSet("quiet", 1, {}));
  const counting = faultyCluster(cluster, "unavailable", () => false);
  await runPass(counting, options("quiet"));
  expect(counting.calls).not.toContain("LIST namespaces");
  await annotate("quiet", {});
  const asking = faultyCluster(cluster, "unavailable", () => false);
  await runPass(asking, options("quiet"));
  expect(asking.calls.filter((call) => call === "LIST namespaces")).toHaveLength(1);
});
