import { describe, expect, test } from "vitest";
import type { ContainerStatus, Pod, PodStatus } from "../../shared/api/kubernetes.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { explain } from "../../shared/controller/rollout/dry-run.ts";
import { endOf } from "../../shared/core/rollout/book.ts";
import { conditionsOf } from "../../shared/core/rollout/conditions/conditions.ts";
import { decide } from "../../shared/core/rollout/decide.ts";
import { planRollout } from "../../shared/core/rollout/plan/plan.ts";
import { type PullFacts, pullOf } from "../../shared/core/rollout/rules/pre-pull/pull-facts.ts";
import {
  CONTEXT,
  NEW_HASH,
  NOW,
  podOf,
  reservedFor,
  sidecarSetOf,
  takenDown,
  UNTOUCHED,
} from "../support/rollout-fixture.ts";

const EMPTY: PullFacts = { namespace: "kruise-system", pods: [] };
const HOUR_LATER = "2025-06-01T01:00:00Z";

function setOf(atOnce: number | undefined, updateStrategy: UpdateStrategy = { maxUnavailable: 10 }): SidecarSet {
  const set = sidecarSetOf({ updateStrategy });
  const asked = atOnce === undefined ? {} : { "sidecarset.kruise.io/pre-pull": String(atOnce) };
  return { ...set, metadata: { ...set.metadata, annotations: { ...set.metadata?.annotations, ...asked } } };
}

/** Returns a pod on this node, such as `n1`. */
function podOn(node: string, facts: Parameters<typeof podOf>[0] = {}): Pod {
  const pod = podOf({ name: `on-${node}`, ...facts });
  return { ...pod, spec: { ...pod.spec, nodeName: node } };
}

const updatedOn = (node: string) => podOn(node, { name: `new-${node}`, hash: NEW_HASH, image: "reg/sc:v2" });

function decided(set: SidecarSet, pods: readonly Pod[], pulls: PullFacts | undefined = EMPTY, now = NOW) {
  const decision = decide({ ...UNTOUCHED, revisions: [], sidecarSet: set, pods, pulls }, { ...CONTEXT, now });
  const created = decision.actions.flatMap((action) => (action.kind === "CreatePullPod" ? [action.pod] : []));
  const deleted = decision.actions.flatMap((action) => (action.kind === "DeletePullPod" ? [action.name] : []));
  const patched = decision.actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.name] : []));
  return { ...decision, created, deleted, patched, nodes: created.map(({ spec }) => spec.nodeName) };
}

let made = 0;
function stored(pod: Pod, status: PodStatus, creationTimestamp = NOW): Pod {
  return { ...pod, metadata: { ...pod.metadata, uid: `pull-${made++}`, creationTimestamp }, status };
}

const of = (status: Omit<ContainerStatus, "name">): PodStatus => ({
  phase: "Pending",
  containerStatuses: [{ name: "image-0", ...status }],
});
const PULLED = of({ state: { terminated: { exitCode: 128, reason: "StartError" } }, imageID: "reg/sc@sha256:1" });
const PULLING = of({ state: { waiting: { reason: "ContainerCreating" } } });
const REFUSED = of({ state: { waiting: { reason: "ErrImagePull", message: "not found" } } });
const NO_ROOM: PodStatus = { phase: "Failed", reason: "OutOfpods", message: "too many pods" };

/** Returns the facts of the next pass, after these pods were created. */
function seenAfter(decision: ReturnType<typeof decided>, statuses: Readonly<Record<string, PodStatus>>): PullFacts {
  const pods = decision.created.flatMap((pod) => {
    const status = statuses[pod.spec.nodeName ?? ""];
    return status ? [stored(pod, status)] : [];
  });
  return { ...EMPTY, pods, record: decision.pulls?.record };
}

describe("a pod waits until its node has the images", () => {
  test("nothing changes for a SidecarSet without the annotation", () => {
    const plain = decide({ ...UNTOUCHED, revisions: [], sidecarSet: setOf(undefined), pods: [podOn("n1")] }, CONTEXT);
    expect(plain.actions.some(({ kind }) => kind === "PatchPod")).toBe(true);
    expect(plain.pulls).toBeUndefined();
  });

  test("the first pass creates as many pull pods as allowed, in the order of the updates, and patches no pod", () => {
    const { nodes, patched, summary } = decided(setOf(2), [podOn("n1"), podOn("n2"), podOn("n3")]);
    expect(nodes).toEqual(["n1", "n2"]);
    expect(patched).toEqual([]);
    expect(summary).toMatchObject({
      hold: "prePull",
      rules: { prePull: { nodes: 3, underWay: 2, atOnce: 2, isStuck: false } },
    });
  });

  test("the status shows the progress of pulls, also while pods of other nodes are updated or use up the budget", () => {
    const says = (set: SidecarSet, pods: readonly Pod[], pulls?: PullFacts) => {
      const { summary, failing } = decided(set, pods, pulls);
      const standing = { summary, failing, halt: undefined, latestRevision: "r", missed: undefined };
      const progressing = conditionsOf(set, standing, NOW).find(({ type }) => type === "Progressing");
      return [summary.hold, progressing?.message, explain("oneRound", summary)];
    };
    const first = decided(setOf(2), [podOn("n1"), podOn("n2"), podOn("n3")]);
    const facts = seenAfter(first, { n1: PULLED, n2: PULLING });
    const far = (now: number) =>
      expect.stringContaining(`images are pulled first on 2 nodes, ${now} now, at most 2 at once`);
    const pods = [podOn("n1"), podOn("n2"), podOn("n3")];
    expect(says(setOf(2), pods, facts)).toEqual(["none", far(1), far(1)]);
    const updating = [takenDown(updatedOn("n1")), podOn("n2"), podOn("n3")];
    expect(says(setOf(2, { maxUnavailable: 1 }), updating, facts)).toEqual(["budget", far(2), far(2)]);
  });

  test("a pod is updated when its node has pulled, and its pull pod is deleted after the update", () => {
    const set = setOf(1);
    const first = decided(set, [podOn("n1"), podOn("n2")]);
    const facts = seenAfter(first, { n1: PULLED });
    const second = decided(set, [podOn("n1"), podOn("n2")], facts);
    expect(second.patched).toEqual(["on-n1"]);
    expect(second.deleted).toEqual([]);
    const third = decided(set, [takenDown(updatedOn("n1")), podOn("n2")], facts);
    expect(third.deleted).toEqual([facts.pods[0]?.metadata?.name]);
    expect(third.nodes).toEqual(["n2"]);
  });

  test("a node where an updated pod runs needs no pull", () => {
    expect(decided(setOf(1), [updatedOn("n1"), podOn("n1")]).patched).toEqual(["on-n1"]);
    expect(decided(setOf(1), [updatedOn("n1"), podOn("n1")]).nodes).toEqual([]);
  });

  test("a pod that claims to be updated but runs the old image does not prove that its node has the new one", () => {
    const { spec, ...pod } = updatedOn("n1");
    const forged = { ...pod, spec: podOn("n1").spec };
    expect(decided(setOf(2), [forged, podOn("n1")])).toMatchObject({ patched: [], nodes: ["n1"] });
  });

  test("a new pod whose kubelet has not pulled does not prove that its node has the image", () => {
    const waiting = { state: { waiting: { reason: "ErrImagePull" } }, imageID: "", ready: false };
    const { status, ...pod } = updatedOn("n1");
    const containerStatuses = pod.spec.containers.map(({ name }) => ({ name, ...waiting }));
    const fresh = { ...pod, status: { ...status, containerStatuses } };
    expect(decided(setOf(2), [fresh, podOn("n1")])).toMatchObject({ patched: [], nodes: ["n1"] });
  });

  test("a new image in a pod's spec does not prove that its node has the image while the kubelet runs the old one", () => {
    const { spec } = updatedOn("n1");
    const old = podOn("n1").status?.containerStatuses ?? [];
    const forged = podOn("n1", { name: "forged", hash: NEW_HASH, spec, statuses: old });
    expect(decided(setOf(1), [podOn("n1"), forged])).toMatchObject({ nodes: ["n1"], patched: [] });
  });

  test("pods that are down or have the image already do not wait", () => {
    expect(decided(setOf(1), [podOn("n1", { isReady: false })]).patched).toEqual(["on-n1"]);
    expect(decided(setOf(1), [podOn("n1", { image: "reg/sc:v2" })]).nodes).toEqual([]);
  });

  test("a pod that an earlier pass has reserved, perhaps for another release, waits like the others", () => {
    const reserved = reservedFor(["uid-on-n1"]);
    const { actions } = decide(
      { ...UNTOUCHED, revisions: [], sidecarSet: setOf(1), pods: [podOn("n1")], pulls: EMPTY, reserved },
      CONTEXT,
    );
    expect(actions.map(({ kind }) => kind)).toContain("CreatePullPod");
    expect(actions.some(({ kind }) => kind === "PatchPod")).toBe(false);
  });

  test("no image is pulled for pods that the partition keeps", () => {
    const { nodes } = decided(
      setOf(5, { maxUnavailable: 10, partition: 2 }),
      ["n1", "n2", "n3"].map((n) => podOn(n)),
    );
    expect(nodes).toEqual(["n1"]);
  });

  test("while the budget is used up, the next nodes already pull", () => {
    const pods = [takenDown(updatedOn("n1")), podOn("n2")];
    const { nodes, summary } = decided(setOf(2, { maxUnavailable: 1 }), pods);
    expect(nodes).toEqual(["n2"]);
    expect(summary.hold).toBe("budget");
  });
});

describe("the number of pull pods never exceeds the wanted number", () => {
  test("pull pods are named after their places, so that overlapping passes create the same ones", () => {
    const pods = ["n1", "n2", "n3"].map((node) => podOn(node));
    const one = decided(setOf(2), pods).created.map(({ metadata }) => metadata?.name);
    const other = decided(setOf(2), pods.toReversed()).created.map(({ metadata }) => metadata?.name);
    expect(one).toEqual(other);
    expect(new Set(one).size).toBe(2);
  });

  test("a terminating pull pod keeps its place", () => {
    const set = setOf(1);
    const [pod] = decided(set, [podOn("n1")]).created;
    const going = stored(pod as Pod, PULLING);
    const facts = { ...EMPTY, pods: [{ ...going, metadata: { ...going.metadata, deletionTimestamp: NOW } }] };
    expect(decided(set, [podOn("n1")], facts).nodes).toEqual([]);
  });

  test("a node that has pulled makes room for a node whose pod is updated earlier", () => {
    const set = setOf(1);
    const facts = seenAfter(decided(set, [podOn("n2")]), { n2: PULLED });
    // The partition updates n1 and holds n2 back, so only n1 waits for a pull.
    const { deleted, nodes } = decided(set, [podOn("n1")], facts);
    expect(deleted).toHaveLength(1);
    expect(nodes).toEqual(["n1"]);
  });
});

describe("nodes that cannot pull hold their own pods only", () => {
  test("if the registry refuses a pull, the pod keeps its version, the node is named, and other pods are updated", () => {
    const set = setOf(1);
    const pods = [podOn("n1"), podOn("n2")];
    const facts = seenAfter(decided(set, pods), { n1: REFUSED });
    const second = decided(set, pods, facts);
    expect(second).toMatchObject({ patched: [], nodes: ["n2"] });
    expect(second.deleted).toHaveLength(1);
    expect(second.summary.rules.prePull).toMatchObject({ failedCount: 1, isStuck: false });
    const third = decided(set, pods, seenAfter(second, { n2: PULLED }));
    expect(third.patched).toEqual(["on-n2"]);
    const last = decided(set, [podOn("n1"), updatedOn("n2")], { ...EMPTY, record: third.pulls?.record });
    expect(last.summary).toMatchObject({ hold: "prePull", rules: { prePull: { isStuck: true } } });
    expect(last.summary.rules.prePull?.failed).toMatchObject([
      { node: "n1", kind: "refused", message: "ErrImagePull: not found" },
    ]);
  });

  test("a failed node is tried again after a wait that grows each time", () => {
    const set = setOf(1);
    const pods = [podOn("n1")];
    const second = decided(set, pods, seenAfter(decided(set, pods), { n1: REFUSED }));
    expect(second.nodes).toEqual([]);
    const record = second.pulls?.record;
    expect(decided(set, pods, { ...EMPTY, record }, "2025-06-01T00:00:29Z").nodes).toEqual([]);
    const again = decided(set, pods, { ...EMPTY, record }, "2025-06-01T00:00:30Z");
    expect(again.nodes).toEqual(["n1"]);
    const late = stored(again.created[0] as Pod, REFUSED, "2025-06-01T00:00:31Z");
    const fourth = decided(set, pods, { ...EMPTY, pods: [late], record }, "2025-06-01T00:00:32Z");
    expect(fourth.pulls?.record).toContain("n1 2 2025-06-01T00:01:32Z refused ErrImagePull: not found\n");
  });

  test.each([
    ["other pull secrets", { imagePullSecrets: [{ name: "registry" }] }],
    ["another image", { containers: [{ name: "sc", image: "reg/sc:v3" }] }],
    ["another policy", { containers: [{ name: "sc", image: "reg/sc:v2", imagePullPolicy: "Always" }] }],
  ])("nodes that failed are tried at once with %s", (_, change) => {
    const set = setOf(1);
    const pods = [podOn("n1")];
    const failed = decided(set, pods, seenAfter(decided(set, pods), { n1: REFUSED }));
    const record = { ...EMPTY, record: failed.pulls?.record };
    expect(decided(set, pods, record).nodes).toEqual([]);
    expect(decided({ ...set, spec: { ...set.spec, ...change } }, pods, record).nodes).toEqual(["n1"]);
  });

  test("the failure of one pod is counted once, however many passes see it", () => {
    const set = setOf(1);
    const pods = [podOn("n1")];
    const facts = seenAfter(decided(set, pods), { n1: REFUSED });
    const second = decided(set, pods, facts);
    const third = decided(set, pods, { ...facts, record: second.pulls?.record }, "2025-06-01T00:00:05Z");
    expect(third.pulls?.record).toBe(second.pulls?.record);
  });

  test("if the result of a pull is unknown, the pods of the node are updated without it, after all others", () => {
    const set = setOf(1);
    const pods = [podOn("n1"), podOn("n2")];
    const second = decided(set, pods, seenAfter(decided(set, pods), { n1: NO_ROOM }));
    expect(second.patched).toEqual([]);
    const third = decided(set, pods, seenAfter(second, { n2: PULLED }));
    expect(third.patched.toSorted()).toEqual(["on-n1", "on-n2"]);
  });

  describe("when pods of a StatefulSet follow their order, behind a pod whose node has failed", () => {
    const plain = setOf(1);
    const annotations = { ...plain.metadata?.annotations, "sidecarset.kruise.io/follow-ordinals": "true" };
    const set = { ...plain, metadata: { ...plain.metadata, annotations } };
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "uid-db", controller: true };
    const member = (pod: Pod) => ({ ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } });
    const pods = [0, 1, 2].map((at) => member(podOn(`n${at}`, { name: `db-${at}` })));
    const afterFailure = (status: PodStatus) => {
      const second = decided(set, pods, seenAfter(decided(set, pods), { n2: status }));
      return { second, facts: seenAfter(second, { n1: PULLED }) };
    };

    test("a failed node is tried again at its time, even if pods of a node that has pulled are waiting", () => {
      const { second, facts } = afterFailure(REFUSED);
      expect(second.nodes).toEqual(["n1"]);
      const stuck = { summary: { rules: { prePull: { nodes: 2, isStuck: true } } } };
      expect(decided(set, pods, facts)).toMatchObject({ nodes: [], deleted: [], patched: [], ...stuck });
      const due = decided(set, pods, facts, "2025-06-01T00:00:31Z");
      expect(due).toMatchObject({ nodes: ["n2"], deleted: [facts.pods[0]?.metadata?.name], ...stuck });
    });

    test("an ordered pod is updated without a pull if its result is unknown, because no pod behind it can go first", () => {
      expect(afterFailure(NO_ROOM).second.patched).toEqual(["db-2"]);
    });
  });

  test("no other node is tried after fifty failed ones", () => {
    const set = setOf(60);
    const pods = Array.from({ length: 60 }, (_, at) => podOn(`n${at}`));
    const first = decided(set, pods);
    const failed = Object.fromEntries(first.nodes.slice(0, 50).map((node) => [node, REFUSED]));
    const second = decided(set, pods, seenAfter(first, failed));
    expect(second.nodes).toEqual([]);
    expect(second.summary.rules.prePull).toMatchObject({ failedCount: 50, isStuck: true });
  });

  test("a refusal to create pull pods is recorded and reported, and creation is retried after a minute", () => {
    const set = setOf(1);
    const pods = [podOn("n1")];
    const refused = decided(set, pods, { ...EMPTY, refusal: { message: "pods is forbidden", at: NOW } });
    expect(refused.nodes).toEqual([]);
    expect(refused.summary).toMatchObject({
      hold: "prePull",
      rules: { prePull: { refusal: "pods is forbidden", isStuck: true } },
    });
    const record = refused.pulls?.record;
    expect(decided(set, pods, { ...EMPTY, record }, "2025-06-01T00:00:59Z").nodes).toEqual([]);
    const again = decided(set, pods, { ...EMPTY, record }, "2025-06-01T00:01:00Z");
    expect(again.nodes).toEqual(["n1"]);
    expect(again.summary.rules.prePull?.isStuck).toBe(true);
    const there = stored(again.created[0] as Pod, PULLING, "2025-06-01T00:01:00Z");
    expect(
      decided(set, pods, { ...EMPTY, pods: [there], record }, HOUR_LATER).summary.rules.prePull?.refusal,
    ).toBeUndefined();
  });
});

describe("the end of a rollout with pulls", () => {
  const set = setOf(2);
  const facts = seenAfter(decided(set, [podOn("n1"), podOn("n2")]), { n1: PULLED, n2: PULLING });

  test.each([
    ["the rollout is paused", setOf(2, { paused: true }), [podOn("n1"), podOn("n2")]],
    ["every pod is updated", set, [updatedOn("n1"), updatedOn("n2")]],
    ["no pod is left", set, []],
    ["the annotation is gone", setOf(undefined), [podOn("n1"), podOn("n2")]],
  ] as const)("all pull pods are deleted when %s", (_, sidecarSet, pods) => {
    expect(decided(sidecarSet, pods, facts).deleted).toHaveLength(2);
    const gone = decided(sidecarSet, pods, { ...EMPTY, record: facts.record });
    expect(gone.pulls?.record).toBeUndefined();
  });

  test("pods that pull other images are deleted when another release comes", () => {
    const next = { ...set, spec: { ...set.spec, containers: [{ name: "sc", image: "reg/sc:v3" }] } };
    expect(decided(next, [podOn("n1"), podOn("n2")], facts).deleted).toHaveLength(2);
  });
});

describe("the pod that pulls", () => {
  const secrets = { ...setOf(1).spec, imagePullSecrets: [{ name: "registry" }] };
  const containers = [
    { name: "sc", image: "reg/sc:v2", imagePullPolicy: "Always" },
    { name: "local", image: "reg/local:v1", imagePullPolicy: "Never" },
    { name: "again", image: "reg/sc:v2", imagePullPolicy: "Always" },
  ];
  const spec = { containers: containers.map(({ name }) => ({ name, image: "reg/sc:v1" })) };
  const [pod] = decided({ ...setOf(1), spec: { ...secrets, containers } }, [podOn("n1", { spec })]).created;

  test("a pull pod names its node, has each image once with the sidecar's policy, and its pull secrets", () => {
    expect(pod?.spec).toMatchObject({
      nodeName: "n1",
      imagePullSecrets: [{ name: "registry" }],
      containers: [{ image: "reg/sc:v2", imagePullPolicy: "Always", command: ["true"] }],
    });
  });

  test("a pull pod ends without a signal, has no token and no privileges, and is owned by the SidecarSet", () => {
    expect(pod?.spec).toMatchObject({
      restartPolicy: "Never",
      activeDeadlineSeconds: 600,
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
    });
    expect(pod?.metadata?.ownerReferences).toEqual([
      { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", name: "ss", uid: "uid-ss", controller: true },
    ]);
  });

  test.each([
    ["waits for its kubelet", {}, "underWay"],
    ["is being created", PULLING, "underWay"],
    ["could not start what is not in the image", PULLED, "pulled"],
    [
      "cannot be created, which comes after the pull",
      of({ state: { waiting: { reason: "CreateContainerError" } } }),
      "pulled",
    ],
    ["runs", of({ state: { running: {} } }), "pulled"],
    ["got no image", REFUSED, "refused"],
    ["has no image name", of({ state: { waiting: { reason: "InvalidImageName" } } }), "refused"],
    ["was ended without an image", of({ state: { terminated: { exitCode: 137 } }, imageID: "" }), "underWay"],
    ["found no room", NO_ROOM, "unclear"],
  ] as const)("pullOf returns the right kind for a pull pod whose container %s", (_, status, kind) => {
    expect(pullOf(stored(pod as Pod, status), NOW).kind).toBe(kind);
  });

  test("a pass gives up a kubelet that does not answer after ten minutes and a half", () => {
    expect(pullOf(stored(pod as Pod, PULLING), "2025-06-01T00:10:30Z").kind).toBe("underWay");
    expect(pullOf(stored(pod as Pod, PULLING), "2025-06-01T00:10:31Z").kind).toBe("unclear");
  });
});

test("a plan counts the nodes that pull first, and assumes that the pulls are done", () => {
  const pods = ["n1", "n2", "n3"].map((node) => podOn(node));
  const observation = { ...UNTOUCHED, revisions: [], sidecarSet: setOf(2, { maxUnavailable: 1 }), pods, pulls: EMPTY };
  const plan = planRollout(observation, { ...CONTEXT, readyAfterSeconds: 5 });
  expect(plan.before.rules.prePull).toMatchObject({ nodes: 3, atOnce: 2 });
  expect(plan.steps.map(({ atSeconds }) => atSeconds)).toEqual([0, 5, 10]);
  expect(plan).toMatchObject({ isComplete: true });
});

test("a plan keeps pods of a node that could not pull at their version, and says why", () => {
  const set = setOf(2);
  const pods = [podOn("n1"), podOn("n2"), podOn("n3")];
  const pulls = seenAfter(decided(set, pods), { n1: REFUSED, n2: NO_ROOM });
  const observation = { ...UNTOUCHED, revisions: [], sidecarSet: set, pods, pulls };
  const plan = planRollout(observation, { ...CONTEXT, readyAfterSeconds: 5 });
  expect(plan.steps.flatMap((step) => step.pods.map(({ name }) => name)).toSorted()).toEqual(["on-n2", "on-n3"]);
  expect(plan).toMatchObject({ isComplete: false, isCutShort: false, after: { hold: "prePull", updated: 2 } });
  expect(explain("oneRound", plan.after)).toContain("1 node has not pulled the images: n1 (ErrImagePull: not found)");
  expect(endOf(plan.after)).toBe("badly");
});

test("the pods of fifty nodes without room for a pull pod are updated without a pull, and then other nodes are tried", () => {
  const set = setOf(50);
  const pods = Array.from({ length: 60 }, (_, at) => podOn(`n${at}`));
  const first = decided(set, pods);
  const second = decided(set, pods, seenAfter(first, Object.fromEntries(first.nodes.map((node) => [node, NO_ROOM]))));
  expect([second.patched.length, second.nodes]).toEqual([10, []]);
  const gone = new Set(second.patched);
  const after = pods.map((pod, at) => (gone.has(pod.metadata?.name ?? "") ? updatedOn(`n${at}`) : pod));
  const third = decided(set, after, { ...EMPTY, record: second.pulls?.record });
  expect(decided(set, after, { ...EMPTY, record: third.pulls?.record }).nodes).toContain("n55");
});
