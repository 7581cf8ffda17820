/**
 * Runs ticks a minute apart over many pods in a world without faults. Measures the number of ticks in a rollout, the
 * cost of an idle tick, and the end of a tick.
 */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { PODS } from "../../shared/kube/port.ts";
import { imageOf, isWorking } from "./objects.ts";
import { type Scenario, scenarioOf } from "./scenario.ts";
import { type Intervention, World } from "./world.ts";

const SET = "mesh";
const TICK_MS = 60_000;
const DEADLINE_MS = 55_000;

/** Returns a world without faults, whose kubelets take 2 seconds. */
function untroubled(pods: number, maxUnavailable: number | string, intervention: Intervention = {}): World {
  const quiet = { faultRate: 0, slowRate: 0, eventRate: 0, expireRate: 0, badRate: 0, reshapeRate: 0 };
  const { standing: _policies, hindrances: _troubles, ...ordinary } = scenarioOf(1);
  const scenario: Scenario = {
    ...ordinary,
    ...quiet,
    pods,
    sets: [{ name: SET, isHot: false, isOrdinal: false }],
    isStrict: false,
    isForbidden: false,
    strategy: { maxUnavailable },
    pageSize: 500,
    passes: [],
    strikes: [],
    networkFaults: [],
    behaviours: [],
    noticeMs: 500,
    readyMs: 2_000,
  };
  return new World(scenario, intervention);
}

async function tick(world: World, deadlineMs = DEADLINE_MS): Promise<PassReport> {
  const endMs = world.scheduler.nowMs + TICK_MS;
  let isOver = false;
  const report = world.startPass({ deadlineMs, isFollowing: true }).finally(() => {
    isOver = true;
  });
  await world.scheduler.runUntil(() => isOver);
  expect(world.scheduler.nowMs).toBeLessThan(endMs);
  await world.scheduler.runFor(endMs - world.scheduler.nowMs);
  return report;
}

function updatedPods(world: World): number {
  const image = imageOf(SET, world.users.releases.of(SET).version);
  return world.server
    .all<Pod>(PODS)
    .filter((pod) => isWorking(pod) && pod.spec.containers.some((container) => container.image === image)).length;
}

const writesOf = ({ calls }: PassReport) => Object.entries(calls).filter(([call]) => !/^(GET|LIST|WATCH) /.test(call));

describe("ticks of a minute over 1,000 pods, a tenth of which may be down", () => {
  const world = untroubled(1_000, "10%");

  it("three ticks update all pods", async () => {
    world.users.releases.releaseNext(SET);
    const done: number[] = [];
    while (done.length < 3 && (done.at(-1) ?? 0) < 1_000) {
      await tick(world);
      done.push(updatedPods(world));
    }
    expect(done.at(-1), `after each tick: ${done}`).toBe(1_000);
    expect(world.violations).toEqual([]);
    expect(world.witness.upgrades).toBe(1_000);
  });

  it("idle ticks cost one list of each page, and write nothing but the Lease", async () => {
    await tick(world);
    const { calls, sidecarSets } = await tick(world);
    expect(sidecarSets).toMatchObject([{ name: SET, stop: "settled" }]);
    expect(calls).toMatchObject({ "LIST sidecarsets": 1, "LIST controllerrevisions": 1, "GET sidecarsets": 1 });
    // The lists are two pages, and an empty list of pods that have not begun.
    expect(calls["LIST pods"]).toBe(3);
    expect(writesOf({ calls } as PassReport)).toEqual([["PATCH leases", 2]]);
  });
});

describe("a tick without the time for all pods", () => {
  it("a tick ends before its deadline with its status written and no write open, and the next tick continues there", async () => {
    const world = untroubled(120, 1);
    world.users.releases.releaseNext(SET);
    const seen: number[] = [];
    for (let count = 0; count < 2; count++) {
      const { durationMs, problems, sidecarSets } = await tick(world);
      expect(durationMs).toBeLessThan(DEADLINE_MS);
      expect(problems).toEqual([]);
      expect(sidecarSets).toMatchObject([{ stop: "deadline" }]);
      const { updatedPods: updated = 0 } = world.users.releases.stored(SET)?.status ?? {};
      expect(updated).toBe(world.witness.upgrades);
      seen.push(updated);
    }
    const [first = 0, second = 0] = seen;
    expect(first).toBeGreaterThan(5);
    expect(second).toBeGreaterThan(first + 5);
    expect(second).toBeLessThan(120);
    expect(world.violations).toEqual([]);
  });

  it("a tick begins no PATCH that the deadline would cut off, and leaves the Lease to the next tick", async () => {
    // One batch takes more than half of the tick.
    const world: World = untroubled(600, "100%", {
      gate: ({ call }, go) => world.scheduler.after(call === "PATCH pods" ? 1_900 : 0, go),
    });
    // The kubelet has then seen all pods.
    await world.scheduler.runFor(5_000);
    world.users.releases.releaseNext(SET);
    const first = await tick(world, 28_000);
    expect(first.problems).toEqual([]);
    expect(first.durationMs).toBeLessThan(28_000);
    expect(first.sidecarSets).toMatchObject([{ stop: "deadline", tally: { problems: [] } }]);
    const { upgrades } = world.witness;
    expect(upgrades).toBeGreaterThan(200);
    expect(upgrades).toBeLessThan(600);
    const second = await tick(world);
    expect(second.heldBy).toBeUndefined();
    expect(world.witness.upgrades).toBe(600);
    expect(world.violations).toEqual([]);
  });
});
