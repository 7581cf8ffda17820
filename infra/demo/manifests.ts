/** Reads the manifest files that the demo applies, and says where in which file something is wrong. */
import { readFile } from "node:fs/promises";
import { LineCounter, parseAllDocuments } from "yaml";
import { CliError } from "../../functions/cli-error.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { CONFIG_MAPS, NAMESPACES, PODS, type Resource, SIDECARSETS } from "../../shared/kube/port.ts";

export interface Manifest {
  readonly resource: Resource;
  readonly object: KubernetesObject & { readonly metadata: { readonly name?: string; readonly namespace?: string } };
}

const apps = (plural: string): Resource => ({ group: "apps", version: "v1", plural, namespaced: true });

/** In the order in which they are applied: what others need comes first. */
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

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new CliError(
      `${file}: cannot be read (${(cause as NodeJS.ErrnoException).code}); check the path given to -f`,
      { cause },
    );
  }
}

function identify(value: unknown, place: string): Manifest {
  const object = value as Manifest["object"] | null;
  if (typeof object !== "object" || Array.isArray(object))
    throw new CliError(`${place}: not a Kubernetes object; expected apiVersion, kind and metadata`);
  const kind = `${object?.apiVersion ?? "(no apiVersion)"} ${object?.kind ?? "(no kind)"}`;
  const resource = KINDS.get(kind);
  if (object === null || resource === undefined)
    throw new CliError(`${place}: ${kind} is not a kind that the demo runs; it takes ${[...KINDS.keys()].join(", ")}`);
  if (!object.metadata?.name && object.kind !== "Pod")
    throw new CliError(`${place}: ${object.kind} has no metadata.name; give it one`);
  return { resource, object };
}

function parseFile(file: string, text: string): Manifest[] {
  const lines = new LineCounter();
  const manifests: Manifest[] = [];
  for (const document of [parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })].flat()) {
    const place = (offset: number) => `${file}:${lines.linePos(offset).line}:${lines.linePos(offset).col}`;
    const [error] = document.errors;
    if (error)
      throw new CliError(`${place(error.pos[0])}: ${error.message.replace(/\s+/g, " ")}; correct the YAML there`);
    const value: unknown = document.toJS();
    if (value !== null) manifests.push(identify(value, place(document.contents?.range?.[0] ?? 0)));
  }
  return manifests;
}

/**
 * All objects of all files, sorted so that what others need is applied first.
 * @throws CliError naming file, line and column
 */
export async function readManifests(files: readonly string[]): Promise<readonly Manifest[]> {
  const manifests: Manifest[] = [];
  for (const file of files) manifests.push(...parseFile(file, await readText(file)));
  if (manifests.length === 0) throw new CliError(`${files.join(", ")}: no Kubernetes object in there; nothing to run`);
  const order = [...KINDS.values()];
  return manifests.toSorted((a, b) => order.indexOf(a.resource) - order.indexOf(b.resource));
}
