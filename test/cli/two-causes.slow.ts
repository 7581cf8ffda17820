/** Tests two causes in one rollout on the embedded cluster: every command names both. */
import { expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { EVENTS, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { deploy, eventually, KRUISE_NAMESPACE, readPods, readSet, release } from "../controller/fixture.ts";
import { onCluster } from "./on-cluster.ts";

const { cluster, cli } = onCluster();

const pass = () =>
  runPass(cluster(), {
    deadlineMs: 600_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    follow: false,
    settings: DEFAULT_ROLLOUT_SETTINGS,
  });

const change = (name: string, body: object) =>
  cluster().patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body });
const annotate = (name: string, annotations: Readonly<Record<string, string>>) =>
  change(name, { metadata: { annotations } });
const conditionOf = async (name: string, type: string) =>
  (await readSet(cluster(), name)).status?.conditions?.find((one) => one.type === type);

interface EventObject extends KubernetesObject {
  readonly reason?: string;
  readonly regarding?: { readonly name?: string };
  readonly involvedObject?: { readonly name?: string };
}

const isFailing = ({ status }: Pod) =>
  status?.containerStatuses?.some(({ state }) => state?.waiting?.reason === "ImagePullBackOff") === true;

/** Releases an image that cannot be pulled; one pod's kubelet reports it. */
async function releaseBadImage(name: string, strategy: UpdateStrategy = {}): Promise<void> {
  await release(cluster(), name, 2, { image: "registry.example/proxy:does-not-exist", maxUnavailable: 1, ...strategy });
  await pass();
  await eventually(async () => {
    if (!(await readPods(cluster(), name)).some(isFailing)) throw new Error("no pod fails yet");
  });
}

const OFF: Readonly<Record<string, UpdateStrategy>> = {
  paused: { paused: true },
  NotUpdate: { type: "NotUpdate" },
};

it.each(Object.entries(OFF))(
  "a halted rollout that becomes %s is still called halted by every command",
  async (word, strategy) => {
    const name = `halted-${word.toLowerCase()}`;
    await deploy(cluster(), name, 3, {});
    await pass();
    await annotate(name, { "sidecarset.kruise.io/halt-on": "0" });
    await releaseBadImage(name);
    await pass();
    await change(name, { spec: { updateStrategy: strategy } });
    await pass();
    const why = word === "paused" ? "StrategyPaused" : "StrategyNotUpdate";
    expect(await conditionOf(name, "Blocked")).toMatchObject({ status: "True", reason: "Halted" });
    expect(await conditionOf(name, "Ready")).toMatchObject({ status: "False", reason: "Halted" });
    expect((await cli("status", name)).stdout).toMatch(
      word === "paused" ? /halted, .*; paused;/ : /halted, .*NotUpdate;/,
    );
    expect((await cli("status", name, "-w")).code).toBe(3);
    expect((await cli("history", name)).stdout).toMatch(/2 \*.* halted /);
    const explained = (await cli("explain", name)).stdout;
    expect(explained).toMatch(new RegExp(`RolloutHalted: [\\s\\S]*${why}: `));
    const old = (await readPods(cluster(), name)).find((pod) => !isFailing(pod))?.metadata?.name;
    expect((await cli("explain", `pod/shop/${old}`)).stdout).toMatch(new RegExp(`RolloutHalted: [\\s\\S]*${why}: `));
    const { findings } = JSON.parse((await cli("check", "-o", "json")).stdout);
    expect(findings).toContainEqual(
      expect.objectContaining({
        id: "RolloutBlocked",
        about: `SidecarSet ${name}`,
        hint: expect.stringMatching(/^set another image|^sidecarset undo/),
      }),
    );
  },
);

it("a SidecarSet held by its partition is not Ready while a pod of an older release cannot pull its image", async () => {
  await deploy(cluster(), "left", 3, {});
  await pass();
  await releaseBadImage("left");
  await release(cluster(), "left", 3, { partition: "100%" });
  await pass();
  const bad = (await readPods(cluster(), "left")).find(isFailing)?.metadata?.name;
  expect(await conditionOf("left", "Ready")).toMatchObject({ status: "False", reason: "Degraded" });
  expect((await conditionOf("left", "Degraded"))?.message).toContain(`shop/${bad} (proxy: ImagePullBackOff)`);
  expect((await cli("status", "left", "-w")).code).toBe(3);
  const { stdout } = await cli("status", "left");
  expect(stdout).toContain(`1 pod is down since an older release: shop/${bad}`);
  expect(stdout).toContain(`shop/${bad}  proxy: ImagePullBackOff, waiting for its turn`);
  expect((await cli("explain", "left")).stdout).toContain("✗ ContainerFailing: 1 pod is down since an older release");
  expect((await cli("explain", `pod/shop/${bad}`)).stdout).toContain("ContainerFailing: proxy: ImagePullBackOff, with");
  const { findings } = JSON.parse((await cli("check", "-o", "json")).stdout);
  expect(findings).toContainEqual(expect.objectContaining({ id: "PodsFail", about: "SidecarSet left" }));
});

it("check suggests undo and then resume if a bad image makes pods of a paused rollout fail", async () => {
  await deploy(cluster(), "advised", 3, {});
  await pass();
  await releaseBadImage("advised");
  await change("advised", { spec: { updateStrategy: { paused: true } } });
  await pass();
  const { findings } = JSON.parse((await cli("check", "-o", "json")).stdout);
  expect(findings).toContainEqual(
    expect.objectContaining({
      id: "PodsFail",
      about: "SidecarSet advised",
      hint: expect.stringMatching(/^(sidecarset undo advised|set another image).*; then sidecarset resume advised;/),
    }),
  );
});

it("status -w of a rollout whose maxUnavailable is 0 ends with 3, and explain says what to set", async () => {
  await deploy(cluster(), "zero", 2, {});
  await pass();
  await release(cluster(), "zero", 2, { maxUnavailable: 0 });
  await pass();
  expect(await conditionOf("zero", "Ready")).toMatchObject({ status: "False", reason: "Paused" });
  expect((await cli("status", "zero", "-w", "--timeout", "10m")).code).toBe(3);
  const advice = "set spec.updateStrategy.maxUnavailable to 1 or more";
  expect((await cli("explain", "zero")).stdout).toMatch(new RegExp(`✗ BudgetUsed: .*\\n.*${advice}`));
  expect((await cli("explain", "pod/shop/zero-0")).stdout).toMatch(new RegExp(`✗ BudgetUsed: .*\\n.*${advice}`));
});

it("a SidecarSet that its partition holds gets the Event RolloutFinished when its last old pod is gone", async () => {
  await deploy(cluster(), "emptied", 2, {});
  await pass();
  await release(cluster(), "emptied", 2, { partition: "50%", maxUnavailable: 2 });
  await pass();
  await eventually(async () => {
    await pass();
    expect((await conditionOf("emptied", "Ready"))?.reason).toBe("HeldByPartition");
  });
  const finished = async () => {
    const { items } = await cluster().list<EventObject>(EVENTS, { namespace: "default" });
    return items.filter(
      ({ regarding, involvedObject = regarding, reason }) =>
        involvedObject?.name === "emptied" && reason === "RolloutFinished",
    );
  };
  expect(await finished()).toEqual([]);
  for (const { metadata } of await readPods(cluster(), "emptied"))
    await cluster().delete(PODS, { namespace: "shop", name: metadata?.name ?? "" }, {});
  await eventually(async () => expect(await readPods(cluster(), "emptied")).toEqual([]));
  await pass();
  expect(await finished()).toHaveLength(1);
  expect((await cli("status")).stdout).toMatch(/emptied .* it selects no pod that has its sidecars/);
});

it("history does not call a release rolling out if the SidecarSet no longer selects a pod", async () => {
  await deploy(cluster(), "excluded", 1, {});
  await pass();
  await release(cluster(), "excluded", 2, { paused: true });
  await pass();
  await change("excluded", { spec: { namespaceSelector: { matchLabels: { team: "none" } } } });
  await pass();
  expect(await conditionOf("excluded", "Ready")).toMatchObject({ status: "True", reason: "Ready" });
  expect((await cli("history", "excluded")).stdout).toMatch(/2 \*.* no pods /);
  const { stdout } = await cli("explain", "excluded");
  expect(stdout).toContain("NoPods: its selector matches no pod that runs in a namespace that its namespaceSelector");
  const ofPod = (await cli("explain", "pod/shop/excluded-0")).stdout;
  expect(ofPod).toContain("so passes leave its sidecars as they are");
  expect(ofPod).not.toContain("BudgetUsed");
});
