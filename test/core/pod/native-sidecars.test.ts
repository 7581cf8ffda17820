/** Native sidecars in a rollout with the gate: what is patched, what has to wait, and which nodes cannot. */
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

describe("an old pod", () => {
  it("gets the image of the native sidecar, not of what has run", () => {
    const { patch } = decideOn(podWith(), KUBELETS);
    const change = { index: 1, container: "proxy", from: "proxy:v1", to: "proxy:v2", list: "initContainers" };
    expect(patch).toMatchObject({ purpose: "upgrade", images: [change] });
  });

  it("keeps what the image was before", () => {
    const { patch } = decideOn(podWith(), KUBELETS);
    const text = patch?.kind === "PatchPod" ? patch.annotations["kruise.io/sidecarset-inplace-update-state"] : "";
    expect(JSON.parse(text ?? "")["ss"].lastContainerStatuses).toEqual({ proxy: { imageID: "id-of-proxy:v1" } });
  });

  it("gets its annotations alone without the gate, as from OpenKruise", () => {
    expect(decideOn(podWith(), undefined).patch).toMatchObject({ images: [] });
  });

  it.each([
    [
      "on a node that is too old",
      "older",
      "node older has kubelet v1.30.11, which restarts native sidecars only from v1.31 on",
    ],
    ["on a node that nobody knows", "gone", "nothing is known of the kubelet of node gone"],
  ])("stays as it is %s, and says why", (_what, nodeName, message) => {
    const { patch, summary } = decideOn(podWith({ nodeName }), KUBELETS);
    expect(patch).toBeUndefined();
    expect(summary.notUpgradable).toBe(1);
    expect(summary.problems).toEqual([{ namespace: "default", name: "p", message }]);
  });

  it("is upgraded on an old node when its native sidecar is what it should be", () => {
    expect(decideOn(podWith({ nodeName: "older", image: "proxy:v2" }), KUBELETS).patch).toMatchObject({ images: [] });
  });

  it("that has no node yet is upgraded", () => {
    expect(decideOn(podWith({ nodeName: "" }), KUBELETS).patch).toBeDefined();
  });

  it("is waited for while its node has not restarted the native sidecar for the update before", () => {
    const pod = podWith({ image: "proxy:v1.5", runs: "proxy:v1", imageID: "a", before: "a" });
    expect(decideOn(pod, KUBELETS)).toMatchObject({ patch: undefined, summary: { hold: "inFlight", inFlight: 1 } });
    const broken = podWith({ image: "proxy:v1.5", runs: "proxy:v1", imageID: "a", before: "a", isReady: false });
    expect(decideOn(broken, KUBELETS).patch).toBeDefined();
  });

  it("that lacks the native sidecar is left alone, with a sentence", () => {
    const { spec, ...pod } = podWith({ statuses: [] });
    const { summary } = decideOn({ ...pod, spec: { ...spec, initContainers: [] } }, new Map([["n", "v1.40.0"]]));
    expect(summary.problems.map(({ message }) => message)).toEqual(["the pod has no init container proxy"]);
  });
});

describe("an updated pod is what it should be", () => {
  it.each<[string, Facts, boolean]>([
    ["once the image is another than before", { runs: "proxy:v1", imageID: "b", before: "a" }, true],
    ["once the image has the right name", { runs: "proxy:v2", imageID: "a", before: "a" }, true],
    ["not while the image is that of before", { runs: "proxy:v1", imageID: "a", before: "a" }, false],
    ["not while the kubelet says nothing of it", { statuses: [] }, false],
  ])("%s", (_what, facts, isConsistent) => {
    const pod = podWith({ image: "proxy:v2", hash: "new", ...facts });
    expect(podStateOf(pod, SET, KUBELETS)).toMatchObject({ isUpdated: true, isConsistent });
    expect(podStateOf(pod, SET, undefined).isConsistent).toBe(true);
  });

  it("by digest where the image has one", () => {
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
])("kubelet %s restarts native sidecars: %s", (version, does) => {
  const { hindrance } = nativeStateOf(podWith(), SET, new Map([["n", version]]));
  expect(hindrance === undefined).toBe(does);
});
