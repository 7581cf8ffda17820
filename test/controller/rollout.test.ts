/** Tests why a pass stops to follow the rollout of a SidecarSet. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import type { Context } from "../../shared/controller/rollout/observe.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
import { beginRollout, followRollout } from "../../shared/controller/rollout/rollout.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import {
  deploy,
  fastClock,
  KRUISE_NAMESPACE,
  readSet,
  release,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test?.close());

const context = (): Context => ({
  cluster,
  clock: fastClock(10_000),
  kruiseNamespace: KRUISE_NAMESPACE,
  settings: DEFAULT_ROLLOUT_SETTINGS,
  tally: newTally(),
  recorded: new Set(),
  endsAtMs: Number.POSITIVE_INFINITY,
});

it('beginRollout returns "gone" for a missing SidecarSet', async () => {
  expect(await beginRollout(context(), "absent")).toBe("gone");
});

it('beginRollout returns "contention" after eight restarts when the ledger stays newer', async () => {
  await deploy(cluster, "busy", 0, {});
  const owner = await readSet(cluster, "busy");
  const stored = await readLedger(cluster, KRUISE_NAMESPACE, "busy");
  const newer = { uid: owner.metadata?.uid ?? "", generation: 9, reservations: [] };
  await swapLedger(cluster, { namespace: KRUISE_NAMESPACE, owner }, stored, newer);
  const busy = context();
  expect(await beginRollout(busy, "busy")).toBe("contention");
  expect(busy.tally.restarts).toBe(8);
});

it.each<[string, object, string]>([
  ["stalled", {}, "stalled"],
  ["aborted", { signal: AbortSignal.abort() }, "aborted"],
])("followRollout ends when nothing moves for a minute or when it is aborted: %s", async (name, more, stop) => {
  await deploy(cluster, name, 1, {});
  await release(cluster, name, 2, { image: "registry.example/proxy:never-ready" });
  const following = context();
  const begun = await beginRollout(following, name);
  if (typeof begun === "string") throw new Error(begun);
  const limits = { endsAtMs: Number.POSITIVE_INFINITY, ...more };
  expect(await followRollout(following, begun, limits)).toMatchObject({ stop });
});
