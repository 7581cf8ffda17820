/** Follows a new version of a SidecarSet to running pods, on a real control plane. */
import { expect, it } from "vitest";
import type { Pod, Volume } from "../../shared/api/kubernetes.ts";
import { UPGRADABLE_CONDITION } from "../../shared/api/names.ts";
import type { SidecarContainer } from "../../shared/api/sidecarset.ts";
import { CONFIG_MAPS, CONTROLLER_REVISIONS, EVENTS, PODS } from "../../shared/kube/port.ts";
import { scenes } from "./support/open-scene.ts";
import { atMost, imageOf, isReady, type Scene, SIDECAR, setImage } from "./support/scene.ts";
import { eventually } from "./support/until.ts";
import { runsFrom } from "./support/versions.ts";

const openScene = scenes();

const AT_ONCE = { type: "RollingUpdate", maxUnavailable: "100%" };
const BY_ONE = { type: "RollingUpdate", maxUnavailable: 1 };

async function images(scene: Scene): Promise<readonly (string | undefined)[]> {
  return (await scene.pods()).map((pod) => imageOf(pod, "agent")).toSorted();
}

it("pods are updated in place, maxUnavailable at a time, down to the partition", async () => {
  const updateStrategy = { type: "RollingUpdate", maxUnavailable: 2, partition: 2 };
  const scene = await openScene({ updateStrategy });
  const before = await scene.deploy(6);
  await scene.untilSettled();
  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(4);
  expect((await scene.untilSettled()).why).toMatch(/partition keeps 2 at the old revision/);
  await scene.patchSet({ op: "replace", path: "/spec/updateStrategy/partition", value: 0 });
  const after = await scene.untilUpdated(6);
  const uids = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata?.uid);
  expect(uids(after)).toEqual(uids(before));
  expect(await scene.record(since)).toEqual({
    maxUnavailable: 2,
    maxUnavailableObserved: atMost(2),
    appContainerRestarts: 0,
    podPatches: 6,
  });
});

it("no pod is updated while the SidecarSet is paused", async () => {
  const scene = await openScene({ updateStrategy: { ...AT_ONCE, paused: true } });
  await scene.deploy(3);
  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  expect((await scene.untilSettled()).why).toMatch(/^paused; 0 of 3/);
  expect((await scene.record(since)).podPatches).toBe(0);
  await scene.patchSet({ op: "replace", path: "/spec/updateStrategy/paused", value: false });
  await scene.untilUpdated(3);
});

it("only the selected pods are updated, and then all pods", async () => {
  const selector = { matchLabels: { ring: "canary" } };
  const scene = await openScene({ updateStrategy: { ...AT_ONCE, selector } });
  const [first] = await scene.deploy(3);
  await scene.patchPod(first?.metadata?.name ?? "", { metadata: { labels: { ring: "canary" } } });
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(1);
  await scene.untilSettled();
  expect(await images(scene)).toEqual(["agent:v1", "agent:v1", "agent:v2"]);
  await scene.patchSet({ op: "remove", path: "/spec/updateStrategy/selector" });
  await scene.untilUpdated(3);
});

it("if more than the image changed no pod is updated, each pod says so, and the report names the change", async () => {
  const scene = await openScene({ updateStrategy: BY_ONE });
  await scene.deploy(4);
  await scene.untilSettled();
  const env = [{ name: "A", value: "b" }];
  await scene.patchSet(setImage("agent:v2"), { op: "add", path: "/spec/containers/0/env", value: env });
  expect((await scene.untilSettled()).why).toMatch(
    /; 4 cannot be upgraded in place, since more than images changed: spec\.containers\{agent\}\.env$/,
  );
  for (const pod of await scene.pods()) {
    const condition = pod.status?.conditions?.find(({ type }) => type === UPGRADABLE_CONDITION);
    const message = `{"${scene.name}":false}`;
    expect(condition).toMatchObject({ status: "False", reason: "UpdateImmutableField", message });
  }
  expect(await images(scene)).toEqual(Array(4).fill("agent:v1"));
  const { items } = await scene.cluster.list(EVENTS, { fieldSelector: `involvedObject.name=${scene.name}` });
  // A pass that saw its pods become ready one by one has also reported that.
  const others = (items as readonly { readonly reason?: string }[]).filter(
    ({ reason }) => reason !== "RolloutStarted" && reason !== "RolloutFinished",
  );
  expect(others).toMatchObject([{ reason: "NotUpgradablePods", type: "Normal" }]);
});

it("a hot upgrade starts the new container beside the old one and empties the old one, also on the way back", async () => {
  const upgradeStrategy = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "empty:v1" };
  const scene = await openScene({ containers: [{ ...SIDECAR, upgradeStrategy }], updateStrategy: AT_ONCE });
  await scene.deploy(2);
  await scene.untilSettled();
  const since = await scene.now();
  const slots = async () => (await scene.pods()).map((pod) => `${imageOf(pod, "agent-1")} ${imageOf(pod, "agent-2")}`);
  for (const [image, wanted] of [
    ["agent:v2", "empty:v1 agent:v2"],
    ["agent:v3", "agent:v3 empty:v1"],
  ] as const) {
    await scene.patchSet(setImage(image));
    await eventually(slots, (all) => expect(all).toEqual([wanted, wanted]));
    await scene.untilUpdated(2);
    await scene.untilSettled();
  }
  expect(await scene.record(since)).toMatchObject({ appContainerRestarts: 0, podPatches: 8 });
});

it("pods that are deleted and recreated during a rollout do not block it", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } });
  await scene.deploy(8);
  await scene.untilSettled();
  await scene.patchSet(setImage("agent:v2"));
  const updated = await eventually(
    () => scene.updated(),
    (pods) => expect(pods).not.toEqual([]),
  );
  const names = [...updated, ...(await scene.pods())].map(({ metadata }) => metadata?.name ?? "");
  const deleted = [...new Set(names)].slice(0, 4);
  for (const name of deleted) await scene.cluster.delete(PODS, { namespace: scene.name, name });
  const after = await scene.untilUpdated(8);
  expect(after.filter(({ metadata }) => deleted.includes(metadata?.name ?? ""))).toEqual([]);
});

it("pods of a SidecarSet that is deleted during a rollout stay as they are, and a new SidecarSet of its name takes them over", async () => {
  const scene = await openScene({ updateStrategy: BY_ONE });
  await scene.deploy(4);
  await scene.untilSettled();
  // The first updated pod holds the others back.
  await scene.patchSet(setImage("agent:never-ready"));
  await scene.untilTouched(1);
  await scene.deleteSet(scene.name);
  const ledger = { namespace: "kruise-system", name: `sidecarset-ledger-${scene.name}` };
  const labelSelector = `kruise.io/sidecarset-name=${scene.name}`;
  const left = async () => [
    ...(await scene.cluster.list(CONTROLLER_REVISIONS, { labelSelector })).items,
    ...(await scene.cluster.list(CONFIG_MAPS, { namespace: ledger.namespace })).items.filter(
      ({ metadata }) => metadata?.name === ledger.name,
    ),
  ];
  await eventually(left, (all) => expect(all).toEqual([]));
  expect(await images(scene)).toEqual(["agent:never-ready", ...Array(3).fill("agent:v1")]);
  expect((await scene.pods()).filter(isReady)).toHaveLength(3);
  expect((await scene.createPod("new")).spec.containers).toHaveLength(1);

  await scene.createSet(scene.name, { containers: [{ ...SIDECAR, image: "agent:v2" }], updateStrategy: BY_ONE });
  await scene.untilUpdated(4);
});

/** Volume sources that Kubernetes 1.35 and 1.37 added, and one for a file of variables. */
const newVolumes = (prefix: string) => [
  { name: `${prefix}-file`, emptyDir: {} },
  { name: `${prefix}-image`, image: { reference: "files:1", pullPolicy: "IfNotPresent" } },
  {
    name: `${prefix}-trust`,
    projected: {
      defaultMode: 420,
      sources: [
        { podCertificate: { signerName: "example.com/pods", keyType: "ED25519", credentialBundlePath: "bundle" } },
        { clusterTrustBundle: { signerName: "example.com/pods", path: "ca", optional: true } },
      ],
    },
  },
];
/** Fields of a container that Kubernetes 1.32 does not know, with the values that it stores. */
const newFields = (prefix: string) => ({
  restartPolicy: "Always",
  restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [88] } }],
  resizePolicy: [{ resourceName: "cpu", restartPolicy: "NotRequired" }],
  env: [
    { name: "a b", value: "1" },
    {
      name: "OF_FILE",
      valueFrom: { fileKeyRef: { volumeName: `${prefix}-file`, path: "x", key: "A", optional: true } },
    },
  ],
  lifecycle: { preStop: { sleep: { seconds: 0 } } },
  volumeMounts: newVolumes(prefix).map(({ name }) => ({ name, mountPath: `/${name}` })),
});

it.runIf(runsFrom("1.37"))(
  "pod fields that Kubernetes 1.33 to 1.37 added stay in app and sidecar through injection and an update in place",
  async () => {
    const ofSidecar = { ...newFields("agent"), shareVolumePolicy: { type: "disabled" } };
    const volumes = newVolumes("agent") as object[] as Volume[];
    const scene = await openScene({
      containers: [{ ...SIDECAR, ...ofSidecar } as SidecarContainer],
      volumes,
      updateStrategy: AT_ONCE,
    });
    const ofPod = { hostnameOverride: "app.example", resources: { requests: { cpu: "500m", memory: "64Mi" } } };
    const containers = [{ name: "main", image: "app:1", ...newFields("app") }];
    const before = await scene.deploy(2, { ...ofPod, containers, volumes: newVolumes("app") });
    for (const { spec } of before) {
      const named = (name: string) => spec.containers.find((one) => one.name === name);
      expect(spec).toMatchObject(ofPod);
      expect(named("main")).toMatchObject({
        ...newFields("app"),
        volumeMounts: expect.arrayContaining(newFields("app").volumeMounts),
      });
      expect(named("agent")).toMatchObject({
        ...newFields("agent"),
        env: expect.arrayContaining(newFields("agent").env),
        volumeMounts: expect.arrayContaining(newFields("agent").volumeMounts),
      });
      expect(spec.volumes).toMatchObject(expect.arrayContaining([...newVolumes("app"), ...newVolumes("agent")]));
    }
    await scene.patchSet(setImage("agent:v2"));
    const after = await scene.untilUpdated(2);
    const specs = (pods: readonly Pod[]) => JSON.stringify(pods.map(({ spec }) => spec));
    expect(specs(after)).toBe(specs(before).replaceAll("agent:v1", "agent:v2"));
  },
);
