/** What the Lease of the passes says: whose turn came last, who is at work, and which gates passes have on. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { announcedSettings, type LeaseSite, readLease, renewLease } from "../../shared/controller/loop/lease.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, LEASES } from "../../shared/kube/port.ts";
import { KRUISE_NAMESPACE, startTestCluster, type TestCluster } from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test?.close());

const siteOf = (name: string): LeaseSite => ({
  cluster,
  clock: systemClock,
  namespace: KRUISE_NAMESPACE,
  over: new Set(),
  name,
});

describe("the gates that passes have on", () => {
  it.each([
    ["none", {}],
    ["two", { InPlaceResize: true, RespectDisruptionBudgets: true }],
    ["all but one", { ...allOn(), InPlaceResize: false }],
  ])("are read as they were announced: %s", async (name, more) => {
    const settings = { ...allOff(), ...more };
    const site = { ...siteOf(name.replaceAll(" ", "-")), settings };
    await renewLease(site);
    expect(announcedSettings(await readLease(site))).toEqual(settings);
  });

  it.each([
    ["no Lease", { cursor: "" }],
    ["a Lease without annotations", { cursor: "", stored: { metadata: { name: "lease" } } }],
    ["a Lease without metadata", { cursor: "", stored: {} }],
  ])("are not known from %s", (_, state) => {
    expect(announcedSettings(state)).toBeUndefined();
  });
});

function allOff() {
  return allOf(false);
}

function allOn() {
  return allOf(true);
}

function allOf(isOn: boolean): typeof DEFAULT_ROLLOUT_SETTINGS {
  const gates = Object.keys(DEFAULT_ROLLOUT_SETTINGS).map((gate) => [gate, isOn]);
  return Object.fromEntries(gates) as never;
}

it("a Lease that somebody else made without a word of turns or times is nobody's", async () => {
  const metadata = { namespace: KRUISE_NAMESPACE, name: "bare" };
  const spec = { holderIdentity: "somebody" };
  const stored = await cluster.create<KubernetesObject>(LEASES, { metadata, ...({ spec } as object) });
  expect(await readLease(siteOf("bare"))).toEqual({ stored, cursor: "" });
  expect(await readLease(siteOf("absent"))).toEqual({ cursor: "" });
});
