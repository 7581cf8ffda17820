/** Tests the use of a pass' Lease, and passes in a cluster that forbids the Lease. */
import { expect, it } from "vitest";
import { systemClock, timestamp } from "../../shared/controller/loop/clock.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { LEASES } from "../../shared/kube/port.ts";
import { bareCluster, type Refuse, refusal } from "./bare-cluster.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";
import { oneLook } from "./service.ts";
import { steppedClock } from "./stepped-clock.ts";

const KEY = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };

/** Runs a pass in a cluster without SidecarSets. `holderIdentity`: the pass that holds the Lease. */
async function pass(more: Partial<PassOptions>, refuse?: Refuse, holderIdentity?: string, faster?: string) {
  const hold = (holder: string) => {
    const spec = { holderIdentity: holder, leaseDurationSeconds: 30, renewTime: timestamp(systemClock) };
    bare.server.put("test", LEASES, { metadata: { ...KEY, uid: "lease" }, ...{ spec } });
  };
  const bare = bareCluster(steppedClock(), (call, nth) => {
    if (faster !== undefined && call === "PATCH leases") hold(faster);
    return refuse?.(call, nth);
  });
  if (holderIdentity !== undefined) hold(holderIdentity);
  const report = await runPass(bare.cluster, oneLook(more));
  const calls = bare.calls.map(([, call]) => call);
  const writes = calls.filter((call) => call.includes("leases") && !call.startsWith("GET"));
  return { report, calls, writes, lease: bare.server.peek(LEASES, KEY) };
}

const refuseTo =
  (...calls: readonly string[]): Refuse =>
  (call) =>
    calls.includes(call) ? refusal(403, "Forbidden") : undefined;
const WITHOUT = ["no Lease is used: Forbidden"];

it("a pass without SidecarSets renews the Lease and lists no SidecarSets", async () => {
  const { report, calls, writes, lease } = await pass({ withoutSidecarSets: true });
  expect(report).toMatchObject({ sidecarSets: [], problems: [], launches: { waiting: 0 } });
  expect(calls).not.toContain("LIST sidecarsets");
  expect(writes).toEqual(["CREATE leases"]);
  expect(lease).toMatchObject({ spec: { holderIdentity: "" } });
});

it.each([true, false])("a dry run writes no Lease, with withoutSidecarSets set to %s", async (withoutSidecarSets) => {
  const { report, writes } = await pass({ withoutSidecarSets, dryRun: true });
  expect(report).toMatchObject({ sidecarSets: [], problems: [] });
  expect(writes).toEqual([]);
});

it.each<[string, boolean, Refuse]>([
  ["reading the Lease is forbidden", false, refuseTo("GET leases")],
  ["creating the Lease is forbidden", false, refuseTo("CREATE leases")],
  ["giving the Lease back is forbidden", false, refuseTo("PATCH leases")],
  ["reading the Lease is forbidden to a pass without SidecarSets", true, refuseTo("GET leases")],
  ["creating the Lease is forbidden to a pass without SidecarSets", true, refuseTo("CREATE leases")],
])("a pass reports a problem and does all its work when %s", async (_, withoutSidecarSets, refuse) => {
  const { report, calls } = await pass({ withoutSidecarSets }, refuse);
  expect(report).toMatchObject({ sidecarSets: [], problems: WITHOUT, launches: { waiting: 0 } });
  expect(report).not.toHaveProperty("heldBy");
  expect(report).not.toHaveProperty("failure");
  expect(calls).toContain("LIST pods");
});

it("a pass does nothing while another pass holds the Lease", async () => {
  const { report, calls, writes } = await pass({}, undefined, "pass-other");
  expect(report).toMatchObject({ sidecarSets: [], heldBy: "pass-other", problems: [] });
  expect(writes).toEqual([]);
  expect(calls).toEqual(["GET leases"]);
});

it("a pass without SidecarSets works while another pass holds the Lease and does not write the Lease", async () => {
  const { report, calls, writes } = await pass({ withoutSidecarSets: true }, undefined, "pass-other");
  expect(report).toMatchObject({ sidecarSets: [], problems: [] });
  expect(writes).toEqual([]);
  expect(calls).toContain("LIST pods");
});

const conflict: Refuse = (call) => (call === "PATCH leases" ? refusal(409, "Conflict") : undefined);

it.each([true, false])(
  "a pass does all its work and names the Lease when a policy answers 409 to each Lease write (withoutSidecarSets: %s)",
  async (withoutSidecarSets) => {
    const { report, writes } = await pass({ withoutSidecarSets }, conflict, "");
    const problem = `no Lease is used: the Lease ${KRUISE_NAMESPACE}/sidecarset-rollout is not written, and nobody else wrote it: Conflict`;
    expect(report).toMatchObject({ sidecarSets: [], problems: [problem], launches: { waiting: 0 } });
    expect(report).not.toHaveProperty("heldBy");
    expect(writes).toEqual(["PATCH leases refused"]);
  },
);

it("a pass does nothing when another pass takes the Lease first", async () => {
  const { report, calls } = await pass({}, conflict, "", "pass-other");
  expect(report).toMatchObject({ sidecarSets: [], heldBy: "another pass", problems: [] });
  expect(calls).not.toContain("LIST pods");
});
