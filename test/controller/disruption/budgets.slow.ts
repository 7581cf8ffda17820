/** Tests restarts in place within PodDisruptionBudgets while passes are killed and budgets change. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import { mapLimited } from "../../../shared/controller/loop/concurrency-limit.ts";
import { newPassMemory, type PassOptions, runPass } from "../../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { isKubeError, KubeError } from "../../../shared/kube/error.ts";
import { type Cluster, DISRUPTION_BUDGETS, PODS, SIDECARSETS } from "../../../shared/kube/port.ts";
import { type Fault, faultyCluster } from "../faults.ts";
import {
  allReady,
  eventually,
  fastClock,
  injectedPod,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  readSet,
  release,
  sidecarSet,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "../fixture.ts";
import { ledgerViolations } from "../history.ts";
import { type Budget, startDisruptionController, syncBudgets } from "./disruption-controller.ts";
import { judgeBudget } from "./witness.ts";

let test: TestCluster;
let cluster: Cluster;
let stopController: () => Promise<void>;
const clock = fastClock(20);
beforeAll(async () => {
  test = await startTestCluster();
  // The API server and the controllers have the same clock.
  cluster = { ...test.cluster, serverTimeMs: () => clock.epochMs() };
  stopController = startDisruptionController(cluster, clock);
});
afterAll(async () => {
  await stopController?.();
  await test?.close();
});

const RESPECT = { ...DEFAULT_ROLLOUT_SETTINGS, RespectDisruptionBudgets: true };
const options = (name: string, more: Partial<PassOptions> = {}): PassOptions => ({
  deadlineMs: 600_000,
  kruiseNamespace: KRUISE_NAMESPACE,
  sidecarSet: name,
  settings: RESPECT,
  follow: true,
  clock,
  memory: newPassMemory(),
  ...more,
});
const ALL_AT_ONCE = { maxUnavailable: "100%" };

/** Creates ready pods of one SidecarSet, which the budget of `team` covers. */
async function createPods(set: string, count: number, team = set): Promise<void> {
  await cluster.create(SIDECARSETS, sidecarSet(set, 1, ALL_AT_ONCE));
  for (let index = 0; index < count; index++) {
    const pod = injectedPod(set, `${set}-${index}`);
    const labels = { ...pod.metadata?.labels, team };
    await cluster.create<Pod>(PODS, { ...pod, metadata: { ...pod.metadata, labels } });
  }
  await allReady(cluster, set);
}

const readBudget = (name: string) => cluster.get<Budget>(DISRUPTION_BUDGETS, { namespace: NAMESPACE, name });
const allowedBy = async (name: string) => (await readBudget(name)).status?.disruptionsAllowed;

async function guard(name: string, minAvailable: number, allowed: number): Promise<void> {
  const spec = { selector: { matchLabels: { team: name } }, minAvailable };
  await cluster.create(DISRUPTION_BUDGETS, {
    metadata: { name, namespace: NAMESPACE },
    ...{ spec },
  } as KubernetesObject);
  await eventually(async () => expect(await allowedBy(name)).toBe(allowed));
}

const demand = (name: string, minAvailable: number) =>
  cluster.patch(
    DISRUPTION_BUDGETS,
    { namespace: NAMESPACE, name },
    { type: "merge", body: { spec: { minAvailable } } },
  );

/** Creates `pods` pods, of which only one may be down, and releases version 2. Returns the position in the history. */
async function prepare(name: string, pods = 3): Promise<number> {
  await createPods(name, pods);
  await guard(name, pods - 1, 1);
  await release(cluster, name, 2, ALL_AT_ONCE);
  return test.history().length;
}

async function versions(name: string): Promise<readonly string[]> {
  return versionsOf(await readPods(cluster, name)).toSorted();
}

/** Expects that every pod is updated, and that the budget was never broken. */
async function expectKept(name: string, since: number, pods = 3): Promise<void> {
  expect(await versions(name), name).toEqual(new Array(pods).fill("2"));
  expectNothingBroken(name, since, { restarts: pods, fewestUp: pods - 1 });
}

function expectNothingBroken(name: string, since: number, expected: object): void {
  expect(judgeBudget(test.history(), name, since), name).toEqual({ broken: [], ...expected });
  expect(ledgerViolations(test.history(), name), name).toEqual([]);
}

const blockedOf = async (name: string) => {
  const { status } = await readSet(cluster, name);
  return status?.conditions?.find(({ type }) => type === "Blocked");
};

describe("PodDisruptionBudgets:", () => {
  it("three passes at once keep within a budget although maxUnavailable would allow all pods", async () => {
    const since = await prepare("three", 6);
    await Promise.all([1, 2, 3].map(() => runPass(cluster, options("three"))));
    // A pass that lost the race for the ledger had counted pods. The budget forgets them after two minutes.
    await clock.sleep(120_000);
    await runPass(cluster, options("three"));
    await expectKept("three", since, 6);
  });

  it.each([
    ["ahead", 86_400_000],
    ["behind", -86_400_000],
  ])("a pass whose own clock is a day %s keeps within a budget", async (name, byMs) => {
    const since = await prepare(name, 4);
    const wrong = { ...clock, epochMs: () => clock.epochMs() + byMs };
    await runPass(cluster, options(name, { clock: wrong }));
    await runPass(cluster, options(name, { clock: wrong }));
    await expectKept(name, since, 4);
  });

  it("two SidecarSets keep within a budget that their pods share", async () => {
    await createPods("left", 3, "both");
    await createPods("right", 3, "both");
    await guard("both", 5, 1);
    for (const name of ["left", "right"]) await release(cluster, name, 2, ALL_AT_ONCE);
    const since = test.history().length;
    for (let turn = 0; turn < 2; turn++)
      await Promise.all(["left", "right"].map((name) => runPass(cluster, options(name))));
    expect([...(await versions("left")), ...(await versions("right"))]).toEqual(new Array(6).fill("2"));
    expectNothingBroken("both", since, { restarts: 6, fewestUp: 5 });
  });

  it("a pass removes pods that are ready again from a budget's disruptedPods", async () => {
    const since = await prepare("tidy");
    await runPass(cluster, options("tidy"));
    await runPass(cluster, options("tidy"));
    await expectKept("tidy", since);
    expect((await readBudget("tidy")).status?.disruptedPods ?? {}).toEqual({});
  });
});

describe("a killed pass:", () => {
  async function killAndResume(fault: Fault, name: string, isStruck: (index: number, call: string) => boolean) {
    const since = await prepare(name);
    const faulty = faultyCluster(cluster, fault, isStruck);
    const finished = await Promise.race([runPass(faulty, options(name)), faulty.struck]);
    const resumed = runPass(cluster, options(name));
    if (!finished) await faulty.releaseLate();
    await resumed;
    await runPass(cluster, options(name));
    await expectKept(name, since);
    return faulty.calls;
  }

  it("a budget is kept when a pass is killed after the budget's count, after the reservation, or before a late patch", async () => {
    const counted = await killAndResume("killAfter", "counted", (_, call) => call.startsWith("PATCH poddisruption"));
    expect(counted.at(-1)).toBe("PATCH poddisruptionbudgets/status");
    let reserved = false;
    const isSwap = (_: number, call: string) => {
      if (call === "PATCH poddisruptionbudgets/status") reserved = true;
      return reserved && call.endsWith("configmaps");
    };
    expect((await killAndResume("killAfter", "reserved", isSwap)).at(-1)).toMatch(/ configmaps$/);
    expect((await killAndResume("killLate", "sent", (_, call) => call === "PATCH pods")).at(-1)).toBe("PATCH pods");
  });

  it("a budget is kept when a pass is killed at any of its calls, also when the call lands late", async () => {
    const since = await prepare("whole");
    const whole = faultyCluster(cluster, "unavailable", () => false);
    await runPass(whole, options("whole"));
    await expectKept("whole", since);
    expect(whole.calls.length).toBeGreaterThan(30);
    const faults = whole.calls.flatMap((_, at) => [[at % 2 === 0 ? "killAfter" : "killLate", at] as const]);
    await mapLimited(faults, 6, async ([fault, at]) => {
      await killAndResume(fault, `${fault.toLowerCase()}-${at}`, (index) => index === at);
    });
  });

  it("a budget forgets a killed pass's count after two minutes, and the next pass counts again", async () => {
    const since = await prepare("forgotten");
    const killed = faultyCluster(cluster, "killAfter", (_, call) => call.startsWith("PATCH poddisruption"));
    await Promise.race([runPass(killed, options("forgotten")), killed.struck]);
    expect(await allowedBy("forgotten")).toBe(0);
    await eventually(async () => expect(await allowedBy("forgotten")).toBe(1));
    await runPass(cluster, options("forgotten"));
    await expectKept("forgotten", since);
  });
});

describe("a budget that drops to 0 during a pass:", () => {
  it("a budget that drops to 0 during a pass holds uncounted pods until it allows more, and is named with its numbers", async () => {
    const since = await prepare("tighter");
    const frozen = faultyCluster(cluster, "freeze", (_, call) => call === "PATCH poddisruptionbudgets/status");
    const pass = runPass(frozen, options("tighter", { deadlineMs: 20_000 }));
    await frozen.struck;
    await demand("tighter", 3);
    await eventually(async () => expect(await allowedBy("tighter")).toBe(0));
    frozen.thaw();
    await pass;
    expect(await versions("tighter")).toEqual(["1", "1", "1"]);
    expect(await blockedOf("tighter")).toMatchObject({
      status: "True",
      reason: "HeldByDisruptionBudget",
      message: expect.stringContaining(
        "PodDisruptionBudget shop/tighter allows 0 more down: 3 healthy of 3 that have to be",
      ),
    });
    await demand("tighter", 2);
    await runPass(cluster, options("tighter"));
    await expectKept("tighter", since);
    expect(await blockedOf("tighter")).toMatchObject({ status: "False" });
  });

  it("a pod that a budget counted before it dropped to 0 is upgraded, and no other pod is", async () => {
    const since = await prepare("counts");
    const frozen = faultyCluster(cluster, "freeze", (_, call) => call === "PATCH pods");
    const pass = runPass(frozen, options("counts", { deadlineMs: 30_000 }));
    await frozen.struck;
    await demand("counts", 3);
    await eventually(async () => expect((await readBudget("counts")).status?.observedGeneration).toBe(2));
    frozen.thaw();
    await pass;
    expect(await versions("counts")).toEqual(["1", "1", "2"]);
    expectNothingBroken("counts", since, { restarts: 1, fewestUp: 2 });
  });

  it("a budget that drops to 0 fences a killed pass's reservation, so that its late patch fails", async () => {
    await prepare("fenced");
    const killed = faultyCluster(cluster, "killLate", (_, call) => call === "PATCH pods");
    await Promise.race([runPass(killed, options("fenced")), killed.struck]);
    await demand("fenced", 3);
    // Two minutes later the budget has forgotten the counted pods.
    await eventually(async () => expect((await readBudget("fenced")).status?.disruptedPods ?? {}).toEqual({}));
    const report = await runPass(cluster, options("fenced", { deadlineMs: 20_000 }));
    expect(report.sidecarSets).toMatchObject([{ tally: { fenced: 1, upgraded: 0 } }]);
    await killed.releaseLate();
    expect(await versions("fenced")).toEqual(["1", "1", "1"]);
  });
});

it("a pass waits for a budget whose controller has not seen its newest spec", async () => {
  await createPods("stale", 3);
  await guard("stale", 2, 1);
  await stopController();
  try {
    await demand("stale", 1);
    await release(cluster, "stale", 2, ALL_AT_ONCE);
    const counting = faultyCluster(cluster, "unavailable", () => false);
    await runPass(counting, options("stale", { deadlineMs: 20_000 }));
    expect(counting.calls.filter((call) => call.startsWith("PATCH pod"))).toEqual([]);
    expect((await blockedOf("stale"))?.message).toBe(
      "3 pods wait for disruption budgets: PodDisruptionBudget shop/stale allows none, since its controller has not seen its newest spec",
    );
    await syncBudgets(cluster, clock);
    const since = test.history().length;
    const pass = runPass(cluster, options("stale"));
    await eventually(async () => expect(await versions("stale")).toContain("2"));
    stopController = startDisruptionController(cluster, clock);
    await pass;
    expect(await versions("stale")).toEqual(["2", "2", "2"]);
    expectNothingBroken("stale", since, { restarts: 3, fewestUp: 1 });
  } finally {
    await stopController();
    stopController = startDisruptionController(cluster, clock);
  }
});

describe("missing rights:", () => {
  const refused = (isRefused: (call: string) => boolean): Cluster => {
    const refuse = (call: string) => {
      if (isRefused(call)) throw new KubeError(`${call} is forbidden`, { code: 403, reason: "Forbidden" });
    };
    return {
      ...cluster,
      list: async (resource, more) => {
        refuse(`LIST ${resource.plural}`);
        return await cluster.list(resource, more);
      },
      patch: async (resource, key, patch, more) => {
        refuse(`PATCH ${resource.plural}`);
        return await cluster.patch(resource, key, patch, more);
      },
    };
  };

  const ROLE = "apply infra/rbac/optional/disruption-budgets.yaml, or switch the gate off";
  it.each([
    ["LIST", "failed", `poddisruptionbudgets may not be listed, which gate RespectDisruptionBudgets needs: ${ROLE}`],
    // A policy may refuse the budgets of one namespace with the same message, and other namespaces continue.
    [
      "PATCH",
      "stalled",
      `could not be written: PATCH poddisruptionbudgets is forbidden (if no policy or webhook refuses it: ${ROLE})`,
    ],
  ])("a pass touches no pod and names the missing role when %s of budgets is forbidden", async (verb, stop, why) => {
    const name = `no-${verb.toLowerCase()}`;
    await prepare(name);
    const report = await runPass(
      refused((call) => call === `${verb} poddisruptionbudgets`),
      options(name),
    );
    expect(report.sidecarSets).toMatchObject([{ stop, why: expect.stringContaining(why) }]);
    expect(await versions(name)).toEqual(["1", "1", "1"]);
  });
});

it("a pass lists budgets about twice a round and writes each twice a batch, and makes no such call without the gate", async () => {
  await prepare("counted-calls", 4);
  let conflicts = 0;
  const patch: Cluster["patch"] = (...args) =>
    cluster.patch<never>(...args).catch((error) => {
      if (isKubeError(error, 409)) conflicts++;
      throw error;
    });
  const asking = faultyCluster({ ...cluster, patch }, "unavailable", () => false);
  const report = await runPass(asking, options("counted-calls"));
  const count = (call: string) => asking.calls.filter((one) => one === call).length;
  const [{ tally } = { tally: { rounds: 0, batches: 0 } }] = report.sidecarSets;
  expect(count("PATCH pods")).toBe(4);
  // There is one read for each round and each list of pods. A busy machine needs more than one.
  expect(count("LIST pods")).toBeGreaterThan(0);
  expect(count("LIST poddisruptionbudgets")).toBeLessThanOrEqual(tally.rounds + count("LIST pods"));
  expect(count("LIST podunavailablebudgets")).toBe(count("LIST poddisruptionbudgets"));
  // Writes that conflicted with the controller's own are repeated.
  expect(count("PATCH poddisruptionbudgets/status")).toBeLessThanOrEqual(2 * tally.batches + conflicts);
  const shown = Object.entries(report.calls ?? {}).filter(([call]) => call.includes("budgets"));
  expect(shown.length).toBeGreaterThan(0);
  await release(cluster, "counted-calls", 3, ALL_AT_ONCE);
  const quiet = faultyCluster(cluster, "unavailable", () => false);
  await runPass(quiet, options("counted-calls", { settings: DEFAULT_ROLLOUT_SETTINGS }));
  expect(quiet.calls.filter((call) => call.includes("budgets"))).toEqual([]);
});

it("a dry run names the budgets that would count pods and the budgets that hold pods", async () => {
  await prepare("dry");
  const report = await runPass(cluster, options("dry", { dryRun: true, plan: { readyAfterSeconds: 5 } }));
  const [{ planned = [], plan } = { planned: undefined, plan: undefined }] = report.sidecarSets;
  const [count, keep] = planned.filter((line) => line.includes("PodDisruptionBudget"));
  expect(count).toMatch(/^have PodDisruptionBudget shop\/dry count dry-\d as going down$/);
  expect(keep).toBe(
    "leave pods as they are: 2 pods wait for disruption budgets: PodDisruptionBudget shop/dry allows 1 more down: 3 healthy of 2 that have to be",
  );
  const held = { pods: 2, budgets: ["PodDisruptionBudget shop/dry"] };
  expect(plan?.steps.map((step) => step.held)).toEqual([held, { ...held, pods: 1 }, undefined]);
  expect(plan?.isComplete).toBe(true);
});
