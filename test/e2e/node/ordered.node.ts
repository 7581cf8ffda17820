/** Tests ordered sets with real volumes: the pods' files survive each change, and pods outlive their set. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { installedResource } from "../../../shared/install/manifests.ts";
import { type JsonPatchOperation, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { sendRaw } from "../../contract/raw.ts";
import { controlPlane, disturbRegistry } from "../support/access.ts";
import { clusterOf } from "../support/clients.ts";
import { orderedSets } from "../support/ordered-sets.ts";
import { removeAtEnd } from "../support/processes.ts";
import { isReady, type Scene } from "../support/scene.ts";
import { eventually } from "../support/until.ts";
import { runInside } from "./inside.ts";

const { pass, open } = orderedSets();
const COUNT = 2;
const VOLUMES = installedResource({ apiVersion: "v1", kind: "PersistentVolume" });
const SPEC = {
  replicas: COUNT,
  template: {
    spec: {
      containers: [{ name: "main", image: "app:1", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      readinessGates: [{ conditionType: "InPlaceUpdateReady" }],
    },
  },
  volumeClaimTemplates: [
    {
      metadata: { name: "data" },
      spec: { accessModes: ["ReadWriteOnce"], storageClassName: "", resources: { requests: { storage: "1Mi" } } },
    },
  ],
  updateStrategy: { type: "RollingUpdate", rollingUpdate: { podUpdatePolicy: "InPlaceIfPossible" } },
};

/** Creates folders on this machine, one for each future claim. */
async function createVolumes(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-volumes-"));
  removeAtEnd(folder);
  const cluster = clusterOf(controlPlane());
  for (let index = 0; index < COUNT; index += 1) {
    const name = `${folder.split("-").at(-1)?.toLowerCase()}-${index}`;
    onTestFinished(() => cluster.delete(VOLUMES, { name }).then(() => undefined));
    await cluster.create(VOLUMES, {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Mi" },
        hostPath: { path: join(folder, String(index)), type: "DirectoryOrCreate" },
      },
    } as KubernetesObject);
  }
}

const inPod = (scene: Scene, pod: string, command: string) =>
  runInside({ namespace: scene.name, pod, container: "main" }, command);

const set = (path: string, value: unknown): JsonPatchOperation => ({ op: "replace", path: `/spec/${path}`, value });

async function uids(scene: Scene): Promise<Readonly<Record<string, string>>> {
  const pods = await eventually(
    () => scene.pods(),
    (all) => expect(all.filter(isReady)).toHaveLength(all.length),
  );
  return Object.fromEntries(pods.map(({ metadata }) => [metadata?.name, metadata?.uid]));
}

it("a new image keeps pods and volumes, and a new environment or a scale down and up keeps the volumes", async () => {
  await createVolumes();
  const { scene, patch } = await open(SPEC);
  for (const pod of ["db-0", "db-1"]) await inPod(scene, pod, `touch /data/${pod}`);
  const before = await uids(scene);
  const kept = async () => {
    for (const pod of ["db-0", "db-1"]) expect(await inPod(scene, pod, "ls /data")).toBe(`${pod}\n`);
  };

  await patch(set("template/spec/containers/0/image", "app:2"));
  await pass();
  expect(await uids(scene)).toEqual(before);
  await kept();

  await patch({ op: "add", path: "/spec/template/spec/containers/0/env", value: [{ name: "A", value: "b" }] });
  await pass();
  const recreated = await uids(scene);
  expect(Object.keys(recreated).toSorted()).toEqual(["db-0", "db-1"]);
  expect(Object.values(recreated).filter((uid) => Object.values(before).includes(uid))).toEqual([]);
  await kept();

  await patch(set("replicas", 1));
  await pass();
  expect(Object.keys(await uids(scene))).toEqual(["db-0"]);
  await patch(set("replicas", COUNT));
  await pass();
  await scene.untilReady(COUNT);
  await kept();
});

it("an update ends in place when its image is taken back before it could be pulled", async () => {
  onTestFinished(() => disturbRegistry({ delay: 0 }));
  const { volumeClaimTemplates: _, ...spec } = SPEC;
  const containers = [{ name: "main", image: "app:1" }];
  const { scene, patch } = await open({ ...spec, template: { spec: { ...SPEC.template.spec, containers } } });
  const before = await uids(scene);
  await disturbRegistry({ delay: Number.POSITIVE_INFINITY });
  await patch(set("template/spec/containers/0/image", "app:taken-back"));
  await pass(false);
  const waiting = async () => (await scene.pods()).map(({ status }) => status?.containerStatuses?.[0]?.state?.waiting);
  await eventually(waiting, (states) => expect(states.filter(Boolean)).toHaveLength(1));
  await disturbRegistry({ delay: 0 });
  await patch(set("template/spec/containers/0/image", "app:1"));
  await pass();
  expect(await uids(scene)).toEqual(before);
  expect((await scene.pods()).filter(isReady)).toHaveLength(COUNT);
});

it("pods that a deleted set left behind belong to the next set of its name", async () => {
  await createVolumes();
  const { scene } = await open(SPEC);
  const before = await uids(scene);
  const key = { namespace: scene.name, name: "db" };
  const old = await scene.cluster.get<KubernetesObject & { readonly spec: object }>(STATEFUL_SETS, key);
  const path = `/apis/apps.kruise.io/v1beta1/namespaces/${scene.name}/statefulsets/db`;
  const deleted = await sendRaw(controlPlane(), { method: "DELETE", path, body: { propagationPolicy: "Orphan" } });
  expect(deleted.code).toBe(200);
  const gone = () =>
    scene.cluster.get(STATEFUL_SETS, key).then(
      () => "there",
      () => "gone",
    );
  await eventually(gone, (where) => expect(where).toBe("gone"));
  const { apiVersion, kind, spec } = old;
  await scene.cluster.create(STATEFUL_SETS, { apiVersion, kind, metadata: key, spec } as KubernetesObject);
  await pass();
  expect(await uids(scene)).toEqual(before);
  const pods = await scene.pods();
  const next = await scene.cluster.get<KubernetesObject>(STATEFUL_SETS, key);
  expect(pods.map(({ metadata }) => metadata?.ownerReferences?.map(({ uid }) => uid))).toEqual(
    Array(COUNT).fill([next.metadata?.uid]),
  );
  expect(pods.map(({ status }) => status?.containerStatuses?.[0]?.restartCount)).toEqual(Array(COUNT).fill(0));
});
