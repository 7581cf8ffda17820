/**
 * Tests a policy that forbids passes to write a SidecarSet's status: an Event reports it, and every reader uses the
 * Event.
 */
import { expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { readDetail, readOverview } from "../../shared/controller/rollout/read-report.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, EVENTS, SIDECARSETS } from "../../shared/kube/port.ts";
import { deploy, KRUISE_NAMESPACE, readSet, release } from "../controller/fixture.ts";
import { onCluster } from "./on-cluster.ts";

const { cluster, cli } = onCluster();
const SETTINGS = { kruiseNamespace: KRUISE_NAMESPACE, settings: DEFAULT_ROLLOUT_SETTINGS };
const pass = (of: Cluster = cluster(), clock = systemClock) =>
  runPass(of, { ...SETTINGS, deadlineMs: 600_000, follow: false, clock });
/** A later clock, because the times of writes are in whole seconds. */
const LATER = { ...systemClock, epochMs: () => systemClock.epochMs() + 2_000 };

/** Returns a cluster with a policy that refuses the status of SidecarSets. */
const underPolicy = (code: number, message = "policy freeze says no"): Cluster => ({
  ...cluster(),
  patch: (resource, key, patch, options) =>
    resource.plural === SIDECARSETS.plural && options?.subresource === "status"
      ? Promise.reject(new KubeError(message, { code, reason: "Invalid" }))
      : cluster().patch(resource, key, patch, options),
});

interface EventObject extends KubernetesObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly involvedObject?: { readonly name?: string };
}

async function eventsOf(name: string): Promise<readonly unknown[]> {
  const { items } = await cluster().list<EventObject>(EVENTS, { namespace: "default" });
  return items
    .filter(({ involvedObject, reason }) => involvedObject?.name === name && reason === "StatusRefused")
    .map(({ type, reason, message }) => [type, reason, message]);
}

const WHY = "the API server refuses a pass: the status is not written: policy freeze says no";

it.each([403, 422] as const)(
  "every command reports that passes may not write the status (%i), and stops when the writes succeed",
  async (code) => {
    const name = `frozen-${code}`;
    await deploy(cluster(), name, 2, {});
    await pass();
    await release(cluster(), name, 2, { paused: true });
    await pass(underPolicy(code));
    await pass(underPolicy(code));
    expect(await eventsOf(name)).toEqual([["Warning", "StatusRefused", WHY]]);
    const all = await cli("status");
    expect(all.stdout).toMatch(new RegExp(`${name} .* Blocked .*${WHY}`));
    expect(all.code).toBe(4);
    expect((await cli("status", name)).stdout.replaceAll(/\s+/g, " ")).toContain(WHY);
    expect((await cli("status", name, "-w", "--timeout", "10m")).code).toBe(3);
    expect((await cli("explain", name)).stdout).toContain(`✗ PassRefused: ${WHY}`);
    expect((await cli("explain", `pod/shop/${name}-0`)).stdout).toContain(`✗ PassRefused: ${WHY}`);
    const { findings } = JSON.parse((await cli("check", "-o", "json")).stdout);
    expect(findings).toContainEqual(
      expect.objectContaining({
        id: "RolloutBlocked",
        about: `SidecarSet ${name}`,
        message: expect.stringContaining(`(PassRefused): ${WHY}`),
      }),
    );
    const site = { ...SETTINGS, cluster: cluster(), clock: systemClock, clusterName: "" };
    const detail = await readDetail(site, name);
    expect(detail).toMatchObject({ verdict: "Blocked" });
    expect(detail?.reasons).toContainEqual(expect.objectContaining({ reason: "PassRefused", kind: "trouble" }));
    expect((await readOverview(site)).sets).toContainEqual(expect.objectContaining({ name, verdict: "Blocked" }));

    await pass(cluster(), LATER);
    expect((await readSet(cluster(), name)).status?.observedGeneration).toBe(2);
    for (const command of [["status"], ["status", name], ["explain", name]])
      expect((await cli(...command)).stdout).not.toContain("policy freeze");
  },
);

it("a SidecarSet whose status writes succeed has no Event about a refused status", async () => {
  await deploy(cluster(), "free", 1, {});
  await pass();
  await cluster().patch<SidecarSet>(
    SIDECARSETS,
    { name: "free" },
    { type: "merge", body: { spec: { updateStrategy: { paused: true } } } },
  );
  await pass();
  expect(await eventsOf("free")).toEqual([]);
});

it.each([401, 429])(
  "a status write that is answered with %i once leaves no Event about a refused status",
  async (code) => {
    const name = `busy-${code}`;
    await deploy(cluster(), name, 1, {});
    await pass(underPolicy(code));
    expect(await eventsOf(name)).toEqual([]);
    await pass(underPolicy(403));
    expect(await eventsOf(name)).toHaveLength(1);
  },
);

it.each([401, 429])(
  "a status write that a webhook denies with %i is refused, and an Event reports it",
  async (code) => {
    const name = `denied-${code}`;
    await deploy(cluster(), name, 1, {});
    await pass(underPolicy(code, 'admission webhook "freeze.example.com" denied the request: no'));
    expect(await eventsOf(name)).toHaveLength(1);
  },
);
