/** Tests the in-place resize of one pod: an order of steps in which no image lacks resources, and impossible orders. */
import { describe, expect, it } from "vitest";
import type { ControllerRevision, Pod, PodCondition, ResourceRequirements } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { traceUpdate } from "../../../shared/core/inspect/explain/trace-update.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { passedOver } from "../../../shared/core/refused-pods.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { resizeStanding } from "../../../shared/core/rollout/rules/resize/resize.ts";
import { NOTHING_RESERVED } from "../../../shared/core/rollout/select/reserved.ts";
import { revisionData } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { CONTEXT, NOW, podOf, sidecarSetOf, UNTOUCHED } from "../../support/rollout-fixture.ts";

const SMALL = { requests: { cpu: "100m", memory: "64Mi" }, limits: { memory: "64Mi" } };
const LARGE = { requests: { cpu: "200m", memory: "128Mi" }, limits: { memory: "128Mi" } };
const MIXED = { requests: { cpu: "200m", memory: "32Mi" }, limits: { memory: "32Mi" } };
const MARK = "sidecarset.kruise.io/resize";
const WITHOUT_IMAGE = "kruise.io/sidecarset-hash-without-image";

function setWith(resources: ResourceRequirements, sidecar: object = {}): SidecarSet {
  const set = sidecarSetOf({
    selector: {},
    containers: [{ name: "sc", image: "reg/sc:v2", resources, ...sidecar }],
    updateStrategy: { type: "RollingUpdate", maxUnavailable: 1, partition: 0 },
  });
  const annotations = { ...set.metadata?.annotations, [WITHOUT_IMAGE]: "with-other-resources" };
  return { ...set, metadata: { ...set.metadata, annotations } };
}

function revisionOf(resources: ResourceRequirements, sidecar: object = {}): ControllerRevision {
  const data = revisionData(setWith(resources, sidecar));
  return { metadata: { name: "ss-1", annotations: { [WITHOUT_IMAGE]: "same" } }, revision: 1, data };
}

interface Facts {
  readonly wanted?: ResourceRequirements;
  readonly has?: ResourceRequirements;
  readonly mark?: string;
  readonly isUpdated?: boolean;
  readonly conditions?: readonly PodCondition[];
}

function podWith({ wanted = SMALL, has = wanted, mark, isUpdated = false, conditions = [] }: Facts): Pod {
  const image = isUpdated ? "reg/sc:v2" : "reg/sc:v1";
  const pod = podOf({
    image,
    ...(isUpdated ? { hash: "new", withoutImage: "with-other-resources" } : {}),
    ...(mark ? { annotations: { [MARK]: JSON.stringify({ ss: mark }) } } : {}),
  });
  const containers = pod.spec.containers.map((one) => (one.name === "sc" ? { ...one, resources: wanted } : one));
  const containerStatuses = pod.status?.containerStatuses?.map((one) =>
    one.name === "sc" ? { ...one, resources: has } : one,
  );
  return {
    ...pod,
    spec: { ...pod.spec, containers },
    status: {
      ...pod.status,
      conditions: [...(pod.status?.conditions ?? []), ...conditions],
      ...(containerStatuses ? { containerStatuses } : {}),
    },
  };
}

const SETTINGS = { ...CONTEXT.settings, InPlaceResize: true };

function decideOn(sidecarSet: SidecarSet, pods: readonly Pod[], made = revisionOf(SMALL), canResize = true) {
  const observation = { sidecarSet, pods, revisions: [made], ...UNTOUCHED, isResizeServed: canResize };
  const { actions, summary, status } = decide(observation, { ...CONTEXT, settings: SETTINGS });
  return { patches: actions.filter((action) => action.kind === "PatchPod"), summary, status };
}

const change = (resources: ResourceRequirements) => [expect.objectContaining({ container: "sc", resources })];

const RESTARTS = { resizePolicy: [{ resourceName: "cpu", restartPolicy: "RestartContainer" }] };
const pending = (reason: string) => [{ type: "PodResizePending", status: "True", reason, message: "no room" }] as const;

function named(name: string, pod: Pod, namespace = "default"): Pod {
  return { ...pod, metadata: { ...pod.metadata, namespace, name, uid: `uid-${name}` } };
}

function pendingPod(name: string, reason: string): Pod {
  return named(name, podWith({ wanted: LARGE, has: SMALL, mark: "new", conditions: pending(reason) }));
}

function refusing(isDue: boolean) {
  const refusal = { namespace: "default", name: "p", uid: "uid-p", times: 3, until: NOW, message: "exceeded quota" };
  const refused = { named: [refusal], passedOver: passedOver([refusal], () => isDue) };
  return { ...NOTHING_RESERVED, refused };
}

/** The used budget, and the pods that are written to after the resize of the pod p was refused. */
function decideRefused(sidecarSet: SidecarSet, pods: readonly Pod[], isDue: boolean, made = revisionOf(SMALL)) {
  const observation = { sidecarSet, pods, revisions: [made], ...UNTOUCHED, isResizeServed: true };
  const { actions, summary } = decide(
    { ...observation, reserved: refusing(isDue) },
    { ...CONTEXT, settings: SETTINGS },
  );
  return [summary.used, ...actions.flatMap((one) => (one.kind === "PatchPod" ? [one.pod.name] : []))];
}

/** The used budget, and the pods that are written to beside these. */
function begunBeside(stuck: readonly Pod[], { sidecar = {}, namespace = "default" } = {}) {
  const pods = [...stuck, named("q", podWith({}), namespace)];
  const { patches, summary } = decideOn(setWith(LARGE, sidecar), pods, revisionOf(SMALL, sidecar));
  return [summary.used, ...patches.flatMap((one) => (one.kind === "PatchPod" ? [one.pod.name] : []))];
}

describe("a resize to more resources", () => {
  const set = setWith(LARGE);

  it("a resize to more resources begins with the resize annotation and nothing else", () => {
    const [patch] = decideOn(set, [podWith({})]).patches;
    expect(patch).toMatchObject({ purpose: "upgrade", images: [], annotations: { [MARK]: '{"ss":"new"}' } });
    expect(Object.keys(patch?.kind === "PatchPod" ? patch.annotations : {})).toEqual([MARK]);
  });

  it("more resources are written after the resize annotation and use no more budget", () => {
    const { patches, summary } = decideOn(set, [podWith({ mark: "new" })]);
    expect(patches).toMatchObject([{ purpose: "resize", images: [], resources: change(LARGE) }]);
    expect(summary.used).toBe(1);
  });

  it("no other pod begins while a resize uses the budget", () => {
    const other = { ...podWith({}), metadata: { ...podWith({}).metadata, name: "q", uid: "uid-q" } };
    const { patches } = decideOn(set, [podWith({ mark: "new" }), other]);
    expect(patches.map((patch) => (patch.kind === "PatchPod" ? patch.pod.name : ""))).toEqual(["p"]);
  });

  it("a pod whose resize is refused uses no budget while it waits, and only what it needs when it is tried again", () => {
    const pods = [podWith({ mark: "new" }), named("q", podWith({}))];
    expect(decideRefused(set, pods, false)).toEqual([0, "q"]);
    expect(decideRefused(set, pods, true)).toHaveLength(2);
  });

  it.each<[string, Facts]>([
    ["still reports the old resources", { has: SMALL }],
    ["reports that the resize is in progress", { conditions: [{ type: "PodResizeInProgress", status: "True" }] }],
  ])("the new image waits while the node %s", (_what, facts) => {
    expect(decideOn(set, [podWith({ wanted: LARGE, mark: "new", ...facts })]).patches).toEqual([]);
  });

  it("a resize that the node defers is reported as a problem", () => {
    const conditions = [{ type: "PodResizePending", status: "True", reason: "Deferred", message: "no room" }];
    const { patches, summary } = decideOn(set, [podWith({ wanted: LARGE, has: SMALL, mark: "new", conditions })]);
    expect(patches).toEqual([]);
    expect(summary.problems.map(({ message }) => message)).toEqual(["resize Deferred: no room"]);
  });

  it.each<[string, object, string, readonly unknown[]]>([
    ["another pod begins while the node of one defers its resize", {}, "Deferred", [0, "q"]],
    ["another pod begins while the node of one cannot do its resize", RESTARTS, "Infeasible", [0, "q"]],
    ["no other pod begins while a deferred resize may restart its container", RESTARTS, "Deferred", [1]],
  ])("%s", (_, sidecar, reason, expected) => {
    expect(begunBeside([pendingPod("p", reason)], { sidecar })).toEqual(expected);
  });

  it("five pods whose nodes do not resize them hold the other pods of their namespace only", () => {
    const stuck = ["a", "b", "c", "d", "e"].map((name) => pendingPod(name, "Deferred"));
    expect(begunBeside(stuck.slice(1))).toEqual([0, "q"]);
    expect(begunBeside(stuck)).toEqual([0]);
    expect(begunBeside(stuck, { namespace: "another" })).toEqual([0, "q"]);
  });

  it("a pod that never started and has a forged resize annotation uses no budget", () => {
    const { status: _, ...pod } = pendingPod("p", "Deferred");
    expect(begunBeside([{ ...pod, status: { phase: "Pending" } }])).toEqual([0, "q"]);
  });

  it("the image of a pod whose deferred resize is done waits for its place in the budget", () => {
    const late = named("p", podWith({ wanted: LARGE, mark: "new" }));
    const busy = named("q", podWith({ wanted: LARGE, has: SMALL, mark: "new" }));
    expect(decideOn(set, [late, busy])).toMatchObject({ patches: [], summary: { used: 1 } });
    expect(decideOn(set, [late]).patches).toMatchObject([{ images: [{ to: "reg/sc:v2" }] }]);
  });

  it("the image and both hashes are written after the node has applied the resources", () => {
    const [patch] = decideOn(set, [podWith({ wanted: LARGE, mark: "new" })]).patches;
    expect(patch).toMatchObject({ purpose: "upgrade", images: [{ to: "reg/sc:v2" }] });
    const annotations = patch?.kind === "PatchPod" ? patch.annotations : {};
    expect(JSON.parse(annotations[WITHOUT_IMAGE] ?? "").ss.hash).toBe("with-other-resources");
    expect(JSON.parse(annotations["kruise.io/sidecarset-hash"] ?? "").ss.hash).toBe("new");
  });

  it("equal resources in another notation need no resize", () => {
    const same = { requests: { cpu: "0.2", memory: "131072Ki" }, limits: { memory: "134217728" } };
    const [patch] = decideOn(set, [podWith({ wanted: same, mark: "new" })]).patches;
    expect(patch).toMatchObject({ images: [{ to: "reg/sc:v2" }] });
  });
});

describe("a resize to fewer resources", () => {
  const set = setWith(SMALL);
  const made = revisionOf(LARGE);

  it("a resize to fewer resources begins with the new image", () => {
    const [patch] = decideOn(set, [podWith({ wanted: LARGE })], made).patches;
    expect(patch).toMatchObject({ images: [{ to: "reg/sc:v2" }], annotations: { [MARK]: '{"ss":"new"}' } });
    expect(patch).not.toHaveProperty("resources");
  });

  it("fewer resources are written when the new image runs, and the pod is not ready until then", () => {
    const pods = [podWith({ wanted: LARGE, mark: "new", isUpdated: true })];
    const { patches, status, summary } = decideOn(set, pods, made);
    expect(patches).toMatchObject([{ purpose: "resize", resources: change(SMALL) }]);
    expect([summary.hold, summary.selected]).toEqual(["shrink", 1]);
    expect(status).toMatchObject({ updatedPods: 1, readyPods: 0 });
  });

  it("a resize to fewer resources is finished when the node reports them", () => {
    const done = decideOn(set, [podWith({ wanted: SMALL, mark: "new", isUpdated: true })], made);
    expect(done).toMatchObject({ patches: [], status: { updatedPods: 1, updatedReadyPods: 1 } });
    const open = decideOn(set, [podWith({ wanted: SMALL, has: LARGE, mark: "new", isUpdated: true })], made);
    expect(open).toMatchObject({ patches: [], status: { readyPods: 0 } });
  });

  it.each<[string, object, Facts, number]>([
    ["uses no budget while its node cannot make it smaller", {}, { conditions: pending("Error") }, 0],
    ["uses no budget while a node cannot do it at all", RESTARTS, { conditions: pending("Infeasible") }, 0],
    ["uses budget while its container may still restart", RESTARTS, { conditions: pending("Deferred") }, 1],
    ["uses budget while its node makes it smaller", {}, {}, 1],
  ])("an updated pod %s", (_, sidecar, facts, used) => {
    const pod = podWith({ wanted: SMALL, has: LARGE, mark: "new", isUpdated: true, ...facts });
    const { summary, status } = decideOn(setWith(SMALL, sidecar), [pod], made);
    expect([summary.used, status.readyPods]).toEqual([used, 0]);
  });

  it("an updated pod uses no budget while smaller resources are refused, and is named", () => {
    const pods = [
      named("p", podWith({ wanted: LARGE, mark: "new", isUpdated: true })),
      named("q", podWith({ wanted: LARGE })),
    ];
    expect(decideRefused(set, pods, false, made)).toEqual([0, "q"]);
    const [first = podWith({})] = pods;
    const facts = { pods, revisions: [made], ...UNTOUCHED, isResizeServed: true, ...CONTEXT, settings: SETTINGS };
    const steps = traceUpdate(first, set, { ...facts, reserved: refusing(false) });
    expect(steps.map(({ reason, message }) => `${reason}: ${message}`)).toEqual([
      "WritesRefused: the API server refuses to change pod default/p: exceeded quota",
    ]);
  });

  it("an updated pod without the resize annotation is not resized, because somebody else may have changed it", () => {
    expect(decideOn(set, [podWith({ wanted: LARGE, isUpdated: true })], made).patches).toEqual([]);
  });
});

it("a resize with more cpu and less memory first writes the greater value of each", () => {
  const both = { requests: { cpu: "200m", memory: "64Mi" }, limits: { memory: "64Mi" } };
  const { patches } = decideOn(setWith(MIXED), [podWith({ mark: "new" })]);
  expect(patches).toMatchObject([{ resources: change(both) }]);
  const last = decideOn(setWith(MIXED), [podWith({ wanted: both, mark: "new", isUpdated: true })]);
  expect(last.patches).toMatchObject([{ resources: change(MIXED) }]);
});

it("a resize annotation of another release is replaced and uses no budget", () => {
  const { patches, summary } = decideOn(setWith(LARGE), [podWith({ mark: "earlier" })]);
  expect(patches).toMatchObject([{ annotations: { [MARK]: '{"ss":"new"}' } }]);
  expect(summary.used).toBe(0);
});

describe("changes that cannot be resized in place", () => {
  it.each<[string, SidecarSet, ControllerRevision, boolean]>([
    ["when the cluster does not offer resize", setWith(LARGE), revisionOf(SMALL), false],
    ["when a request is removed", setWith({ limits: { memory: "64Mi" } }), revisionOf(SMALL), true],
    [
      "when another resource changes",
      setWith({ ...SMALL, limits: { memory: "64Mi", "ephemeral-storage": "2Gi" } }),
      revisionOf({ ...SMALL, limits: { memory: "64Mi", "ephemeral-storage": "1Gi" } }),
      true,
    ],
    ["when another field changes as well", setWith(LARGE, { args: ["-v"] }), revisionOf(SMALL), true],
    [
      "for the two containers of a hot upgrade",
      setWith(LARGE, { upgradeStrategy: { upgradeType: "HotUpgrade" } }),
      revisionOf(SMALL, { upgradeStrategy: { upgradeType: "HotUpgrade" } }),
      true,
    ],
  ])("a pod is not resized, and the field is reported, %s", (_what, set, made, canResize) => {
    const pod = set.spec.containers?.[0]?.upgradeStrategy ? hotPod() : podWith({});
    const { patches, summary } = decideOn(set, [pod], made, canResize);
    expect(patches).toEqual([]);
    expect(summary.notUpgradable).toBe(1);
    expect(summary.immutableFields).toContain("spec.containers{sc}.resources");
  });
});

function hotPod(): Pod {
  const { spec, ...pod } = podWith({});
  const containers = ["main", "sc-1", "sc-2"].map((name) => ({ name, image: `reg/${name}:v1` }));
  const working = { "kruise.io/sidecarset-working-hotupgrade-container": '{"sc":"sc-1"}' };
  const metadata = { ...pod.metadata, annotations: { ...pod.metadata?.annotations, ...working } };
  return { ...pod, metadata, spec: { ...spec, containers } };
}

describe("resizeStanding", () => {
  const ofLarge = { has: SMALL, wanted: LARGE, mark: "new" };
  const rows: readonly [sentence: string, set: SidecarSet, facts: Facts, expected: string | undefined][] = [
    [
      "a pod that waits for more resources reports that the image follows",
      setWith(LARGE),
      ofLarge,
      "cpu and memory are changed first, the image follows",
    ],
    [
      "a pod with a deferred resize reports the message of its node",
      setWith(LARGE),
      { ...ofLarge, conditions: pending("Deferred") },
      "resize Deferred: no room",
    ],
    [
      "a resize annotation of another release reports no resize",
      setWith(LARGE),
      { ...ofLarge, mark: "earlier" },
      undefined,
    ],
    ["a pod whose resize has not begun reports no resize", setWith(LARGE), { has: SMALL }, undefined],
    [
      "a pod that runs the new image reports that its resources are made smaller",
      setWith(SMALL),
      { wanted: LARGE, mark: "new", isUpdated: true },
      "the new image runs, cpu and memory are made smaller",
    ],
    [
      "a pod that has its smaller resources reports no resize",
      setWith(SMALL),
      { wanted: SMALL, mark: "new", isUpdated: true },
      undefined,
    ],
    [
      "a pod without the resize annotation reports no resize",
      setWith(SMALL),
      { wanted: LARGE, isUpdated: true },
      undefined,
    ],
  ];
  it.each(rows)("%s", (_, set, facts, expected) => {
    expect(resizeStanding(podStateOf(podWith(facts), set, undefined), set)).toBe(expected);
  });

  it.each([
    ["Deferred", "wait", undefined],
    ["Infeasible", "stop", "give the SidecarSet resources that the node has, or its old ones"],
  ])("explain says whether a resize with the reason %s continues by itself", (reason, verdict, hint) => {
    const facts = {
      pods: [],
      revisions: [revisionOf(SMALL)],
      ...UNTOUCHED,
      isResizeServed: true,
      ...CONTEXT,
      settings: SETTINGS,
    };
    const pod = podWith({ ...ofLarge, conditions: pending(reason) });
    const [outdated, step] = traceUpdate(pod, setWith(LARGE), facts);
    expect(outdated?.reason).toBe("OutOfDate");
    expect(step).toEqual({
      reason: "ResizeUnderWay",
      verdict,
      message: `resize ${reason}: no room; other pods go on`,
      ...(hint ? { hint } : {}),
    });
  });
});
