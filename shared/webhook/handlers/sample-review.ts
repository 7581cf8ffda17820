/** A made-up pod and SidecarSet, as API servers send and have them. No pod of a cluster has that label. */
import type { SidecarSet } from "../../api/sidecarset.ts";

const LABELS = { "sidecarset.kruise.io/sample": "true" };

export const SAMPLE_SIDECAR = "sample-sidecar";

export const SAMPLE_SIDECAR_SET: SidecarSet = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "sidecarset-sample", uid: "00000000-0000-4000-8000-000000000001", resourceVersion: "1" },
  spec: { selector: { matchLabels: LABELS }, containers: [{ name: SAMPLE_SIDECAR, image: "busybox:1.37" }] },
};

/** JSON of an AdmissionReview. */
export function sampleReview(
  object: object,
  resource: readonly [group: string, version: string, plural: string],
): string {
  const [group, version, plural] = resource;
  const request = {
    uid: "00000000-0000-4000-8000-000000000002",
    operation: "CREATE",
    resource: { group, version, resource: plural },
    namespace: "default",
    dryRun: true,
    object,
  };
  return JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
}

export function samplePod(labels: Readonly<Record<string, string>>, namespace = "default"): object {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "sidecarset-sample", namespace, labels },
    spec: { containers: [{ name: "main", image: "nginx:1.29" }] },
  };
}

export const SAMPLE_POD_REVIEW = sampleReview(samplePod(LABELS), ["", "v1", "pods"]);

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

/** Names of the containers that an admission's patch adds, those of init included. `patch`: base64. */
export function containersIn(patch: string | undefined): readonly string[] {
  if (patch === undefined) return [];
  const operations = JSON.parse(Buffer.from(patch, "base64").toString()) as readonly Operation[];
  const added = operations.filter(
    ({ op, path }) => op === "add" && /^\/spec\/(initC|c)ontainers(\/[^/]+)?$/.test(path),
  );
  const containers = added.flatMap(({ value }) => (Array.isArray(value) ? value : [value])) as {
    readonly name: string;
  }[];
  return containers.map(({ name }) => name);
}
