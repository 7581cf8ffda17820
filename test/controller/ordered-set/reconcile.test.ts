/** What passes report of an Advanced StatefulSet that they begin and follow, and which sets they look for meanwhile. */
import { describe, expect, it } from "vitest";
import { listSets, reconcileSets, type SetService } from "../../../shared/controller/statefulset/reconcile.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/gates.ts";
import { bareCluster, type Refuse, refusal } from "../bare-cluster.ts";
import { steppedClock } from "../stepped-clock.ts";
import { createSet, keyOf, patchSpec } from "./fixture.ts";

function stage(refuse?: Refuse, more: Partial<SetService> = {}) {
  const stepped = steppedClock();
  const bare = bareCluster(stepped, refuse);
  const service: SetService = {
    ...{ cluster: bare.cluster, clock: stepped.clock, gates: DEFAULT_STATEFUL_SET_FEATURE_GATES },
    ...{ limits: { endsAtMs: 20_000 }, isDryRun: false, isFollowing: true, isRescanning: false },
    ...{ problems: [], notReached: [], cursor: "" },
    ...more,
  };
  return { ...stepped, ...bare, service, reconcile: (...keys: readonly string[]) => reconcileSets(service, keys) };
}

const HELP = "; infra/rbac/optional/ordered-sets.yaml grants what is missing";

describe("a set that is followed", () => {
  it("is reported as it is left, with its generation and status", async () => {
    const { cluster, reconcile } = stage();
    await createSet(cluster, "db", { replicas: 0 });
    const [report] = await reconcile("shop/db");
    expect(report).toMatchObject({ ...keyOf("db"), stop: "settled", generation: 1, why: expect.any(String) });
    expect(report?.status).toMatchObject({ observedGeneration: 1, replicas: 0 });
    expect(report?.standing).toBeDefined();
  });

  it("has failed where the API server takes no pod, whatever ended the pass", async () => {
    const { cluster, reconcile, clock } = stage((call) =>
      call === "CREATE pods" ? refusal(403, "exceeded quota") : undefined,
    );
    await createSet(cluster, "db", { replicas: 1 });
    const [report] = await reconcile("shop/db");
    expect(report).toMatchObject({ stop: "failed", why: expect.stringContaining("exceeded quota") });
    expect(clock.now()).toBeGreaterThanOrEqual(18_000);
  });

  it("has failed where its pods may not be looked at any more, and the role that permits it is named", async () => {
    const { cluster, reconcile } = stage((call, nth) =>
      call === "LIST pods" && nth > 1 ? refusal(403, "no") : undefined,
    );
    await createSet(cluster, "db", { replicas: 1 });
    const [report] = await reconcile("shop/db");
    expect(report).toMatchObject({ ...keyOf("db"), stop: "failed", why: `no${HELP}` });
  });
});

describe("sets that are looked for", () => {
  it("are those of all namespaces, with their generations", async () => {
    const { cluster } = stage();
    await createSet(cluster, "db", { replicas: 0 });
    await createSet(cluster, "web", { replicas: 0 });
    await patchSpec(cluster, "web", { revisionHistoryLimit: 3 });
    expect(await listSets(cluster)).toEqual([
      { key: "shop/db", generation: 1 },
      { key: "shop/web", generation: 2 },
    ]);
  });

  it("are none where their kind is not known, and sets that are followed go on", async () => {
    const { cluster, reconcile, service } = stage(
      (call) => (call === "LIST statefulsets" ? refusal(404, "NotFound") : undefined),
      { isRescanning: true },
    );
    await createSet(cluster, "db", { replicas: 1 });
    expect(await listSets(cluster)).toBeUndefined();
    expect(await reconcile("shop/db")).toMatchObject([{ ...keyOf("db"), stop: "deadline" }]);
    expect(service.problems).toEqual([]);
  });

  it("are begun while others are followed", async () => {
    const { cluster, reconcile, plan } = stage(undefined, { isRescanning: true });
    await createSet(cluster, "db", { replicas: 1 });
    plan(3_000, () => createSet(cluster, "web", { replicas: 0 }));
    expect((await reconcile("shop/db")).map(({ name }) => name)).toEqual(["db", "web"]);
  });
});
