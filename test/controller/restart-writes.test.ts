/** Tests a round's reads and writes of workloads for a restart, and refusals. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  FENCE_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  REPLACE_ANNOTATION,
  RESTARTED_AT_ANNOTATION,
  RESTARTED_FOR_ANNOTATION,
} from "../../shared/api/names.ts";
import { keptOwners } from "../../shared/controller/rollout/departures.ts";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { beginRollout } from "../../shared/controller/rollout/rollout.ts";
import { round } from "../../shared/controller/rollout/round.ts";
import type { Workload } from "../../shared/core/rollout/rules/restarts/workload-object.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { DEPLOYMENTS, PODS, REPLICA_SETS, SIDECARSETS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout, running } from "./bare-rollout.ts";
import { KRUISE_NAMESPACE, NAMESPACE } from "./fixture.ts";

const WEB = { namespace: NAMESPACE, name: "web" };

/** Prepares Deployment web, whose only pod must be replaced for version 2. */
function stage(refuse?: Refuse, owner: { readonly kind?: string; readonly uid?: string } = {}) {
  const on = bareRollout("set", refuse);
  const { server } = on;
  on.deploy(1);
  const status = { replicas: 1, updatedReplicas: 1, availableReplicas: 1, observedGeneration: 1 };
  const template = { metadata: { labels: { app: "set" } } };
  const deployment: Workload = {
    metadata: { ...WEB, uid: "uid-web", generation: 1 },
    spec: { replicas: 1, template },
    status,
  };
  server.put("test", DEPLOYMENTS, deployment);
  const [apiVersion, controller] = ["apps/v1", true];
  const ofDeployment = { apiVersion, kind: owner.kind ?? "Deployment", name: "web", uid: "uid-web", controller };
  const ownerReferences = [{ ...ofDeployment, controller: false, uid: "uid-other" }, ofDeployment];
  server.put("test", REPLICA_SETS, { metadata: { ...WEB, name: "web-1", uid: "uid-web-1", ownerReferences } });
  const record = JSON.stringify({ set: { hash: "old", sidecarSetName: "set", sidecarList: ["proxy"] } });
  const pod = on.readPod(0);
  const metadata = {
    ...pod.metadata,
    labels: { app: "set", "pod-template-hash": "1" },
    annotations: { ...pod.metadata?.annotations, [HASH_ANNOTATION]: record, [HASH_WITHOUT_IMAGE_ANNOTATION]: record },
    ownerReferences: [
      { apiVersion, kind: "ReplicaSet", name: "web-1", uid: owner.uid ?? "uid-web-1", controller: true },
    ],
  };
  server.put("test", PODS, running({ ...pod, metadata } as Pod));
  on.release(2);
  const set = on.readSet();
  const annotations = { ...set.metadata?.annotations, [REPLACE_ANNOTATION]: "NotUpgradable,Restart" };
  server.put("test", SIDECARSETS, { ...set, metadata: { ...set.metadata, generation: 1, annotations } });
  const begin = async () => {
    const begun = await beginRollout(on.context, "set");
    if (typeof begun === "string") throw new Error(begun);
    return begun;
  };
  const web = () => server.peek<Workload>(DEPLOYMENTS, WEB) as Workload;
  const restartedAt = () => web().spec?.template?.metadata?.annotations?.[RESTARTED_AT_ANNOTATION];
  const ledger = async () => (await readLedger(on.cluster, KRUISE_NAMESPACE, "set")).ledger;
  const asked = () => on.calls.map(([, call]) => call).filter((call) => /deployments|replicasets/.test(call));
  return { ...on, begin, web, restartedAt, ledger, asked, tally: on.context.tally };
}

it("a Deployment is restarted after its ReplicaSet confirmed the pod, and the ledger remembers the restart", async () => {
  const { begin, web, restartedAt, ledger, asked, tally, beginAt, answeredWhole } = stage();
  beginAt(Date.UTC(2026, 0, 10));
  await begin();
  expect(asked()).toEqual(["GET replicasets", "GET deployments", "PATCH deployments"]);
  expect(answeredWhole).not.toContain("PATCH deployments");
  expect(restartedAt()).toBe("2026-01-10T00:00:00Z");
  expect(web().metadata?.annotations).toEqual({ [RESTARTED_FOR_ANNOTATION]: "set=hash2" });
  const { reservations, restarted } = await ledger();
  expect(reservations).toMatchObject([{ ...WEB, uid: "uid-web", workload: "Deployment" }]);
  expect(restarted).toEqual([{ ...WEB, uid: "uid-web", workload: "Deployment" }]);
  expect([tally.restarted, tally.problems]).toEqual([1, []]);
});

it.each([
  ["its pod belongs to another ReplicaSet of the same name", { uid: "uid-other" }],
  ["its ReplicaSet belongs to another kind of the same name", { kind: "Rollout" }],
])("a Deployment is not restarted when %s", async (_, owner) => {
  const { begin, restartedAt, ledger } = stage(undefined, owner);
  const { result } = await begin();
  expect(restartedAt()).toBeUndefined();
  expect((await ledger()).reservations).toEqual([]);
  expect(result.decision.summary.selected).toBe(0);
});

it("a workload whose first read was forbidden is restarted ten seconds later", async () => {
  const { begin, context, clock, restartedAt } = stage((call, nth) =>
    call === "GET deployments" && nth === 1 ? refusal(403, "no") : undefined,
  );
  const { snapshot } = await begin();
  const afterRound = async (mode: "act" | "record", afterMs: number) => {
    await clock.sleep(afterMs);
    await round(context, snapshot, mode);
    return restartedAt() !== undefined;
  };
  expect(await afterRound("act", 9_999)).toBe(false);
  expect(await afterRound("record", 1)).toBe(false);
  expect(await afterRound("act", 0)).toBe(true);
});

it("a workload whose webhook does not answer its restart in time still counts as being restarted", async () => {
  const late = new KubeError("no answer", { code: 0, reason: "Timeout", isOutcomeKnown: false });
  const { begin, context, ledger } = stage((call) => (call === "PATCH deployments" ? late : undefined));
  await begin();
  const { reservations, restarted } = await ledger();
  expect(reservations).toMatchObject([{ uid: "uid-web", workload: "Deployment" }]);
  expect(restarted).toMatchObject([{ uid: "uid-web" }]);
  expect([...keptOwners(context)]).toEqual([]);
});

it("a refused restart makes the pass skip that workload for a while", async () => {
  const { begin, context } = stage((call) => (call === "PATCH deployments" ? refusal(403, "no") : undefined));
  await begin();
  expect([...keptOwners(context)]).toEqual(["shop/uid-web"]);
});

it.each<[number, string]>([
  [403, "is not restarted: no (infra/rbac/optional/restart.yaml permits it)"],
  [422, "is not restarted: no"],
])(
  "a restart that is refused with %i is a problem of its workload and leaves no reservation",
  async (code, message) => {
    const { begin, restartedAt, ledger, tally } = stage((call) =>
      call === "PATCH deployments" ? refusal(code, "no") : undefined,
    );
    await begin();
    expect(restartedAt()).toBeUndefined();
    expect(tally.problems).toEqual([{ ...WEB, message }]);
    const { reservations, restarted } = await ledger();
    expect([reservations, restarted, tally.restarted]).toEqual([[], undefined, undefined]);
  },
);

it("a paused restart delays no other restart, and is supervised again when it continues", async () => {
  const { server, web, readSet, cluster, begin, beginAt, ledger, context, restartedAt } = stage();
  beginAt(Date.UTC(2026, 0, 10));
  const other = { workload: "Deployment", ...WEB, name: "other", uid: "uid-other" } as const;
  const { metadata, ...deployment } = web();
  const template = { metadata: { annotations: { [RESTARTED_AT_ANNOTATION]: "2026-01-10T00:00:00Z" } } };
  const put = (paused: boolean) =>
    server.put("test", DEPLOYMENTS, {
      ...{ status: { ...deployment.status, updatedReplicas: 0 }, spec: { ...deployment.spec, paused, template } },
      metadata: { ...metadata, name: other.name, uid: other.uid },
    });
  put(true);
  const stored = await readLedger(cluster, KRUISE_NAMESPACE, "set");
  const place = { namespace: KRUISE_NAMESPACE, owner: readSet() };
  await swapLedger(cluster, place, stored, { uid: "uid-set", generation: 1, reservations: [], restarted: [other] });
  const { snapshot } = await begin();
  expect(restartedAt()).toBe("2026-01-10T00:00:00Z");
  put(false);
  const { decision } = (await round(context, snapshot, "record")) ?? {};
  expect(decision?.summary.rules.restarts?.underWay).toContain("Deployment shop/other");
  expect((await ledger()).restarted?.map(({ name }) => name)).toEqual(["other", "web"]);
});

it("a refused restart does not end the supervision of another running restart", async () => {
  const { server, web, readSet, cluster, begin, beginAt, ledger, tally } = stage((call) =>
    call === "PATCH deployments" ? refusal(403, "no") : undefined,
  );
  beginAt(Date.UTC(2026, 0, 10));
  const other = { workload: "Deployment", ...WEB, name: "other", uid: "uid-other" } as const;
  const { metadata, ...deployment } = web();
  const status = { ...deployment.status, updatedReplicas: 0 };
  server.put("test", DEPLOYMENTS, {
    ...deployment,
    metadata: { ...metadata, name: other.name, uid: other.uid },
    ...{
      status,
      spec: {
        ...deployment.spec,
        template: { metadata: { annotations: { [RESTARTED_AT_ANNOTATION]: "2026-01-10T00:00:00Z" } } },
      },
    },
  });
  const set = readSet();
  const annotations = { ...set.metadata?.annotations, [REPLACE_ANNOTATION]: "NotUpgradable,Restart=2" };
  const owner = { ...set, metadata: { ...set.metadata, annotations } };
  server.put("test", SIDECARSETS, owner);
  const stored = await readLedger(cluster, KRUISE_NAMESPACE, "set");
  const place = { namespace: KRUISE_NAMESPACE, owner };
  await swapLedger(cluster, place, stored, { uid: "uid-set", generation: 1, reservations: [], restarted: [other] });
  await begin();
  expect(tally.problems).toMatchObject([WEB]);
  const { reservations, restarted } = await ledger();
  expect([reservations, restarted]).toEqual([[], [other]]);
});

it("a restart that conflicts with another write is no problem, and the workload stays reserved and is read again", async () => {
  const on = stage((call, nth) => {
    if (call !== "PATCH deployments" || nth > 1) return undefined;
    on.server.put("test", DEPLOYMENTS, on.web());
    return refusal(409, "Conflict");
  });
  const { snapshot } = await on.begin();
  expect(on.tally.problems).toEqual([]);
  expect((await on.ledger()).reservations).toHaveLength(1);
  // The pass must read the workload again before it decides anything else.
  expect(snapshot.workloads.size).toBe(0);
  expect(on.asked()).toEqual(["GET replicasets", "GET deployments", "PATCH deployments refused", "GET deployments"]);
});

describe("fences on workloads:", () => {
  async function reserved(refuse?: Refuse) {
    const on = stage(refuse);
    const { resourceVersion = "" } = on.web().metadata ?? {};
    const stored = await readLedger(on.cluster, KRUISE_NAMESPACE, "set");
    const one = { ...WEB, uid: "uid-web", workload: "Deployment" } as const;
    const reservations = [{ ...one, resourceVersion, generation: 1, revision: "r" }];
    const ledger = { uid: "uid-set", generation: 1, reservations, restarted: [one] };
    await swapLedger(on.cluster, { namespace: KRUISE_NAMESPACE, owner: on.readSet() }, stored, ledger);
    on.release(2, { paused: true });
    return { ...on, resourceVersion };
  }

  it("a reserved workload that is no longer wanted is fenced, so that a late restart fails", async () => {
    const { begin, web, tally, resourceVersion, restartedAt } = await reserved();
    await begin();
    expect(web().metadata?.annotations).toEqual({ [FENCE_ANNOTATION]: resourceVersion });
    expect([tally.fenced, tally.problems, restartedAt()]).toEqual([1, [], undefined]);
  });

  it.each([
    ["it was read", undefined],
    ["it could not be read", (call: string) => (call === "GET deployments" ? refusal(500, "busy") : undefined)],
  ])("a fenced workload keeps its annotations when %s", async (_, refuse) => {
    const on = await reserved(refuse);
    const { metadata, ...rest } = on.web();
    const annotated = { ...rest, metadata: { ...metadata, annotations: { team: "shop" } } };
    on.server.put("test", DEPLOYMENTS, annotated);
    const stored = await readLedger(on.cluster, KRUISE_NAMESPACE, "set");
    const { resourceVersion = "" } = on.web().metadata ?? {};
    const reservations = stored.ledger.reservations.map((one) => ({ ...one, resourceVersion }));
    const place = { namespace: KRUISE_NAMESPACE, owner: on.readSet() };
    await swapLedger(on.cluster, place, stored, { ...stored.ledger, reservations });
    await on.begin();
    expect(on.web().metadata?.annotations).toEqual({ team: "shop", [FENCE_ANNOTATION]: resourceVersion });
  });

  it("a fence on a workload that is forbidden is a problem", async () => {
    const { begin, tally } = await reserved((call) => (call === "PATCH deployments" ? refusal(403, "no") : undefined));
    await begin();
    expect(tally.fenced).toBe(0);
    expect(tally.problems).toEqual([{ ...WEB, message: "what was reserved of it cannot be let go: no" }]);
  });
});
