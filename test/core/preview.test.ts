import { describe, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { podsOf, previewPod } from "../../shared/core/injection/preview.ts";
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

describe("previewPod:", () => {
  it("a preview has the pod with its sidecars and names their SidecarSets", () => {
    const { pod: after, injected } = preview(pod);
    expect(after?.spec.containers.map(({ name }) => name)).toEqual(["main", "sc"]);
    expect(injected).toEqual(["ss"]);
  });

  it("a preview uses the given namespace by its name unless the pod has a namespace", () => {
    const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": "shop" } };
    expect(preview(pod, { namespaceSelector }).injected).toEqual(["ss"]);
    expect(
      preview({ ...pod, metadata: { ...pod.metadata, namespace: "other" } }, { namespaceSelector }).injected,
    ).toEqual([]);
  });

  it("a preview that the webhook would deny has no pod but the reason", () => {
    const { pod: after, admission } = preview(pod, { injectionStrategy: { revision: { revisionName: "gone" } } });
    expect(after).toBeUndefined();
    expect(admission).toMatchObject({ kind: "denied", message: expect.stringMatching(/"gone" not found/) });
  });
});

const template = { metadata: { labels: { app: "web" } }, spec };
const WORKLOADS: readonly (readonly [string, KubernetesObject, object | undefined])[] = [
  ["a Pod", pod, { name: "p" }],

  ["a ConfigMap, which has none", { kind: "ConfigMap", metadata: { name: "s" } }, undefined],
];

describe("podsOf", () => {
  it.each([
    ["an AdvancedCronJob", { spec: { template: { jobTemplate: { spec: { template } } } } }, 1],
    ["a UnitedDeployment", { spec: { template: { cloneSetTemplate: { spec: { template } } } } }, 1],
    ["a GameServerSet", { spec: { gameServerTemplate: template } }, 1],
    [
      "a PyTorchJob with a master and workers",
      { spec: { replicaSpecs: { Master: { template }, Worker: { template } } } },
      2,
    ],
    [
      "a JobSet with two jobs",
      { spec: { replicatedJobs: [1, 2].map(() => ({ template: { spec: { template } } })) } },
      2,
    ],
    ["a PodTemplate", { template }, 1],
    ["a policy whose pattern has containers", { spec: { pattern: { spec: { containers: [{ name: "*" }] } } } }, 0],
  ])("podsOf finds all pod templates of %s", (_title, object, count) => {
    const found = podsOf({ kind: "Some", metadata: { name: "w", namespace: "n" }, ...object } as KubernetesObject);
    expect(found).toHaveLength(count);
    for (const one of found)
      expect(one).toMatchObject(newPod({ generateName: "w-", namespace: "n", labels: { app: "web" } }, spec));
  });

  it.each(WORKLOADS)("podsOf finds the pod template of %s", (_title, object, metadata) => {
    const [found] = podsOf(object);
    if (metadata === undefined) expect(found).toBeUndefined();
    else expect(found).toMatchObject(newPod(metadata, spec));
  });
});
