/**
 * Tests pods that get a change only when they are recreated: diff, explain and check name the workload and the command.
 */
import { expect, it } from "vitest";
import { check } from "../../functions/library/check.ts";
import { diff } from "../../functions/library/diff.ts";
import { explain } from "../../functions/library/explain.ts";
import { hash } from "../../functions/library/hash.ts";
import { preview } from "../../functions/library/preview.ts";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import { installation } from "../../shared/install/manifests.ts";
import { newPod } from "../support/objects.ts";

const NOW = "2026-01-02T03:04:05Z";
const COMMAND = "kubectl -n shop rollout restart deployment/web";

function setWith(env: readonly object[]): KubernetesObject {
  const containers = [{ name: "agent", image: "agent:1", env }];
  return {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: "log-agent", uid: "a", generation: 1, creationTimestamp: "2025-01-01T00:00:00Z" },
    spec: { selector: { matchLabels: { app: "web" } }, containers, updateStrategy: { type: "RollingUpdate" } },
  } as KubernetesObject;
}

const BEFORE = setWith([]);
const AFTER = setWith([{ name: "A", value: "b" }]);

const bare: Pod = newPod(
  {
    name: "web-5d8-x",
    namespace: "shop",
    uid: "u",
    resourceVersion: "1",
    creationTimestamp: NOW,
    labels: { app: "web", "pod-template-hash": "5d8" },
    ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-5d8", uid: "r", controller: true }],
  },
  { nodeName: "n", containers: [{ name: "app", image: "app:1" }] },
  { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
);

function injected(): Pod {
  const previewed = preview({ object: bare, sidecarSets: [BEFORE], now: NOW });
  if (previewed.kind === "refused") throw new Error(previewed.message);
  const containerStatuses = previewed.pod.spec.containers.map(({ name, image = "" }) => ({
    name,
    image,
    imageID: image,
    ready: true,
  }));
  return {
    ...previewed.pod,
    spec: { ...previewed.pod.spec, nodeName: "n" },
    status: { ...bare.status, containerStatuses },
  };
}

const stored = (object: KubernetesObject): KubernetesObject => {
  const { hash: all, hashWithoutImage } = hash(object);
  const annotations = { "kruise.io/sidecarset-hash": all, "kruise.io/sidecarset-hash-without-image": hashWithoutImage };
  return { ...object, metadata: { ...object.metadata, annotations } };
};

it.each([
  ["differs in more than images", injected()],
  ["has no sidecars", bare],
])("diff, explain and check print the restart command of the workload for a pod that %s", (_, pod) => {
  expect(pod.metadata?.annotations?.[INJECTED_LIST_ANNOTATION]).toBe(pod === bare ? undefined : "log-agent");
  expect(diff({ before: BEFORE, after: AFTER, pods: [pod] }).renewals).toEqual([
    { namespace: "shop", workload: "deployment/web", pods: 1, command: COMMAND },
  ]);
  const ofSet = explain({ sidecarSet: AFTER, pods: [pod], now: NOW });
  expect(ofSet.map(({ hint = "" }) => hint).join("\n")).toContain(COMMAND);
  const ofPod = explain({ sidecarSet: AFTER, pod, now: NOW });
  expect(ofPod.map(({ hint = "" }) => hint).join("\n")).toContain(COMMAND);
  const mutatingWebhookConfigurations = installation({ url: "https://webhooks.example.com" }).filter(
    ({ kind }) => kind === "MutatingWebhookConfiguration",
  );
  const { findings } = check({
    mutatingWebhookConfigurations,
    validatingWebhookConfigurations: [],
    sidecarSets: [stored(AFTER)],
    pods: [pod],
    namespaces: [{ metadata: { name: "shop" } }],
    now: NOW,
  });
  const [id] = pod === bare ? ["InjectionMissed"] : ["PodsNotUpgradable"];
  expect(findings.find((one) => one.id === id)?.hint).toContain(COMMAND);
});
