/**
 * Tests reports of passes about an Advanced StatefulSet that they follow, and their looks for new sets during that
 * time.
 */
import { expect, it } from "vitest";
import { listStatefulSets, reconcileSets, type SetService } from "../../../shared/controller/statefulset/reconcile.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import { bareCluster, type Refuse, refusal } from "../bare-cluster.ts";
import { steppedClock } from "../stepped-clock.ts";
import { createSet, keyOf, patchSpec } from "./fixture.ts";

function stage(refuse?: Refuse, more: Partial<SetService> = {}) {
  const stepped = steppedClock();
  const bare = bareCluster(stepped, refuse);
  const service: SetService = {
    ...{ cluster: bare.cluster, lateCluster: bare.cluster, clock: stepped.clock },
    ...{ gates: DEFAULT_STATEFUL_SET_FEATURE_GATES, limits: { endsAtMs: 20_000, lastsMs: 20_000 } },
    ...{ isDryRun: false, isFollowing: true, isRescanning: false },
    ...{ problems: [], notReached: [], cursor: "" },
    ...more,
  };
  return { ...stepped, ...bare, service, reconcile: (...keys: readonly string[]) => reconcileSets(service, keys) };
}

const HELP = "; infra/rbac/optional/ordered-sets.yaml grants what is missing";

it("the report of a followed set has its last generation and status", async () => {
  const { cluster, reconcile } = stage();
  await createSet(cluster, "db", { replicas: 0 });
  const [report] = await reconcile("shop/db");
  expect(report).toMatchObject({ ...keyOf("db"), stop: "settled", generation: 1, why: expect.any(String) });
  expect(report?.status).toMatchObject({ observedGeneration: 1, replicas: 0 });
  expect(report?.standing).toBeDefined();
});

it("a set fails when the API server refuses its pods, also when the pass ends at its deadline", async () => {
  const { cluster, reconcile, clock } = stage((call) =>
    call === "CREATE pods" ? refusal(403, "exceeded quota") : undefined,
  );
  await createSet(cluster, "db", { replicas: 1 });
  const [report] = await reconcile("shop/db");
  expect(report).toMatchObject({ stop: "failed", why: expect.stringContaining("exceeded quota") });
  expect(clock.now()).toBeGreaterThanOrEqual(18_000);
});

it("a set fails with the missing role in the report when listing its pods becomes forbidden", async () => {
  const { cluster, reconcile } = stage((call, nth) =>
    call === "LIST pods" && nth > 1 ? refusal(403, "no") : undefined,
  );
  await createSet(cluster, "db", { replicas: 1 });
  const [report] = await reconcile("shop/db");
  expect(report).toMatchObject({ ...keyOf("db"), stop: "failed", why: `no${HELP}` });
});

it("listSets returns the sets of all namespaces with their generations", async () => {
  const { cluster } = stage();
  await createSet(cluster, "db", { replicas: 0 });
  await createSet(cluster, "web", { replicas: 0 });
  await patchSpec(cluster, "web", { revisionHistoryLimit: 3 });
  expect(await listStatefulSets(cluster)).toEqual([
    { key: "shop/db", generation: 1 },
    { key: "shop/web", generation: 2 },
  ]);
});

it("listSets returns undefined when the kind is unknown, and the pass continues with followed sets", async () => {
  const { cluster, reconcile, service } = stage(
    (call) => (call === "LIST statefulsets" ? refusal(404, "NotFound") : undefined),
    { isRescanning: true },
  );
  await createSet(cluster, "db", { replicas: 1 });
  expect(await listStatefulSets(cluster)).toBeUndefined();
  expect(await reconcile("shop/db")).toMatchObject([{ ...keyOf("db"), stop: "deadline" }]);
  expect(service.problems).toEqual([]);
});

it("a pass begins a new set while it follows another one", async () => {
  const { cluster, reconcile, plan } = stage(undefined, { isRescanning: true });
  await createSet(cluster, "db", { replicas: 1 });
  plan(3_000, () => createSet(cluster, "web", { replicas: 0 }));
  expect((await reconcile("shop/db")).map(({ name }) => name)).toEqual(["db", "web"]);
});
