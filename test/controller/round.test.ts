/** What one round over a SidecarSet reports about hot upgrades, whose old container is emptied in the end. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, EVENTS, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  allReady,
  imageOf,
  injectedPod,
  KRUISE_NAMESPACE,
  NAMESPACE,
  sidecarSet,
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

const EMPTY = "registry.example/empty:1";

/** One pod, whose new container runs beside the old one. */
async function upgradeHot(name: string): Promise<void> {
  const upgradeStrategy = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: EMPTY };
  const base = sidecarSet(name, 1, {});
  const specOf = (version: number) => {
    const containers = [{ name: "proxy", upgradeStrategy, image: imageOf(version) }];
    return { ...base.spec, containers };
  };
  await cluster.create<SidecarSet>(SIDECARSETS, { ...base, spec: specOf(1) });
  const { metadata, spec } = injectedPod(name, `${name}-0`);
  const working = { "kruise.io/sidecarset-working-hotupgrade-container": '{"proxy":"proxy-1"}' };
  const containers = [
    ...spec.containers.slice(0, 1),
    { name: "proxy-1", image: imageOf(1) },
    { name: "proxy-2", image: EMPTY },
  ];
  const annotations = { ...metadata?.annotations, ...working };
  await cluster.create<Pod>(PODS, { metadata: { ...metadata, annotations }, spec: { containers } });
  await allReady(cluster, name);
  const { annotations: released } = sidecarSet(name, 2, {}).metadata ?? {};
  const body = { metadata: { annotations: released }, spec: specOf(2) };
  await cluster.patch(SIDECARSETS, { name }, { type: "merge", body });
  await round(name, cluster);
  await allReady(cluster, name);
}

async function round(name: string, through: Cluster) {
  const { sidecarSets } = await runPass(through, {
    deadlineMs: 20_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    sidecarSet: name,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: false,
  });
  return sidecarSets[0]?.tally;
}

interface Told extends KubernetesObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly involvedObject?: { readonly name?: string };
}

async function toldOf(pod: string) {
  const { items } = await cluster.list<Told>(EVENTS, { namespace: NAMESPACE });
  const own = items.filter(({ involvedObject, reason }) => involvedObject?.name === pod && reason?.startsWith("Reset"));
  return own.map(({ type, reason, message }) => ({ type, reason, message }));
}

it.each<[string, Error | undefined, object]>([
  ["soft", undefined, { type: "Normal", reason: "ResetContainerSucceed" }],
  [
    "firm",
    new KubeError("a policy says no", { code: 403, reason: "Forbidden" }),
    {
      type: "Warning",
      reason: "ResetContainerFailed",
      message: "reset sidecar container image empty failed: a policy says no",
    },
  ],
])("that the old container of a pod was emptied, or why it could not be: %s", async (name, refusal, event) => {
  await upgradeHot(name);
  const through: Cluster = {
    ...cluster,
    patch: (resource, key, patch, options) =>
      refusal && JSON.stringify(patch).includes(EMPTY)
        ? Promise.reject(refusal)
        : cluster.patch(resource, key, patch, options),
  };
  expect(await round(name, through)).toMatchObject({ flipped: refusal ? 0 : 1 });
  expect(await toldOf(`${name}-0`)).toMatchObject([event]);
});
