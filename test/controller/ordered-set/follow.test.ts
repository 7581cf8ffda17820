/** How long a pass stays with an Advanced StatefulSet, and why it leaves it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readLedger, swapLedger } from "../../../shared/controller/rollout/ledger-store.ts";
import { beginSet, followSet } from "../../../shared/controller/statefulset/follow.ts";
import type { SetContext } from "../../../shared/controller/statefulset/observe.ts";
import { newSetTally } from "../../../shared/controller/statefulset/report.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/gates.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import { type Cluster, PODS, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { fastClock } from "../fixture.ts";
import {
  createSet,
  keyOf,
  NAMESPACE,
  readPods,
  readSet,
  type SetCluster,
  startSetCluster,
  template,
} from "./fixture.ts";

let stage: SetCluster;
let cluster: Cluster;
beforeAll(async () => {
  stage = await startSetCluster();
  cluster = stage.cluster;
});
afterAll(() => stage?.local.close());

function contextOf(name: string, through = cluster, factor = 500): SetContext {
  const more = { gates: DEFAULT_STATEFUL_SET_FEATURE_GATES, tally: newSetTally(), recorded: new Set<string>() };
  return { cluster: through, clock: fastClock(factor), key: keyOf(name), ...more };
}

const FOREVER = { endsAtMs: Number.POSITIVE_INFINITY };

/** A set whose pod waits for a gate that nobody opens. */
async function createWaiting(name: string): Promise<void> {
  const { spec, ...rest } = template(name);
  const waiting = { ...spec, readinessGates: [{ conditionType: "example.com/go" }] };
  await createSet(cluster, name, { replicas: 1, template: { ...rest, spec: waiting } });
}

async function begin(context: SetContext) {
  const begun = await beginSet(context);
  if (typeof begun === "string") throw new Error(begun);
  return begun;
}

/** As a pass leaves it that has seen a newer generation of the set. */
async function writeNewerLedger(name: string): Promise<void> {
  const owner = await readSet(cluster, name);
  const place = { namespace: NAMESPACE, owner, kind: "statefulset" } as const;
  const stored = await readLedger(cluster, NAMESPACE, name, "statefulset");
  await swapLedger(cluster, place, stored, { uid: owner.metadata?.uid ?? "", generation: 9, reservations: [] });
}

describe("a pass leaves a set", () => {
  it("that is deleted while its pods are waited for", async () => {
    await createWaiting("deleted");
    const context = contextOf("deleted");
    const begun = await begin(context);
    await cluster.delete(STATEFUL_SETS, keyOf("deleted"));
    expect(await followSet(context, begun, FOREVER)).toMatchObject({ stop: "gone" });
  });

  it("where nothing moves for a minute", async () => {
    await createWaiting("still");
    const context = contextOf("still");
    expect(await followSet(context, await begin(context), FOREVER)).toMatchObject({ stop: "stalled" });
  });

  it("when it is stopped from outside", async () => {
    await createWaiting("stopped");
    const context = contextOf("stopped");
    const limits = { ...FOREVER, signal: AbortSignal.abort() };
    expect(await followSet(context, await begin(context), limits)).toMatchObject({ stop: "aborted" });
  });

  it("that others keep writing to, from the first round on", async () => {
    await createSet(cluster, "busy", { replicas: 0 });
    await writeNewerLedger("busy");
    const context = contextOf("busy");
    expect(await beginSet(context)).toBe("contention");
    expect(context.tally.restarts).toBe(8);
  });

  it("that others keep writing to, from some round on", async () => {
    await createWaiting("busier");
    // Slow enough that eight rounds are no minute also on a busy machine.
    const context = contextOf("busier", cluster, 50);
    const begun = await begin(context);
    await writeNewerLedger("busier");
    const { stop, progress } = await followSet(context, begun, FOREVER);
    expect([stop, progress, context.tally.restarts]).toEqual(["contention", begun, 7]);
  });
});

it("what failed is tried again two seconds later, although nothing has happened", async () => {
  await createSet(cluster, "again", { replicas: 1 });
  let refused = 0;
  const refusing: Cluster = {
    ...cluster,
    create: (resource, ...call) =>
      resource === PODS && refused++ === 0
        ? Promise.reject(new KubeError("exceeded quota", { code: 403, reason: "Forbidden" }))
        : cluster.create(resource, ...call),
  };
  const context = contextOf("again", refusing);
  const begun = await begin(context);
  expect(begun.round.outcome.failure?.message).toContain("exceeded quota");
  const failedAtMs = context.clock.now();
  const { stop } = await followSet(context, begun, FOREVER);
  expect(stop).toBe("settled");
  expect(context.clock.now() - failedAtMs).toBeGreaterThanOrEqual(2_000);
  expect((await readPods(cluster, "again")).map(({ metadata }) => metadata?.name)).toEqual(["again-0"]);
});
