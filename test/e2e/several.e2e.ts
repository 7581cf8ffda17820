/** Tests several SidecarSets on one pod, one SidecarSet in several namespaces, and both versions of the API. */
import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { UPGRADABLE_CONDITION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { NAMESPACES } from "../../shared/kube/port.ts";
import { scenes } from "./support/open-scene.ts";
import { atMost, imageOf, OLDER_SIDECARSETS, type Scene, SIDECAR, setImage } from "./support/scene.ts";
import { eventually } from "./support/until.ts";

const openScene = scenes();

const AT_ONCE = { type: "RollingUpdate", maxUnavailable: "100%" };
const BY_TWO = { type: "RollingUpdate", maxUnavailable: 2 };

function upgradableMessage({ status }: Pod): unknown {
  const { message = "" } = status?.conditions?.find(({ type }) => type === UPGRADABLE_CONDITION) ?? {};
  return JSON.parse(message);
}

/** The condition is written after the pod's patch. */
const untilSaid = (scene: Scene, said: Readonly<Record<string, boolean>>) =>
  eventually(
    () => scene.pods(),
    (pods) => expect(pods.map(upgradableMessage)).toEqual(pods.map(() => said)),
  );

it("SidecarSets of the same pods roll out at once, each within its own budget", async () => {
  const scene = await openScene({ updateStrategy: BY_TWO });
  const others = ["log", "mesh"].map((name) => ({ name: `${scene.name}-${name}`, container: name }));
  for (const { name, container } of others)
    await scene.createSet(name, {
      containers: [{ name: container, image: `${container}:v1` }],
      updateStrategy: BY_TWO,
    });
  const names = [scene.name, ...others.map(({ name }) => name)];
  await scene.deploy(8);
  for (const name of names) await scene.untilSettled(name);
  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  for (const { name, container } of others) await scene.patchOther(name, setImage(`${container}:v2`));
  for (const name of names) await scene.untilUpdated(8, name);

  for (const pod of await scene.pods())
    expect(["agent", "log", "mesh"].map((name) => imageOf(pod, name))).toEqual(["agent:v2", "log:v2", "mesh:v2"]);
  await untilSaid(scene, Object.fromEntries(names.map((name) => [name, true])));
  expect(await scene.record(since)).toEqual({
    maxUnavailable: 6,
    maxUnavailableObserved: atMost(6),
    appContainerRestarts: 0,
    podPatches: 24,
  });
});

it("a SidecarSet that is stuck or cannot be upgraded in place delays no other SidecarSet of the same pods", async () => {
  const scene = await openScene({ updateStrategy: AT_ONCE });
  const other = `${scene.name}-fixed`;
  await scene.createSet(other, { containers: [{ name: "mesh", image: "mesh:v1" }], updateStrategy: AT_ONCE });
  await scene.deploy(3);
  await scene.untilSettled(other);
  await scene.patchOther(other, { op: "add", path: "/spec/containers/0/args", value: ["-v"] });
  expect((await scene.untilSettled(other)).why).toMatch(/3 cannot be .* spec\.containers\{mesh\}\.args$/);
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(3);
  await untilSaid(scene, { [other]: false, [scene.name]: true });
});

it("the selected namespaces roll out together, and a namespace that is selected later follows", async () => {
  const scene = await openScene({ selector: { matchLabels: { scene: "none" } } });
  const [first, second, third] = ["1", "2", "3"].map((number) => `${scene.name}-${number}`) as [string, string, string];
  const team = { team: scene.name };
  for (const name of [first, second, third]) await scene.createNamespace(name, team);
  const set = `${scene.name}-all`;
  await scene.createSet(set, { namespaceSelector: { matchLabels: team }, updateStrategy: AT_ONCE });
  const nobody = { namespace: scene.name };
  expect((await scene.createPod("one", {}, nobody)).spec.containers).toHaveLength(1);
  for (const namespace of [first, second, third])
    expect((await scene.createPod("one", {}, { namespace })).spec.containers).toHaveLength(2);
  for (const namespace of [first, second, third]) await scene.untilReady(1, namespace);

  const setTeam = (name: string, value: string | null) =>
    scene.cluster.patch(NAMESPACES, { name }, { type: "merge", body: { metadata: { labels: { team: value } } } });
  await setTeam(third, null);
  await scene.patchOther(set, setImage("agent:v2"));
  for (const namespace of [first, second]) await scene.untilUpdated(1, set, namespace);
  expect((await scene.untilSettled(set)).status).toMatchObject({ matchedPods: 2, updatedPods: 2 });
  expect((await scene.pods(third)).map((pod) => imageOf(pod, "agent"))).toEqual(["agent:v1"]);
  await setTeam(third, scene.name);
  await scene.untilUpdated(1, set, third);
});

it("a v1alpha1 SidecarSet with a namespace is rolled out, patched and read as v1alpha1", async () => {
  const scene = await openScene({ selector: { matchLabels: { scene: "none" } } });
  const name = `${scene.name}-older`;
  await scene.createOlderSet(name, {
    namespace: scene.name,
    selector: { matchLabels: scene.labels },
    containers: [SIDECAR],
    updateStrategy: { type: "RollingUpdate", maxUnavailable: "50%", partition: 1 },
  });
  await scene.deploy(4);
  await scene.untilSettled(name);
  const since = await scene.now();
  const patch = (path: string, value: unknown) =>
    scene.cluster.patch<SidecarSet>(
      OLDER_SIDECARSETS,
      { name },
      {
        type: "json",
        operations: [{ op: "replace", path, value }],
      },
    );
  await patch("/spec/containers/0/image", "agent:v2");
  await scene.untilUpdated(3, name);
  expect((await scene.untilSettled(name)).why).toMatch(/partition keeps 1 at the old revision/);
  await patch("/spec/updateStrategy/partition", 0);
  await scene.untilUpdated(4, name);
  await scene.untilSettled(name);
  expect(await scene.record(since)).toMatchObject({ maxUnavailableObserved: atMost(2), podPatches: 4 });

  const older = await scene.cluster.get<SidecarSet>(OLDER_SIDECARSETS, { name });
  expect(older).toMatchObject({
    apiVersion: "apps.kruise.io/v1alpha1",
    spec: { containers: [{ image: "agent:v2" }] },
    status: { matchedPods: 4, updatedPods: 4, updatedReadyPods: 4 },
  });
  expect((await scene.set(name)).spec.namespaceSelector).toEqual({
    matchLabels: { "kubernetes.io/metadata.name": scene.name },
  });
});
