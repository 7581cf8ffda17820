/** Tests `fleet apply`, `fleet status` and `fleet undo` on three clusters in this process, in virtual time. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { type Cluster, NAMESPACES, type ObjectKey, type Resource, SIDECARSETS } from "../../shared/kube/port.ts";
import { eventually } from "../controller/fixture.ts";
import { startVirtualTime, stopVirtualTime } from "../support/virtual-time.ts";
import { AGENT, apply, recordOf, type StandIn, startStandIn, status, undo } from "./fleet-stand-ins.ts";

let standIns: readonly StandIn[] = [];

beforeAll(startVirtualTime);
afterAll(async () => {
  await Promise.all(standIns.map(({ close }) => close()));
  stopVirtualTime();
});

async function start(...names: readonly string[]): Promise<readonly StandIn[]> {
  const started = await Promise.all(names.map((name) => startStandIn(name)));
  standIns = [...standIns, ...started];
  return started;
}

const versions = (all: readonly StandIn[]) => Promise.all(all.map(async (one) => (await one.versions()).join()));

const SOAK = { soak: "30m" };
const SOAK_MS = 30 * 60_000;

it("fleet apply updates the clusters in order, and waits for the soak time of each before it starts the next", async () => {
  const all = await start("a", "b", "c");
  const began = performance.now();
  const { code, stdout, stderr } = await apply({ standIns: all, options: SOAK }, 2);
  expect([code, stderr]).toEqual([0, ""]);
  expect(await versions(all)).toEqual(["2,2", "2,2", "2,2"]);
  expect(stdout).toMatch(/^CLUSTER\s+RELEASE \w{10}\s+WHY\na\s+gets it\s+spec\.containers\{proxy\}\.image\n/);
  expect(stdout).toContain("\na: applied: spec.containers{proxy}.image\n");
  expect(stdout).toMatch(/\na: Ready since \S+, soaks until \S+\n/);
  expect(stdout).not.toMatch(/^c: .*soaks/m);
  expect(stdout).toMatch(/All of 3 clusters done\.\n$/);
  const records = await Promise.all(all.map(recordOf));
  for (const [index, { at = "" }] of records.entries())
    if (index > 0)
      expect(Date.parse(at) - Date.parse(records[index - 1]?.["readyAt"] ?? "")).toBeGreaterThanOrEqual(SOAK_MS);
  expect(performance.now() - began).toBeLessThan(3 * SOAK_MS);
});

it("fleet apply writes nothing when it is repeated, and fleet status says since when each cluster has the release", async () => {
  const all = await start("a", "b");
  await apply({ standIns: all }, 2);
  const before = await Promise.all(all.map((one) => one.stored()));
  const again = await apply({ standIns: all }, 2);
  expect([again.code, again.stdout.match(/has it/g)?.length]).toEqual([0, 2]);
  expect(await Promise.all(all.map((one) => one.stored()))).toEqual(before);
  const seen = await status({ standIns: all });
  expect(seen.code).toBe(0);
  expect(seen.stdout).toMatch(/^a\s+\w{10}\s+2\/2\s+2\s+Ready/m);
});

it("fleet apply --dry-run prints the release of each cluster and stores nothing", async () => {
  const all = await start("a", "b");
  await apply({ standIns: all.slice(0, 1) }, 2);
  const before = await Promise.all(all.map((one) => one.stored()));
  const { code, stdout } = await apply({ standIns: all, options: { dryRun: true } }, 2);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^a\s+has it\s*\nb\s+gets it\s+spec\.containers\{proxy\}\.image\n$/m);
  expect(await Promise.all(all.map((one) => one.stored()))).toEqual(before);
});

it("fleet undo goes back in all clusters that have the release, and leaves the other clusters unchanged", async () => {
  const all = await start("a", "b", "c");
  await apply({ standIns: all.slice(0, 2) }, 2);
  const dry = await undo({ standIns: all, options: { dryRun: true } });
  expect([dry.code, dry.stdout.match(/dry run/g)?.length]).toEqual([0, 2]);
  const { code, stdout } = await undo({ standIns: all });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^a: back to revision 1 .*\nb: back to revision 1 .*\nc: does not have the release/);
  await eventually(async () => expect(await versions(all)).toEqual(["1,1", "1,1", "1,1"]));
  const again = await undo({ standIns: all });
  expect([again.code, again.stdout.match(/left as it is/g)?.length]).toEqual([0, 3]);
});

it("fleet undo fails in one sentence when no cluster has a SidecarSet of that name", async () => {
  const all = await start("a", "b");
  await expect(undo({ standIns: all }, "log-agnet")).rejects.toThrow("none of 2 clusters has a SidecarSet log-agnet");
});

it("fleet apply refuses a release that was undone, and accepts it after the user ran the suggested command", async () => {
  const all = await start("a");
  await apply({ standIns: all }, 2);
  await undo({ standIns: all });
  const { code, stderr } = await apply({ standIns: all }, 2);
  expect(code).toBe(2);
  expect(stderr).toContain(
    "a: SidecarSet agent was undone after fleet apply put this release there (spec.containers{proxy}.image)",
  );
  const [, annotation = ""] = /kubectl --context a annotate sidecarset agent (\S+)-\n/.exec(stderr) ?? [];
  const body = { metadata: { annotations: { [annotation]: null } } };
  await all[0]?.cluster.patch(SIDECARSETS, { name: AGENT }, { type: "merge", body });
  expect((await apply({ standIns: all }, 2)).code).toBe(0);
  expect(await versions(all)).toEqual(["2,2"]);
});

it("fleet apply leaves a SidecarSet alone that somebody paused after the release was applied there", async () => {
  const all = await start("a", "b");
  await apply({ standIns: all.slice(0, 1) }, 2);
  const body = { spec: { updateStrategy: { paused: true } } };
  await all[0]?.cluster.patch(SIDECARSETS, { name: AGENT }, { type: "merge", body });
  const { code, stderr } = await apply({ standIns: all }, 2);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining("was changed after fleet apply put this release there (spec.updateStrategy.paused)"),
  ]);
  expect((await all[0]?.stored())?.spec.updateStrategy?.paused).toBe(true);
  expect(await versions(all)).toEqual(["2,2", "1,1"]);
});

it("fleet apply changes nothing if Argo CD manages a SidecarSet that differs, or if two contexts lead to one cluster", async () => {
  const all = await start("a", "b");
  const body = {
    metadata: { annotations: { "argocd.argoproj.io/tracking-id": "x:apps.kruise.io/SidecarSet:/agent" } },
  };
  await all[1]?.cluster.patch(SIDECARSETS, { name: AGENT }, { type: "merge", body });
  const managed = await apply({ standIns: all }, 2);
  expect([managed.code, managed.stderr]).toEqual([
    2,
    expect.stringContaining(
      "b: SidecarSet agent differs from the file (spec.containers{proxy}.image), and Argo CD writes it there",
    ),
  ]);
  const [first] = all;
  const twin = await apply({ standIns: first === undefined ? [] : [first, { ...first, name: "other" }] }, 2);
  expect([twin.code, twin.stderr]).toEqual([
    2,
    expect.stringContaining("other: it is the same cluster as a; leave one out"),
  ]);
  expect(await versions(all)).toEqual(["1,1", "1,1"]);
});

it("fleet status and fleet undo say that two contexts lead to one cluster, and undo goes back there only once", async () => {
  const [one] = await start("a");
  if (one === undefined) throw new Error("no cluster");
  await apply({ standIns: [one] }, 2);
  const standIns = [one, { ...one, name: "other" }];
  const seen = await status({ standIns });
  expect([seen.code, seen.stderr]).toEqual([0, "other: it is the same cluster as a\n"]);
  const { code, stdout } = await undo({ standIns });
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^a: back to revision 1 .*\nother: it is the same cluster as a: left as it is\n$/),
  ]);
  await eventually(async () => expect(await versions([one])).toEqual(["1,1"]));
});

it("fleet undo also goes back in a cluster when another cluster claims its identity", async () => {
  const [liar, victim] = await start("liar", "victim");
  if (liar === undefined || victim === undefined) throw new Error("no cluster");
  await apply({ standIns: [liar, victim] }, 2);
  const get: Cluster["get"] = async <T extends KubernetesObject>(resource: Resource, key: ObjectKey) =>
    (resource === NAMESPACES ? victim : liar).cluster.get<T>(resource, key);
  const lying = { ...liar, cluster: { ...liar.cluster, get } };
  const { code, stdout } = await undo({ standIns: [lying, victim] });
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^liar: back to revision 1 .*\nvictim: back to revision 1 /),
  ]);
  await eventually(async () => expect(await versions([victim])).toEqual(["1,1"]));
});

it("fleet undo of a name that no cluster has is an error, also when two contexts lead to one cluster", async () => {
  const [one] = await start("a");
  if (one === undefined) throw new Error("no cluster");
  const standIns = [one, { ...one, name: "other" }];
  const outcome = await undo({ standIns: standIns.slice(0, 1) }, "misspelt").catch(String);
  expect(outcome).toMatch("none of 1 cluster has a SidecarSet misspelt");
  expect(await undo({ standIns }, "misspelt").catch(String)).toMatch("has a SidecarSet misspelt: is that its name?");
});

it("fleet undo -o json has the clusters that could not go back, with the reason", async () => {
  const all = await start("a", "b");
  await apply({ standIns: all }, 2);
  for (const one of all.slice(1)) one.trouble = "refuses";
  const { code, stdout } = await undo({ standIns: all, output: "json" });
  expect(code).toBe(1);
  expect(stdout.match(/"cluster": ?"\w"/g)).toHaveLength(2);
  expect(stdout).toMatch(/"cluster": ?"b",\s*"problem": ?"sidecarsets.apps.kruise.io .* is forbidden/);
});

it("after a change of only the strategy, fleet undo still goes back to the same release", async () => {
  const all = await start("a");
  await apply({ standIns: all }, 2, { partition: 1 });
  expect(await versions(all)).toEqual([expect.stringMatching(/^(1,2|2,1)$/)]);
  await apply({ standIns: all }, 2);
  expect(await versions(all)).toEqual(["2,2"]);
  await undo({ standIns: all });
  await eventually(async () => expect(await versions(all)).toEqual(["1,1"]));
});
