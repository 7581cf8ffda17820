/** Tests the admission of ContainerRecreateRequests, in both versions. */
import type { ContainerRecreateRequest } from "../../../shared/api/container-recreate-request.ts";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import { admitContainerRecreateRequest, podWanted } from "../../../shared/core/container-recreate/admit.ts";
import { withoutNoise } from "../clean.ts";
import { compare, type Difference } from "../compare.ts";
import type { VectorCase } from "../suite.ts";

interface Input {
  readonly operation: string;
  readonly version: string;
  readonly object: ContainerRecreateRequest;
  readonly oldObject?: ContainerRecreateRequest;
  readonly pod?: Pod;
  readonly node?: KubernetesObject;
}

interface Expected {
  readonly allowed: boolean;
  readonly code?: number;
  readonly message?: string;
  readonly object?: unknown;
}

export function containerRecreateRequestWebhookSuite(
  { operation, version, object, oldObject, pod, node }: Input,
  expected: Expected,
  { name }: VectorCase,
): readonly Difference[] {
  const resource = { group: "apps.kruise.io", version, resource: "containerrecreaterequests" };
  const request = { uid: "vector", operation, resource, object, ...(oldObject ? { oldObject } : {}) };
  // The case's name has the feature gate; its input does not.
  const gates = { KruiseDaemon: !name.includes("feature-gate-KruiseDaemon-off") };
  const wanted = podWanted(request);
  const isFound = pod?.metadata?.name === wanted?.name && pod?.metadata?.namespace === wanted?.namespace;
  const found = isFound ? pod : undefined;
  const admission = admitContainerRecreateRequest(request, { pod: found, node, gates });
  if (admission.kind === "denied") {
    return compare({ allowed: false, code: admission.code, message: admission.message }, expected);
  }
  const actual = { allowed: true, object: withoutNoise(admission.object ?? object) };
  return compare(actual, { allowed: expected.allowed, object: withoutNoise(expected.object) });
}
