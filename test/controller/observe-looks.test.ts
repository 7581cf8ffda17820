/** Tests the reads of a look at a SidecarSet, the clock that counts, and when the look is outdated. */
import { describe, expect, it } from "vitest";
import { METRICS_ANNOTATION, REPLACE_ANNOTATION, RESIZE_ANNOTATION, WAVES_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { type Context, decideContext, keptOf, observe, readSame } from "../../shared/controller/rollout/observe.ts";
import { ledgerSubject } from "../../shared/core/ledger.ts";
import { DEFAULT_ROLLOUT_SETTINGS, type RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";
import { podOf, replicaSet, rolloutPart, SET, setOf } from "./rollout-part.ts";

const WAVES = JSON.stringify([{ name: "first", namespaceSelector: { matchLabels: { stage: "first" } } }]);

describe("decideContext:", () => {
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
    ["pass by default", OWN, {}, {}],
    ["API server when metrics are checked", SERVER, { [METRICS_ANNOTATION]: "[]" }, {}],
    ["API server when pods are replaced", SERVER, { [REPLACE_ANNOTATION]: "NotUpgradable" }, {}],
    ["API server when workloads are restarted", SERVER, { [REPLACE_ANNOTATION]: "Missed,Restart" }, {}],
    ["pass when pods that missed their sidecars are replaced", OWN, { [REPLACE_ANNOTATION]: "Missed" }, {}],
    ["API server when there are waves", SERVER, { [WAVES_ANNOTATION]: WAVES }, {}],
    ["API server when disruption budgets are respected", SERVER, {}, { RespectDisruptionBudgets: true }],
  ])("decideContext uses the clock of the %s", (_, time, annotations, settings) =>
    expect(now(annotations, settings)).toBe(time),
  );
});

describe("readSame:", () => {
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
    ["somebody changes its labels", withMetadata({ labels: { owner: "ours" } })],
    ["its status names the ledger namespace of the pass", withMetadata({}, { ledgerNamespace: KRUISE_NAMESPACE })],
    ["its status names no ledger namespace", withMetadata({}, { ledgerNamespace: "" })],
  ])("readSame returns the newer SidecarSet when %s", async (_, next) => {
    const { same, readSet } = await stage();
    const { resourceVersion } = (await same(next))?.metadata ?? {};
    expect(resourceVersion).toBe(readSet()?.metadata?.resourceVersion);
  });

  it.each<[string, SidecarSet]>([
    ["it was recreated under the same name", withMetadata({ uid: "another" })],
    ["its spec changed", withMetadata({ generation: 3 })],
    ["its status names another ledger namespace", withMetadata({}, { ledgerNamespace: "elsewhere" })],
    [
      "an annotation now needs more facts about the pods",
      withMetadata({ annotations: { [REPLACE_ANNOTATION]: "NotUpgradable" } }),
    ],
  ])("readSame returns undefined when %s", async (_, next) => {
    const { same } = await stage();
    expect(await same(next)).toBeUndefined();
  });
});

describe("resize support:", () => {
  const RESOURCES = { requests: { memory: "64Mi" } };
  /** Returns the number of calls, and the facts after them. The pod runs the new image and still needs `memory`. */
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

  it("an observation asks whether the API server can resize pods only when the gate is on and resources change", async () => {
    expect(await asked(true, "128Mi")).toEqual([1, true, RESOURCES]);
    expect(await asked(true, "64Mi")).toEqual([0, false, RESOURCES]);
    expect(await asked(false, "128Mi")).toEqual([0, false, undefined]);
  });
});

it("an observation keeps the pods' owners only when keepsWorkloads is set", async () => {
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

it("keptOf keeps all reservations when the ledger has a newer generation", async () => {
  const on = rolloutPart();
  const owner = setOf();
  on.put(owner, podOf("a"));
  const reservation = { namespace: "shop", resourceVersion: "1", generation: 3, revision: "hash3" };
  const reservations = ["a", "gone"].map((name) => ({ ...reservation, name, uid: `uid-${name}` }));
  const stored = await readLedger(on.cluster, KRUISE_NAMESPACE, SET);
  const { uid, generation } = ledgerSubject(owner);
  const keptAt = async (ofLedger: number) => {
    const place = { namespace: KRUISE_NAMESPACE, owner };
    await swapLedger(on.cluster, place, stored, { uid, generation: ofLedger, reservations });
    return (await keptOf(on.context, await on.look())).map(({ name }) => name);
  };
  expect(await keptAt(generation + 1)).toEqual(["a", "gone"]);
});
