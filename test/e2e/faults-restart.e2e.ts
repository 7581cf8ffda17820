/** Rolls out images while a real API server and its etcd are killed and restarted again and again. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { controlPlane, restartApiServer, restartEtcd } from "./support/access.ts";
import { sum } from "./support/faults.ts";
import { addFigure } from "./support/figures.ts";
import { expectHeld, type Fleet, openFleet, type Rolled, UPDATED } from "./support/fleet.ts";
import { killsAt, POINT_NAMES } from "./support/kill-points.ts";
import { type ProxiedReconciler, startProxiedReconciler } from "./support/proxied-reconciler.ts";
import { size } from "./support/size.ts";

const ROLLOUTS = size({ ci: 3, soak: 20 });
const AT_ONCE = Math.min(ROLLOUTS, 5);
const TIMEOUT_MS = (ROLLOUTS / AT_ONCE) * 300_000;

let reconciler: ProxiedReconciler;
let fleet: Fleet;

beforeAll(async () => {
  reconciler = await startProxiedReconciler(controlPlane());
});
afterEach(() => reconciler?.proxy.disturb(undefined));
afterAll(async () => {
  await fleet?.close();
  await reconciler?.close();
});

async function rollWith(points: readonly string[], kill: () => Promise<void>, wave: number) {
  const expected = { pods: AT_ONCE * UPDATED, sidecarSets: AT_ONCE, updatedEach: UPDATED };
  const kills = killsAt({ points, expected, kill, wave });
  reconciler.proxy.disturb(kills.disturb);
  const rolled = await fleet.roll({ ready: kills.ready, begun: kills.begin });
  await kills.back();
  reconciler.proxy.disturb(undefined);
  expect([...kills.met].toSorted()).toEqual([...points].toSorted());
  return rolled;
}

it.each([
  ["kube-apiserver", POINT_NAMES, () => restartApiServer()],
  ["etcd", ["the first list of SidecarSets", "the first ledger", "the first pod", "half of the pods"], restartEtcd],
] as const)("%s", { timeout: TIMEOUT_MS }, async (name, points, kill) => {
  fleet ??= await openFleet(reconciler, AT_ONCE);
  const began = performance.now();
  const rolled: Rolled[] = [];
  while (rolled.length < ROLLOUTS) rolled.push(...(await rollWith(points, kill, rolled.length / AT_ONCE)));
  const kills = (rolled.length / AT_ONCE) * points.length;
  const figures = {
    kills,
    rollouts: rolled.length,
    seconds: Math.round((performance.now() - began) / 100) / 10,
    "states of pods": sum(rolled.map(({ states }) => states)),
    "pod writes": sum(rolled.map(({ podWrites }) => podWrites)),
  };
  const told = Object.entries(figures).map(([what, count]) => `${what} ${count}`);
  process.stdout.write(`${name} killed: ${told.join(", ")}\n`);
  addFigure(`kills of ${name} in the middle of rollouts`, kills);
  addFigure("rollouts with faults", rolled.length);
  addFigure("states of pods looked at for the budget", figures["states of pods"]);
  expectHeld(rolled);
});
