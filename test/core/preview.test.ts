import { describe, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { podOf, previewPod } from "../../shared/core/injection/preview.ts";
import { newPod } from "../support/objects.ts";
import { sidecarSetOf } from "../support/rollout-fixture.ts";

const CONTEXT = { now: "2026-01-02T03:04:05Z", random: () => 0.3, kruiseNamespace: "kruise-system", gates: {} };
const SET = sidecarSetOf({ selector: { matchLabels: { app: "web" } } });
const spec = { containers: [{ name: "main", image: "app:1" }] };
const pod: Pod = newPod({ name: "p", labels: { app: "web" } }, spec);

function preview(subject: Pod, spec: object = {}) {
  const sidecarSets = [{ ...SET, spec: { ...SET.spec, ...spec } }];
  return previewPod({ pod: subject, namespace: "shop", sidecarSets, revisions: [] }, CONTEXT);
}

describe("a preview", () => {
  it("is the pod with its sidecars, and names whose", () => {
    const { pod: after, injected } = preview(pod);
    expect(after?.spec.containers.map(({ name }) => name)).toEqual(["main", "sc"]);
    expect(injected).toEqual(["ss"]);
  });

  it("of a pod that nothing selects is the pod", () => {
    const { pod: after, injected } = preview({ ...pod, metadata: { name: "p" } });
    expect(after).toEqual({ ...pod, metadata: { name: "p" } });
    expect(injected).toEqual([]);
  });

  it("takes the namespace for one that has nothing but its name, unless it is given", () => {
    const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": "shop" } };
    expect(preview(pod, { namespaceSelector }).injected).toEqual(["ss"]);
    expect(
      preview({ ...pod, metadata: { ...pod.metadata, namespace: "other" } }, { namespaceSelector }).injected,
    ).toEqual([]);
  });

  it("of what the webhook refuses has no pod, but the reason", () => {
    const { pod: after, admission } = preview(pod, { injectionStrategy: { revision: { revisionName: "gone" } } });
    expect(after).toBeUndefined();
    expect(admission).toMatchObject({ kind: "denied", message: expect.stringMatching(/"gone" not found/) });
  });
});

const template = { metadata: { labels: { app: "web" } }, spec };
const WORKLOADS: readonly (readonly [string, KubernetesObject, object | undefined])[] = [
  ["a Pod", pod, { name: "p" }],
  [
    "a Deployment",
    { kind: "Deployment", metadata: { name: "web", namespace: "n" }, spec: { template } } as KubernetesObject,
    { generateName: "web-", namespace: "n", labels: { app: "web" } },
  ],
  [
    "a CloneSet without a name",
    { kind: "CloneSet", spec: { template } } as KubernetesObject,
    { labels: { app: "web" } },
  ],
  [
    "a CronJob",
    { kind: "CronJob", metadata: { name: "c" }, spec: { jobTemplate: { spec: { template } } } } as KubernetesObject,
    { generateName: "c-" },
  ],
  ["a Service", { kind: "Service", metadata: { name: "s" }, spec: { ports: [] } } as KubernetesObject, undefined],
  ["a ConfigMap", { kind: "ConfigMap", metadata: { name: "s" } }, undefined],
];

describe("the pod of", () => {
  it.each(WORKLOADS)("%s", (_title, object, metadata) => {
    const found = podOf(object);
    if (metadata === undefined) expect(found).toBeUndefined();
    else expect(found).toMatchObject(newPod(metadata, spec));
  });
});
