/**
 * Tests native sidecars in a rollout with the feature gate: which pods are patched, which wait, and which nodes are too
 * old.
 */
import { describe, expect, it } from "vitest";
import type { Container, ContainerStatus, Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { nativeStateOf } from "../../../shared/core/pod/native-sidecars.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { CONTEXT, podOf, sidecarSetOf, UNTOUCHED } from "../../support/rollout-fixture.ts";

const SET: SidecarSet = sidecarSetOf({
  selector: {},
  containers: [],
  initContainers: [
    { name: "prepare", image: "prepare:v2" },
    { name: "proxy", image: "proxy:v2", restartPolicy: "Always" },
  ],
  updateStrategy: { type: "RollingUpdate", maxUnavailable: 1, partition: 0 },
});
const KUBELETS = new Map([
  ["n", "v1.31.0"],
  ["older", "v1.30.11"],
]);

interface Facts {
  readonly image?: string;
  readonly runs?: string;
  readonly imageID?: string;
  readonly isReady?: boolean;
  readonly before?: string;
  readonly nodeName?: string;
  readonly hash?: string;
  readonly statuses?: readonly ContainerStatus[];
}

function podWith(facts: Facts = {}): Pod {
  const { image = "proxy:v1", runs = image, imageID = `id-of-${runs}`, isReady = true, nodeName = "n" } = facts;
  const state = { ss: { lastContainerStatuses: { proxy: { imageID: facts.before } } } };
  const pod = podOf({
    spec: { ...(nodeName ? { nodeName } : {}), containers: [{ name: "main", image: "main:v1" }] },
    ...(facts.hash ? { hash: facts.hash } : {}),
    annotations: facts.before ? { "kruise.io/sidecarset-inplace-update-state": JSON.stringify(state) } : {},
  });
  const initContainers: readonly Container[] = [
    { name: "prepare", image: "prepare:v1" },
    { name: "proxy", image, restartPolicy: "Always" },
  ];
  const initContainerStatuses = facts.statuses ?? [
    { name: "prepare", image: "prepare:v1", imageID: "p", ready: true },
    { name: "proxy", image: runs, imageID, ready: isReady },
  ];
  return { ...pod, spec: { ...pod.spec, initContainers }, status: { ...pod.status, initContainerStatuses } };
}

function decideOn(pod: Pod, kubelets: ReadonlyMap<string, string> | undefined) {
  const observation = { sidecarSet: SET, pods: [pod], revisions: [], ...UNTOUCHED, kubelets: kubelets ?? new Map() };
  const settings = { ...CONTEXT.settings, NativeSidecarInPlaceUpdate: kubelets !== undefined };
  const { actions, summary } = decide(observation, { ...CONTEXT, settings });
  return { patch: actions.find((action) => action.kind === "PatchPod"), summary };
}

describe("an old pod with a native sidecar:", () => {
  it("a pod gets the new image of the native sidecar, not of a completed init container", () => {
    const { patch } = decideOn(podWith(), KUBELETS);
    const change = { index: 1, container: "proxy", from: "proxy:v1", to: "proxy:v2", list: "initContainers" };
    expect(patch).toMatchObject({ purpose: "upgrade", images: [change] });
  });

  it("the patch records the imageID from before the update", () => {
    const { patch } = decideOn(podWith(), KUBELETS);
    const text = patch?.kind === "PatchPod" ? patch.annotations["kruise.io/sidecarset-inplace-update-state"] : "";
    expect(JSON.parse(text ?? "")["ss"].lastContainerStatuses).toEqual({ proxy: { imageID: "id-of-proxy:v1" } });
  });

  it("without the feature gate the pod gets only its annotations, as in OpenKruise", () => {
    expect(decideOn(podWith(), undefined).patch).toMatchObject({ images: [] });
  });

  it.each([
    ["too old", "older", "node older has kubelet v1.30.11, which restarts native sidecars only from v1.31 on"],
    ["unknown", "gone", "nothing is known of the kubelet of node gone"],
  ])("a pod is not updated if its node is %s, and the summary says why", (_what, nodeName, message) => {
    const { patch, summary } = decideOn(podWith({ nodeName }), KUBELETS);
    expect(patch).toBeUndefined();
    expect(summary.notUpgradable).toBe(1);
    expect(summary.problems).toEqual([{ namespace: "default", name: "p", message }]);
  });

  it("a pod on an old node is upgraded if its native sidecar has the right image already", () => {
    expect(decideOn(podWith({ nodeName: "older", image: "proxy:v2" }), KUBELETS).patch).toMatchObject({ images: [] });
  });

  it("a pod without a node is upgraded", () => {
    expect(decideOn(podWith({ nodeName: "" }), KUBELETS).patch).toBeDefined();
  });

  it("a pod is in flight while its node has not restarted the native sidecar for the previous update", () => {
    const pod = podWith({ image: "proxy:v1.5", runs: "proxy:v1", imageID: "a", before: "a" });
    expect(decideOn(pod, KUBELETS)).toMatchObject({ patch: undefined, summary: { hold: "inFlight", inFlight: 1 } });
    const broken = podWith({ image: "proxy:v1.5", runs: "proxy:v1", imageID: "a", before: "a", isReady: false });
    expect(decideOn(broken, KUBELETS).patch).toBeDefined();
  });

  it("a pod without the native sidecar is not patched and is reported", () => {
    const { spec, ...pod } = podWith({ statuses: [] });
    const { summary } = decideOn({ ...pod, spec: { ...spec, initContainers: [] } }, new Map([["n", "v1.40.0"]]));
    expect(summary.problems.map(({ message }) => message)).toEqual(["the pod has no init container proxy"]);
  });
});

describe("an updated pod with a native sidecar:", () => {
  it.each<[string, Facts, boolean]>([
    ["is true if the imageID differs from the one before", { runs: "proxy:v1", imageID: "b", before: "a" }, true],
    ["is true if the status has the new image", { runs: "proxy:v2", imageID: "a", before: "a" }, true],
    [
      "is false while the status has the image and the imageID from before",
      { runs: "proxy:v1", imageID: "a", before: "a" },
      false,
    ],
    ["is false while the kubelet reports no status", { statuses: [] }, false],
  ])("isConsistent of an updated pod %s", (_what, facts, isConsistent) => {
    const pod = podWith({ image: "proxy:v2", hash: "new", ...facts });
    expect(podStateOf(pod, SET, KUBELETS)).toMatchObject({ isUpdated: true, isConsistent });
    expect(podStateOf(pod, SET, undefined).isConsistent).toBe(true);
  });

  it("if the image of the native sidecar has a digest, the running digest decides", () => {
    const image = `reg/proxy@sha256:${"a".repeat(64)}`;
    const running = podWith({ image, imageID: image });
    const other = podWith({ image, imageID: image.replaceAll("aaa", "bbb") });
    expect(nativeStateOf(running, SET, KUBELETS).isConsistent).toBe(true);
    expect(nativeStateOf(other, SET, KUBELETS).isConsistent).toBe(false);
  });
});

it.each([
  ["v1.31.0", true],
  ["v1.31.2-eks-1", true],
  ["1.32.0", true],
  ["v2.0.0", true],
  ["v1.30.9", false],
  ["v0.99.0", false],
  ["", false],
])('a kubelet of the version "%s" restarts native sidecars: %s', (version, does) => {
  const { hindrance } = nativeStateOf(podWith(), SET, new Map([["n", version]]));
  expect(hindrance === undefined).toBe(does);
});
