/**
 * Tests `fleet apply` and `fleet undo` when clusters fail during a rollout, on clusters in this process and in virtual
 * time.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HALT_ON_ANNOTATION, UNDONE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { eventually, NAMESPACE } from "../controller/fixture.ts";
import { startVirtualTime, stopVirtualTime } from "../support/virtual-time.ts";
import {
  AGENT,
  agentOf,
  agentPod,
  apply,
  applySet,
  passOver,
  recordOf,
  type StandIn,
  startStandIn,
  status,
  undo,
} from "./fleet-stand-ins.ts";

let standIns: readonly StandIn[] = [];

beforeAll(startVirtualTime);
afterAll(async () => {
  await Promise.all(standIns.map(({ close }) => close()));
  stopVirtualTime();
});

async function start(...names: readonly string[]): Promise<readonly [StandIn, ...StandIn[]]> {
  const started = await Promise.all(names.map((name) => startStandIn(name)));
  standIns = [...standIns, ...started];
  return started as unknown as readonly [StandIn, ...StandIn[]];
}

const versions = (all: readonly StandIn[]) => Promise.all(all.map(async (one) => (await one.versions()).join()));
const write = (one: StandIn, body: object) =>
  one.cluster.patch<SidecarSet>(SIDECARSETS, { name: AGENT }, { type: "merge", body });

/** Creates or changes the SidecarSet as kubectl apply does. */
async function put(one: StandIn, { metadata, spec }: SidecarSet): Promise<void> {
  await write(one, { metadata: { annotations: metadata?.annotations }, spec });
  await passOver(one.cluster);
}

it.each([{ soak: "30 minutes" }, { timeout: "2 hours" }])(
  "fleet apply refuses the options %j and writes nothing",
  async (options) => {
    const all = await start("a", "b");
    await expect(apply({ standIns: all, options }, 2)).rejects.toThrow("not a duration");
    expect(await versions(all)).toEqual(["1,1", "1,1"]);
  },
);

it("the soak time starts again when a pod becomes unready, and the timeout also limits the way back", async () => {
  const all = await start("a", "b");
  const [a] = all;
  const options = { soak: "10m", timeout: "20m" };
  const running = apply({ standIns: all, options }, 2);
  await sleep(60_000);
  const { spec, ...rest } = agentPod("agent-bad");
  const { metadata } = (await a.cluster.get<Pod>(PODS, { namespace: NAMESPACE, name: "agent-0" })) ?? {};
  const annotations = metadata?.annotations;
  const containers = spec.containers?.map((one) => ({ ...one, image: one.image?.replace(/:1$/, ":2") }));
  await a.cluster.create(PODS, {
    ...rest,
    metadata: { ...rest.metadata, annotations },
    spec: { ...spec, containers },
  } as Pod);
  const stopped = await running;
  expect([stopped.code, await versions(all)]).toEqual([3, ["2,2,2", "1,1"]]);
  expect(await recordOf(a)).not.toHaveProperty("readyAt");
  await a.cluster.delete(PODS, { namespace: NAMESPACE, name: "agent-bad" });
  await passOver(a.cluster);
  const deletedAtMs = Date.now();
  expect((await apply({ standIns: all, options }, 2)).code).toBe(0);
  expect(Date.now() - deletedAtMs).toBeGreaterThanOrEqual(600_000);
});

it("the clock of the API server measures the soak time, and the clock of the caller does not", async () => {
  const all = await start("a", "b");
  const behindMs = 86_400_000;
  const late = (one: StandIn) => ({ ...one, cluster: { ...one.cluster, serverTimeMs: () => Date.now() - behindMs } });
  const began = Date.now();
  const { code } = await apply({ standIns: all.map(late), options: { soak: "30m" } }, 2);
  expect([code, await versions(all)]).toEqual([0, ["2,2", "2,2"]]);
  const [{ at = "", readyAt = "" } = {}, { at: next = "" } = {}] = await Promise.all(all.map(recordOf));
  expect(Date.parse(at)).toBeLessThan(began - behindMs / 2);
  expect(Date.parse(readyAt)).toBeLessThan(began - behindMs / 2);
  expect(Date.parse(next) - Date.parse(readyAt)).toBeGreaterThanOrEqual(1_800_000);
});

it("fleet status counts ages by the clock of each API server", async () => {
  const all = await start("a", "b");
  const aheadMs = { a: 0, b: 3 * 86_400_000 };
  const ahead = (one: StandIn) => ({
    ...one,
    cluster: { ...one.cluster, serverTimeMs: () => Date.now() + aheadMs[one.name as "a" | "b"] },
  });
  const { stdout } = await status({ standIns: all.map(ahead) });
  expect(stdout).toMatch(/^b .* 3d /m);
  expect(stdout).not.toMatch(/^a .* 3d /m);
});

it("a release that another user put into a cluster soaks there from the moment when fleet apply sees it Ready", async () => {
  const all = await start("a", "b");
  await apply({ standIns: all }, 2);
  await sleep(86_400_000);
  await put(all[0], agentOf(3));
  const began = Date.now();
  const { code } = await apply({ standIns: all, options: { soak: "30m" } }, 3);
  expect([code, await versions(all)]).toEqual([0, ["3,3", "3,3"]]);
  expect(Date.now() - began).toBeGreaterThanOrEqual(1_800_000);
});

it("fleet undo goes back even in a cluster that needs more than 15 seconds", async () => {
  const all = await start("a");
  await apply({ standIns: all }, 2);
  all[0].trouble = "slow";
  const { code, stdout, stderr } = await undo({ standIns: all });
  expect([code, stdout, stderr]).toEqual([0, expect.stringContaining("a: back to revision 1"), ""]);
  await eventually(async () => expect(await versions(all)).toEqual(["1,1"]));
});

it("fleet undo restores volumes even if fleet apply changed nothing else", async () => {
  const all = await start("a");
  const { spec, ...rest } = agentOf(1);
  await applySet({ standIns: all }, { ...rest, spec: { ...spec, volumes: [{ name: "x" }] } });
  await passOver(all[0].cluster);
  const { code, stdout } = await undo({ standIns: all });
  expect([code, stdout]).toEqual([0, expect.stringContaining("a: back to revision 1")]);
  expect((await all[0].stored()).spec.volumes ?? []).toEqual([]);
});

it("fleet apply removes an annotation that the file no longer has, and keeps the annotations of others", async () => {
  const all = await start("a");
  await write(all[0], { metadata: { annotations: { theirs: "1" } } });
  const { metadata, ...rest } = agentOf(2);
  const annotations = { ...metadata?.annotations, [HALT_ON_ANNOTATION]: "1" };
  await applySet({ standIns: all }, { ...rest, metadata: { ...metadata, annotations } });
  expect((await all[0].stored()).metadata?.annotations).toHaveProperty([HALT_ON_ANNOTATION]);
  const { code, stdout } = await apply({ standIns: all }, 2);
  expect([code, stdout]).toEqual([
    0,
    expect.stringContaining(`a: applied: metadata.annotations{${HALT_ON_ANNOTATION}}`),
  ]);
  const left = (await all[0].stored()).metadata?.annotations;
  expect(left).not.toHaveProperty([HALT_ON_ANNOTATION]);
  expect(left).toHaveProperty("theirs");
});

it("fleet apply exits with 3 if passes undo the release, and names no other client", async () => {
  const all = await start("a", "b");
  const running = apply({ standIns: all, options: { soak: "30m" } }, 2);
  await sleep(60_000);
  const hashOf = (version: number) => agentOf(version).metadata?.annotations?.["kruise.io/sidecarset-hash"] ?? "";
  const undone = [{ from: hashOf(2), to: hashOf(1), at: new Date().toISOString(), message: "two pods failed" }];
  const { metadata, spec } = agentOf(1);
  await write(all[0], {
    metadata: { annotations: { ...metadata?.annotations, [UNDONE_ANNOTATION]: JSON.stringify(undone) } },
    spec,
  });
  const { code, stdout, stderr } = await running;
  expect([code, stderr]).toEqual([3, ""]);
  expect(stdout).toContain("a: halted meanwhile, and put back: spec.containers{proxy}.image");
});

it("fleet undo does not ask the user to repeat it for a cluster that can never go back", async () => {
  const all = await start("a");
  await all[0].cluster.delete(SIDECARSETS, { name: AGENT });
  await apply({ standIns: all }, 2);
  const { code, stderr } = await undo({ standIns: all });
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/fleet apply created it.*\n1 of 1 cluster not undone\.\n$/s),
  ]);
});
