/** Reads the manifest files that the demo applies, and says where in which file something is wrong. */

import { CliError } from "../../functions/terminal/error.ts";
import { type ReadObject, readObjects } from "../../functions/terminal/read-objects.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { CONFIG_MAPS, NAMESPACES, PODS, type Resource, SIDECARSETS } from "../../shared/kube/port.ts";

export interface Manifest {
  readonly resource: Resource;
  readonly object: KubernetesObject & { readonly metadata: { readonly name?: string; readonly namespace?: string } };
}

const apps = (plural: string): Resource => ({ group: "apps", version: "v1", plural, namespaced: true });

/** Kinds in the order of their creation: needed ones come first. */
const KINDS: ReadonlyMap<string, Resource> = new Map([
  ["v1 Namespace", NAMESPACES],
  ["v1 ConfigMap", CONFIG_MAPS],
  ["v1 Secret", { group: "", version: "v1", plural: "secrets", namespaced: true }],
  ["apps.kruise.io/v1beta1 SidecarSet", SIDECARSETS],
  ["apps.kruise.io/v1alpha1 SidecarSet", { ...SIDECARSETS, version: "v1alpha1" }],
  ["apps/v1 Deployment", apps("deployments")],
  ["apps/v1 ReplicaSet", apps("replicasets")],
  ["apps/v1 StatefulSet", apps("statefulsets")],
  ["v1 Pod", PODS],
]);

function identify({ object, place }: ReadObject): Manifest {
  const { apiVersion = "(no apiVersion)", kind = "(no kind)", metadata } = object;
  const resource = KINDS.get(`${apiVersion} ${kind}`);
  if (resource === undefined)
    throw new CliError(
      `${place}: ${apiVersion} ${kind} is not a kind that the demo runs; it takes ${[...KINDS.keys()].join(", ")}`,
    );
  if (!metadata?.name && kind !== "Pod") throw new CliError(`${place}: ${kind} has no metadata.name; give it one`);
  return { resource, object: object as Manifest["object"] };
}

/** All objects of all files, with needed ones first. @throws CliError naming file, line and column */
export async function readManifests(files: readonly string[]): Promise<readonly Manifest[]> {
  const manifests = (await readObjects(files)).map(identify);
  const order = [...KINDS.values()];
  return manifests.toSorted((a, b) => order.indexOf(a.resource) - order.indexOf(b.resource));
}
