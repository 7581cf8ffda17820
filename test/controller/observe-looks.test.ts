/** What a look at a SidecarSet reads, by whose clock it is decided, and when it holds no more. */
import { describe, expect, it } from "vitest";
import { METRICS_ANNOTATION, REPLACE_ANNOTATION, RESIZE_ANNOTATION, WAVES_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { type Context, decideContext, keptOf, observe, readSame } from "../../shared/controller/rollout/observe.ts";
import { subjectOf } from "../../shared/core/ledger.ts";
import { DEFAULT_ROLLOUT_SETTINGS, type RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";
import { podOf, replicaSet, rolloutPart, SET, setOf } from "./rollout-part.ts";

const WAVES = JSON.stringify([{ name: "first", namespaceSelector: { matchLabels: { stage: "first" } } }]);

describe("what is decided goes by the clock of", () => {
  const OWN = "2026-02-02T00:00:00Z";
  const SERVER = "2026-01-01T00:00:00Z";
  const now = (annotations: Readonly<Record<string, string>>, more: Partial<RolloutSettings> = {}) => {
    const site = {
      cluster: { serverTimeMs: () => Date.parse(SERVER) } as unknown as Cluster,
      clock: { ...rolloutPart().clock, epochMs: () => Date.parse(OWN) },
      kruiseNamespace: KRUISE_NAMESPACE,
      settings: { ...DEFAULT_ROLLOUT_SETTINGS, ...more },
    };
    return decideContext(site, setOf({ annotations })).now;
  };

  it.each([
    ["the pass", OWN, {}, {}],
    ["the API server where metrics are checked", SERVER, { [METRICS_ANNOTATION]: "[]" }, {}],
    ["the API server where pods are replaced", SERVER, { [REPLACE_ANNOTATION]: "NotUpgradable" }, {}],
    ["the API server where workloads are restarted", SERVER, { [REPLACE_ANNOTATION]: "Missed,Restart" }, {}],
    ["the pass where pods that missed their sidecars are replaced", OWN, { [REPLACE_ANNOTATION]: "Missed" }, {}],
    ["the API server where there are waves", SERVER, { [WAVES_ANNOTATION]: WAVES }, {}],
    ["the API server where disruption budgets are asked", SERVER, {}, { RespectDisruptionBudgets: true }],
  ])("%s", (_, time, annotations, settings) => expect(now(annotations, settings)).toBe(time));
});

describe("a look holds", () => {
  const stage = async () => {
    const on = rolloutPart();
    on.put(setOf(), podOf("a"));
    const snapshot = await on.look();
    const same = async (next: SidecarSet) => {
      on.put(next);
      return await readSame(on.context, snapshot);
    };
    return { ...on, same };
  };
  const withMetadata = (metadata: SidecarSet["metadata"], status?: SidecarSet["status"]): SidecarSet => {
    const set = setOf();
    return { ...set, metadata: { ...set.metadata, ...metadata }, ...(status ? { status } : {}) };
  };

  it.each<[string, SidecarSet]>([
    ["its metadata is written to", withMetadata({ labels: { owner: "ours" } })],
    ["its ledger is said to be kept where it is", withMetadata({}, { ledgerNamespace: KRUISE_NAMESPACE })],
    ["its ledger is said to be kept nowhere", withMetadata({}, { ledgerNamespace: "" })],
  ])("where %s", async (_, next) => {
    const { same, readSet } = await stage();
    const { resourceVersion } = (await same(next))?.metadata ?? {};
    expect(resourceVersion).toBe(readSet()?.metadata?.resourceVersion);
  });

  it.each<[string, SidecarSet]>([
    ["it is recreated under the same name", withMetadata({ uid: "another" })],
    ["its spec is written to", withMetadata({ generation: 3 })],
    ["its ledger is said to be kept elsewhere", withMetadata({}, { ledgerNamespace: "elsewhere" })],
    ["it reads more of its pods by now", withMetadata({ annotations: { [REPLACE_ANNOTATION]: "NotUpgradable" } })],
  ])("no more where %s", async (_, next) => {
    const { same } = await stage();
    expect(await same(next)).toBeUndefined();
  });
});

describe("whether the API server changes resources of running pods", () => {
  const RESOURCES = { requests: { memory: "64Mi" } };
  /** How often it is asked, and what is known then. The pod runs the new image, and is to get `memory` after it. */
  const asked = async (InPlaceResize: boolean, memory: string) => {
    const on = rolloutPart();
    const { spec, ...set } = setOf();
    const [sidecar] = spec.containers ?? [];
    if (!sidecar) throw new Error("there is no sidecar");
    const { metadata, ...pod } = podOf("a", 2);
    const annotations = { ...metadata?.annotations, [RESIZE_ANNOTATION]: JSON.stringify({ [SET]: "hash2" }) };
    const containers = pod.spec.containers.map((one) =>
      one.name === "proxy" ? { ...one, resources: RESOURCES } : one,
    );
    const statuses = pod.status?.containerStatuses?.map((one) => ({ ...one, resources: RESOURCES })) ?? [];
    on.put(
      { ...set, spec: { ...spec, containers: [{ ...sidecar, resources: { requests: { memory } } }] } },
      {
        ...pod,
        metadata: { ...metadata, annotations },
        spec: { ...pod.spec, containers },
        status: { ...pod.status, containerStatuses: statuses },
      },
    );
    let times = 0;
    const list: Cluster["list"] = async (resource, options) => {
      if (resource.plural !== "") return on.cluster.list(resource, options);
      times++;
      return { metadata: {}, resources: [{ name: "pods/resize" }], items: [] } as never;
    };
    const settings = { ...DEFAULT_ROLLOUT_SETTINGS, InPlaceResize };
    const snapshot = await observe({ ...on.context, cluster: { ...on.cluster, list }, settings }, SET);
    const [kept] = snapshot?.observed.view.pods ?? [];
    return [times, snapshot?.isResizeServed, kept?.spec.containers[1]?.resources];
  };

  it("is asked where the gate is on and resources change", async () => {
    expect(await asked(true, "128Mi")).toEqual([1, true, RESOURCES]);
    expect(await asked(true, "64Mi")).toEqual([0, false, RESOURCES]);
    expect(await asked(false, "128Mi")).toEqual([0, false, undefined]);
  });
});

it("whose pods they are is kept of them only where that is asked for", async () => {
  const on = rolloutPart();
  const { metadata, ...pod } = podOf("a");
  on.put(setOf(), { ...pod, metadata: { ...metadata, ownerReferences: [replicaSet("web")] } });
  const kept = async (context: Context) => {
    const [one] = (await observe(context, SET))?.observed.view.pods ?? [];
    return one?.metadata?.ownerReferences?.map(({ name }) => name);
  };
  expect(await kept(on.context)).toBeUndefined();
  expect(await kept({ ...on.context, keepsWorkloads: true })).toEqual(["web"]);
});

it("all that is reserved holds on where the ledger is that of a newer generation", async () => {
  const on = rolloutPart();
  const owner = setOf();
  on.put(owner, podOf("a"));
  const reservation = { namespace: "shop", resourceVersion: "1", generation: 3, revision: "hash3" };
  const reservations = ["a", "gone"].map((name) => ({ ...reservation, name, uid: `uid-${name}` }));
  const stored = await readLedger(on.cluster, KRUISE_NAMESPACE, SET);
  const { uid, generation } = subjectOf(owner);
  const keptAt = async (ofLedger: number) => {
    const place = { namespace: KRUISE_NAMESPACE, owner };
    await swapLedger(on.cluster, place, stored, { uid, generation: ofLedger, reservations });
    return (await keptOf(on.context, await on.look())).map(({ name }) => name);
  };
  expect(await keptAt(generation + 1)).toEqual(["a", "gone"]);
});
