import { describe, expect, test } from "vitest";
import type { Pod, PodSpec, PodStatus } from "../../../shared/api/kubernetes.ts";
import { workloadOf } from "../../../shared/core/pod/workload.ts";
import { NOTHING_ELSE, projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import { listedPod } from "../../support/objects.ts";
import { sidecarSetOf } from "../../support/rollout-fixture.ts";

const OURS = {
  "kruise.io/sidecarset-hash": "1",
  "kruise.io/sidecarset-hash-without-image": "2",
  "kruise.io/sidecarset-injected-list": "3",
  "kruise.io/sidecarset-inplace-update-state": "4",
  "kruise.io/sidecarset-working-hotupgrade-container": "5",
  "version.sidecarset.kruise.io/mesh-1": "6",
  "versionalt.sidecarset.kruise.io/mesh-1": "7",
};
const METADATA = {
  name: "p",
  namespace: "shop",
  uid: "u",
  resourceVersion: "7",
  creationTimestamp: "2025-01-01T00:00:00Z",
  deletionTimestamp: "2025-01-02T00:00:00Z",
  labels: { app: "web" },
};
const READY = { type: "Ready", status: "True", lastTransitionTime: "2025-01-01T00:00:01Z" };
const INITIALIZED = { type: "Initialized", status: "True" };
const UPGRADABLE = { type: "SidecarSetUpgradable", status: "True" };
const CONTAINER = { name: "c", image: "c:1", restartPolicy: "Always" };
const STATUS = { name: "c", ready: true, restartCount: 2, image: "c:1", imageID: "id" };

const POD = listedPod(
  { ...METADATA, generateName: "p-", annotations: { ...OURS, patched: "8", other: "9" } },
  {
    nodeName: "n",
    hostNetwork: true,
    initContainers: [{ ...CONTAINER, env: [] }],
    containers: [{ ...CONTAINER, command: ["sh"] }],
  } as object as PodSpec,
  {
    phase: "Running",
    podIP: "10.0.0.1",
    conditions: [READY, { ...INITIALIZED, lastTransitionTime: "2025-01-01T00:00:00Z" }, UPGRADABLE],
    containerStatuses: [{ ...STATUS, started: true }],
    initContainerStatuses: [{ ...STATUS, started: true }],
  } as object as PodStatus,
);

describe("projectPod", () => {
  test("labels and annotations that decline or ignore sidecars are kept", () => {
    const labels = { ...METADATA.labels, "sidecarset.kruise.io/inject": "false", other: "x" };
    const annotations = { "sidecarset.kruise.io/inject": "false", "sidecarset.kruise.io/ignore-missed": "true" };
    const kept = projectPod({ ...POD, metadata: { ...METADATA, labels, annotations } } as Pod, sidecarSetOf({}));
    expect(kept.metadata?.annotations).toStrictEqual(annotations);
    expect(kept.metadata?.labels).toHaveProperty(["sidecarset.kruise.io/inject"], "false");
    expect(kept.metadata?.labels).not.toHaveProperty("other");
  });

  test("the owner and the template hash of a pod are kept only when workloads are needed", () => {
    const ownerReferences = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-a1", uid: "r", controller: true }];
    const labels = { ...METADATA.labels, "pod-template-hash": "a1", other: "x" };
    const pod = { ...POD, metadata: { ...POD.metadata, ownerReferences, labels } } as Pod;
    const sidecarSet = sidecarSetOf({});
    const kept = projectPod(pod, sidecarSet, { ...NOTHING_ELSE, workloads: true });
    expect(workloadOf(kept)).toStrictEqual({ namespace: "shop", workload: "deployment/web" });
    expect(kept.metadata?.labels).not.toHaveProperty("other");
    expect(projectPod(pod, sidecarSet).metadata).not.toHaveProperty("ownerReferences");
    expect(projectPod(pod, sidecarSet).metadata?.labels).not.toHaveProperty("pod-template-hash");
  });

  test("a pod keeps the labels that budgets of its own namespace select by, and no others", () => {
    const labels = { ...METADATA.labels, own: "x", others: "y" };
    const pod = { ...POD, metadata: { ...POD.metadata, labels } } as Pod;
    const budgetLabels = new Map([
      ["shop", new Set(["own"])],
      ["greedy", new Set(["others"])],
    ]);
    const kept = projectPod(pod, sidecarSetOf({}), { ...NOTHING_ELSE, budgetLabels });
    expect(kept.metadata?.labels).toHaveProperty("own", "x");
    expect(kept.metadata?.labels).not.toHaveProperty("others");
  });

  test("the owner of a pod is kept when the SidecarSet follows ordinals", () => {
    const ownerReferences = [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "p", uid: "s", controller: true }];
    const pod = { ...POD, metadata: { ...POD.metadata, ownerReferences } } as Pod;
    const sidecarSet = sidecarSetOf({});
    const following = {
      ...sidecarSet,
      metadata: { ...sidecarSet.metadata, annotations: { "sidecarset.kruise.io/follow-ordinals": "true" } },
    };
    expect(projectPod(pod, following).metadata?.ownerReferences).toStrictEqual(ownerReferences);
    expect(projectPod(pod, sidecarSet).metadata).not.toHaveProperty("ownerReferences");
    expect(Object.keys(projectPod(pod, following))).toStrictEqual(["metadata", "spec", "status"]);
  });

  test("only the fields of a pod that a rollout reads are kept", () => {
    const sidecarSet = sidecarSetOf({ patchPodMetadata: [{ annotations: { patched: "x" } }, {}] });
    expect(projectPod(POD, sidecarSet)).toStrictEqual({
      metadata: { ...METADATA, labels: {}, annotations: { ...OURS, patched: "8" } },
      spec: { nodeName: "n", initContainers: [CONTAINER], containers: [CONTAINER] },
      status: {
        phase: "Running",
        conditions: [READY, INITIALIZED, UPGRADABLE],
        containerStatuses: [STATUS],
        initContainerStatuses: [STATUS],
      },
    });
  });

  test("only the labels by which pods are selected or sorted are kept", () => {
    const read = ["selected", "chosen", "in", "weight", "weights", "order", "spread"];
    const labels = Object.fromEntries([...read, "own", "other"].map((key) => [key, `${key}-1`]));
    const priorityStrategy = {
      weightPriority: [
        { weight: 1, matchSelector: { matchLabels: { weight: "a" } } },
        { weight: 2, matchSelector: { matchExpressions: [{ key: "weights", operator: "Exists" }] } },
      ],
      orderPriority: [{ orderedKey: "order" }, { orderedKey: "constructor" }],
    };
    const selector = { matchLabels: { chosen: "a" }, matchExpressions: [{ key: "in", operator: "In", values: ["a"] }] };
    const scatterStrategy = [{ key: "spread", value: "*" }];
    const sidecarSet = sidecarSetOf({
      selector: { matchLabels: { selected: "a" } },
      updateStrategy: { selector, priorityStrategy, scatterStrategy },
    });
    const pod = { ...POD, metadata: { ...POD.metadata, labels } } as Pod;
    expect(projectPod(pod, sidecarSet).metadata?.labels).toStrictEqual(
      Object.fromEntries(read.map((key) => [key, `${key}-1`])),
    );
    expect(projectPod(pod).metadata?.labels).toStrictEqual(labels);
  });

  test("the start time of a pod that is down is kept when pods that were never ready are ignored", () => {
    const sidecarSet = sidecarSetOf({});
    const annotations = { "sidecarset.kruise.io/ignore-never-ready": "true" };
    const ignoring = { ...sidecarSet, metadata: { ...sidecarSet.metadata, annotations } };
    const startTime = "2025-01-01T00:00:00Z";
    const alive = { ...POD, metadata: { name: "p" } };
    const ready = { ...alive, status: { ...alive.status, startTime } } as Pod;
    const down = { ...alive, status: { phase: "Running", startTime } } as Pod;
    expect([down, ready].map((pod) => projectPod(pod, ignoring).status?.startTime)).toEqual([startTime, undefined]);
    expect(projectPod(down, sidecarSet).status).not.toHaveProperty("startTime");
  });

  test("the reason why a container is not ready is kept without its message", () => {
    const waiting = { reason: "ErrImagePull", message: "long" };
    const terminated = { reason: "Error", exitCode: 1 };
    const statuses = [
      { ...STATUS, ready: false, state: { waiting } },
      { ...STATUS, ready: false, state: { terminated } },
      { ...STATUS, ready: false, state: { running: {} } },
      { ...STATUS, state: { waiting } },
    ];
    const { status } = projectPod({ ...POD, status: { containerStatuses: statuses } }, sidecarSetOf());
    expect(status?.containerStatuses).toStrictEqual([
      { ...STATUS, ready: false, state: { waiting: { reason: "ErrImagePull" } } },
      { ...STATUS, ready: false, state: { terminated: { reason: "Error" } } },
      { ...STATUS, ready: false },
      STATUS,
    ]);
  });

  test("an annotation that patchPodMetadata does not name is dropped", () => {
    expect(projectPod(POD, sidecarSetOf()).metadata?.annotations).toStrictEqual(OURS);
  });

  test("every annotation is kept when no SidecarSet is given", () => {
    expect(projectPod(POD).metadata?.annotations).toStrictEqual(POD.metadata?.annotations);
  });

  test("fields that the pod does not have are left out", () => {
    expect(projectPod({ spec: {} } as Pod, sidecarSetOf())).toStrictEqual({ metadata: {}, spec: { containers: [] } });
    expect(projectPod({ spec: { containers: [] }, status: {} })).toStrictEqual({
      metadata: {},
      spec: { containers: [] },
      status: { conditions: [], containerStatuses: [], initContainerStatuses: [] },
    });
  });
});
