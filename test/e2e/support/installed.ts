/** Installs the objects that the functions need in a cluster, and removes them. */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../../shared/api/names.ts";
import { installedResource } from "../../../shared/install/manifests.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, SIDECARSETS } from "../../../shared/kube/port.ts";
import { until } from "./until.ts";

/** Creates objects. Equal objects of an earlier test file stay. */
export async function createAll(cluster: Cluster, objects: readonly KubernetesObject[]): Promise<void> {
  for (const object of objects) {
    await cluster.create(installedResource(object), object).catch((error: unknown) => {
      if (!isKubeError(error, 409)) throw error;
    });
  }
}

/** Removes objects, a definition after all of its objects. */
export async function removeAll(cluster: Cluster, objects: readonly KubernetesObject[]): Promise<void> {
  for (const object of objects) {
    const { name = "", namespace } = object.metadata ?? {};
    const key = { name, ...(namespace === undefined ? {} : { namespace }) };
    const isGone = () =>
      cluster.get(installedResource(object), key).then(
        () => false,
        (error: unknown) => isKubeError(error, 404),
      );
    await cluster.delete(installedResource(object), key);
    await until(`${key.name} is gone`, isGone);
  }
}

/** Waits until registrations are in force: a dry run of a SidecarSet then gets its hash. */
export async function untilInForce(cluster: Cluster): Promise<void> {
  const probe = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: "probe" },
    spec: { selector: { matchLabels: { probe: "x" } }, containers: [{ name: "probe", image: "probe:1" }] },
  };
  const hash = async () => {
    const { metadata } = await cluster.create<KubernetesObject>(SIDECARSETS, probe, { dryRun: true });
    return metadata?.annotations?.[HASH_ANNOTATION];
  };
  await until("webhooks in force", async () => (await hash()) !== undefined);
}
