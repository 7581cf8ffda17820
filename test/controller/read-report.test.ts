/** Tests the reads of a report within the caller's rights: all SidecarSets, one with its pods, or one of its pods. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { INJECT_KEY } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { readDetail, readOverview, readPodExplanation } from "../../shared/controller/rollout/read-report.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { selectionOf } from "../../shared/core/rollout/rules/missed/selection.ts";
import { KubeError } from "../../shared/kube/error.ts";
import {
  type Cluster,
  EVENTS,
  LEASES,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  PODS,
  SIDECARSETS,
} from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import {
  deploy,
  eventually,
  imageOf,
  injectedPod,
  isReady,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  release,
  sidecarSet,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

const NOW = "2030-01-01T00:00:00Z";
const LEASE = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };

let local: TestCluster;
let cluster: Cluster;
/**
 * Prepares a SidecarSet at version 2 with an old pod, one that declines sidecars, one that never gets ready, and one
 * created without sidecars.
 */
beforeAll(async () => {
  local = await startTestCluster();
  cluster = local.cluster;
  await deploy(cluster, "proxy", 1, {});
  const declining = injectedPod("proxy", "proxy-declines");
  const annotations = { ...declining.metadata?.annotations, [INJECT_KEY]: "false" };
  await cluster.create<Pod>(PODS, { ...declining, metadata: { ...declining.metadata, annotations } });
  const down = injectedPod("proxy", "proxy-down");
  const [main, ...sidecars] = down.spec.containers;
  const containers = [{ name: "main", ...main, image: "registry.example/main:does-not-exist" }, ...sidecars];
  await cluster.create<Pod>(PODS, { ...down, spec: { ...down.spec, containers } });
  await cluster.create<Pod>(PODS, newPod({ namespace: NAMESPACE, name: "bare", labels: { app: "proxy" } }));
  const ready = async () => (await readPods(cluster, "proxy")).filter(isReady);
  await eventually(async () => expect(await ready()).toHaveLength(3));
  await release(cluster, "proxy", 2);
  const selection = { ...selectionOf(sidecarSet("proxy", 2, {}), NOW), since: "2020-01-01T00:00:00Z" };
  const selectedSince = {
    type: "merge",
    body: { status: { matchedPods: 3, updatedPods: 0, readyPods: 2, selection } },
  } as const;
  await cluster.patch<SidecarSet>(SIDECARSETS, { name: "proxy" }, selectedSince, { subresource: "status" });
  await recordEvent("SidecarSet", "proxy");
  await recordEvent("SidecarSet", "other");
  await recordEvent("Pod", "proxy");
  await recordEvent("SidecarSet", "proxy", "shop");
});
afterAll(() => local?.close());
beforeEach(() => cluster.delete(LEASES, LEASE).catch(() => undefined));

/** Records an Event. `namespace`: "shop" belongs to a tenant, who may write anything there. */
async function recordEvent(kind: string, name: string, namespace = "default"): Promise<void> {
  const involvedObject = { kind, name, apiVersion: "v1", namespace };
  const metadata = { namespace, name: `of-${kind.toLowerCase()}-${name}` };
  const event = { metadata, involvedObject, type: "Warning", reason: "Halted", message: `${kind} ${name} is halted` };
  await cluster.create(EVENTS, { ...event, lastTimestamp: NOW } as KubernetesObject);
}

/** Writes a Lease. `gates`: the feature gates that the pass announces; absent: it announces none. */
async function leave(spec: object | undefined, gates?: string): Promise<void> {
  const annotations = gates === undefined ? {} : { annotations: { "sidecarset.kruise.io/feature-gates": gates } };
  await cluster.create(LEASES, {
    metadata: { ...LEASE, ...annotations },
    ...(spec ? { spec } : {}),
  } as KubernetesObject);
}

const forbidding = (...plurals: readonly string[]): Cluster => {
  const refuse = () => Promise.reject(new KubeError("no", { code: 403, reason: "Forbidden" }));
  return {
    ...cluster,
    get: (resource, key) => (plurals.includes(resource.plural) ? refuse() : cluster.get(resource, key)),
    list: (resource, options) => (plurals.includes(resource.plural) ? refuse() : cluster.list(resource, options)),
  };
};

function context({ through = cluster, gates = {} }: { readonly through?: Cluster; readonly gates?: object } = {}) {
  const clock = { ...systemClock, epochMs: () => Date.parse(NOW) };
  const settings = { ...DEFAULT_ROLLOUT_SETTINGS, ...gates };
  return { cluster: through, clock, kruiseNamespace: KRUISE_NAMESPACE, settings, clusterName: "test-cluster" };
}

const detail = async (given: Parameters<typeof context>[0] = {}) => {
  const read = await readDetail(context(given), "proxy");
  if (!read) throw new Error("there is none");
  return read;
};

const explanation = async (pod: string, given: Parameters<typeof context>[0] = {}) => {
  const read = await readPodExplanation(context(given), "proxy", { namespace: NAMESPACE, name: pod });
  if (!read) throw new Error("there is none");
  return read;
};

const reasonsFor = async (...of: Parameters<typeof explanation>) =>
  (await explanation(...of)).steps.map(({ reason, verdict }) => `${reason} ${verdict}`);

describe("readOverview:", () => {
  const ROWS = [
    {
      name: "proxy",
      images: [`proxy ${imageOf(2)}`],
      matched: 3,
      updated: 0,
      ready: 2,
      updatedReady: 0,
      reason: "no pass has seen its last change yet",
    },
  ];
  const plain = { at: NOW, cluster: "test-cluster", idle: undefined, sets: ROWS, details: [] };

  it("the overview has a row for each SidecarSet and reads no pods", async () => {
    expect(await readOverview(context({ through: forbidding("pods") }))).toEqual(plain);
  });

  it("the overview says that no pass runs when the last pass is too old", async () => {
    await leave({ renewTime: "2029-12-31T23:56:59.000000Z" });
    expect(await readOverview(context())).toEqual({
      ...plain,
      idle: {
        reason: "TickNotRunning",
        kind: "trouble",
        title: "No pass has run since 2029-12-31T23:56:59.000000Z",
        text: "",
        next: "see that the schedule of the rollout function is on, or that serve runs with --tick; until then sidecarset tick makes one by hand",
        pods: [],
      },
    });
  });

  it("the overview does not mention passes when one ran recently, the Lease has no time, or reading it is forbidden", async () => {
    await leave({ renewTime: "2029-12-31T23:59:00.000000Z" });
    expect(await readOverview(context())).toEqual(plain);
    await cluster.delete(LEASES, LEASE);
    await leave(undefined);
    expect(await readOverview(context())).toEqual(plain);
    expect(await readOverview(context({ through: forbidding("leases") }))).toEqual(plain);
  });
});

it("readDetail returns undefined for a missing SidecarSet", async () => {
  expect(await readDetail(context(), "absent")).toBeUndefined();
});

it("the detail of a SidecarSet has its pods, also those without sidecars, and its Events", async () => {
  const { pods, reasons, ...read } = await detail();
  expect(read).toMatchObject({
    name: "proxy",
    at: NOW,
    verdict: "Updating",
    headline: "0 of 3 pods have the current version, 0 of them ready; 0 of at most 1 unavailable.",
    counts: { without: 1, waiting: 3 },
    revisions: [],
  });
  expect(pods.map(({ name, standing, why }) => [name, standing, why])).toEqual([
    ["bare", "without", "created after the SidecarSet, and not injected"],
    ["proxy-0", "waiting", ""],
    ["proxy-declines", "waiting", ""],
    ["proxy-down", "waiting", "main: ImagePullBackOff"],
  ]);
  expect(reasons.map(({ reason }) => reason)).toEqual(["WebhookMissed", "ChangeNotSeen"]);
  expect(read.events).toEqual([
    {
      at: NOW,
      isWarning: true,
      reason: "Halted",
      message: "SidecarSet proxy is halted",
      about: "SidecarSet default/proxy",
      count: 1,
    },
  ]);
});

it("the detail of a SidecarSet says that no pass runs", async () => {
  await leave({ renewTime: "2029-12-31T23:00:00.000000Z" });
  const { verdict, reasons } = await detail();
  expect([verdict, reasons[0]?.reason]).toEqual(["Blocked", "TickNotRunning"]);
});

it("the detail of a SidecarSet leaves out what the caller may not read", async () => {
  const { events, pods, reasons } = await detail({ through: forbidding("events", "leases", "namespaces") });
  expect([events, pods.length]).toEqual([undefined, 3]);
  expect(reasons.map(({ reason }) => reason)).toEqual(["ChangeNotSeen"]);
});

type Announced =
  | "without a Lease"
  | "that announce no gates"
  | "that announce the gate as off"
  | "that announce the gate as on";

/** The Lease's value of a feature gate counts. Without it the reader's own value does. */
const SETTINGS: readonly (readonly [Announced, boolean, boolean])[] = [
  ["without a Lease", false, false],
  ["without a Lease", true, true],
  ["that announce no gates", false, false],
  ["that announce no gates", true, true],
  ["that announce the gate as off", true, false],
  ["that announce the gate as on", false, true],
];

async function announce(announced: Announced, gate: string): Promise<void> {
  const texts = {
    "that announce no gates": undefined,
    "that announce the gate as off": "",
    "that announce the gate as on": `${gate}=true`,
  };
  if (announced !== "without a Lease") await leave({}, texts[announced]);
}

describe.each(SETTINGS)("with passes %s and the reader's own gate set to %s:", (announced, own, isOn) => {
  it("the detail counts the budget by the gate that passes announce, or else by the reader's gate", async () => {
    await announce(announced, "StrictMaxUnavailable");
    const { headline } = await detail({ gates: { StrictMaxUnavailable: own } });
    expect(headline).toBe(
      `0 of 3 pods have the current version, 0 of them ready; ${isOn ? 1 : 0} of at most 1 unavailable.`,
    );
  });

  it("the explanation of a pod follows the gate that passes announce, or else the reader's gate", async () => {
    await announce(announced, "PodOptOut");
    const steps = await reasonsFor("proxy-declines", { gates: { PodOptOut: own } });
    expect(steps[2]).toBe(isOn ? "OptedOut note" : "OptOutIgnored note");
  });
});

it("the reader's own gates count when reading the Lease is forbidden", async () => {
  await leave({}, "");
  const gates = { StrictMaxUnavailable: true, PodOptOut: true };
  const through = forbidding("leases");
  expect((await detail({ through, gates })).headline).toContain("1 of at most 1 unavailable");
  expect((await reasonsFor("proxy-declines", { through, gates }))[2]).toBe("OptedOut note");
});

it.each([
  ["pod", "proxy", "absent"],
  ["SidecarSet", "absent", "proxy-0"],
])("readPodExplanation returns undefined when the %s does not exist", async (_what, set, name) => {
  expect(await readPodExplanation(context(), set, { namespace: NAMESPACE, name })).toBeUndefined();
});

it("the explanation of a pod lists each rule with its verdict", async () => {
  await leave({ renewTime: "2029-12-31T23:59:30.000000Z" });
  expect(await explanation("proxy-down")).toEqual({
    at: NOW,
    sidecarSet: "proxy",
    namespace: NAMESPACE,
    name: "proxy-down",
    steps: [
      {
        reason: "WebhookNotRegistered",
        verdict: "note",
        message:
          "no webhook for pods is registered in the cluster, so no pod gets sidecars, unless files of API servers register it",
        hint: "register it: sidecarset webhooks --url URL | kubectl apply -f -; sidecarset check tries whether files do",
      },
      { reason: "SelectorMatched", verdict: "ok", message: "the selector matches the pod's labels" },
      {
        reason: "Injected",
        verdict: "ok",
        message: "the pod has the sidecars of proxy, as of 2025-06-01T00:00:00Z",
      },
      {
        reason: "OutOfDate",
        verdict: "note",
        message: "the pod has an older version, the newest is not recorded yet",
      },
      {
        reason: "NextInLine",
        verdict: "ok",
        message: "the pod is 1 of 3 that wait, the next pass updates it",
      },
      {
        reason: "ChangeNotSeen",
        verdict: "wait",
        message:
          "no pass has written that it saw the latest change (generation 2, seen 0): where passes run, their log says why",
      },
      { reason: "TickRunning", verdict: "ok", message: "a pass ran 30 seconds ago" },
    ],
  });
});

it("the explanation of a pod says whether the registered webhook is called for its namespace", async () => {
  const webhook = {
    name: "mpod.kb.io",
    clientConfig: { url: "https://127.0.0.1:1/mutate-pod" },
    rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": NAMESPACE } },
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    failurePolicy: "Ignore",
  };
  const registration = { metadata: { name: "registered" }, webhooks: [webhook] } as KubernetesObject;
  await cluster.create(MUTATING_WEBHOOK_CONFIGURATIONS, registration);
  expect((await reasonsFor("proxy-0"))[0]).toBe("WebhookAsked ok");
  expect((await reasonsFor("proxy-0", { through: forbidding("namespaces") }))[0]).toBe("NamespaceExcluded note");
  const unlisted = forbidding("mutatingwebhookconfigurations");
  expect((await reasonsFor("proxy-0", { through: unlisted }))[0]).toBe("WebhookUnknown note");
  await cluster.delete(MUTATING_WEBHOOK_CONFIGURATIONS, { name: "registered" });
});

it("the explanation of a pod names a canary that replaces its SidecarSet", async () => {
  const { metadata, spec } = sidecarSet("proxy", 1, {});
  const isCanary = { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "proxy" };
  const annotations = { ...metadata?.annotations, ...isCanary };
  const canary = { ...sidecarSet("canary", 1, {}), metadata: { name: "canary", annotations }, spec };
  await cluster.create<SidecarSet>(SIDECARSETS, canary);
  expect(await reasonsFor("proxy-0")).toContain("ReplacedByCanary note");
  await cluster.delete(SIDECARSETS, { name: "canary" });
  expect(await reasonsFor("proxy-0")).not.toContain("ReplacedByCanary note");
});
