import { array, assert, boolean, constantFrom, property, record } from "fast-check";
import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { explainPod, explainSidecarSet } from "../../../shared/core/inspect/explain/explain.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { decide, type Observation } from "../../../shared/core/rollout/decide.ts";
import { planRollout } from "../../../shared/core/rollout/plan/plan.ts";
import { selectPods } from "../../../shared/core/rollout/select/select.ts";
import { projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import {
  CONTEXT,
  NEW_HASH,
  NOW,
  type PodFacts,
  podOf,
  reservedFor,
  sidecarSetOf,
  UNTOUCHED,
} from "../../support/rollout-fixture.ts";

const UPDATED: PodFacts = { hash: NEW_HASH, image: "reg/sc:v2" };
const BROKEN: PodFacts = { ...UPDATED, isReady: false };
const EVERY = { matchExpressions: [{ key: "app", operator: "DoesNotExist" as const }] };
const DOWN: PodFacts = { isReady: false };

/** Returns a pod of the StatefulSet whose name starts the pod's name. */
function member(name: string, facts: PodFacts = {}, apiVersion = "apps/v1"): Pod {
  const set = name.replace(/-\d+$/, "");
  const pod = podOf({ name, ...facts });
  const owner = { apiVersion, kind: "StatefulSet", name: set, uid: `uid-of-${set}`, controller: true };
  return { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } };
}

/** Returns the pod with a start time at which it was already not ready. */
function neverReady(pod: Pod): Pod {
  const startTime = pod.status?.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime;
  return { ...pod, status: { ...pod.status, ...(startTime ? { startTime } : {}) } };
}

function movedTo(namespace: string, pod: Pod): Pod {
  return { ...pod, metadata: { ...pod.metadata, namespace } };
}

function without(pod: Pod, annotation: string): Pod {
  const annotations = Object.entries(pod.metadata?.annotations ?? {}).filter(([key]) => key !== annotation);
  return { ...pod, metadata: { ...pod.metadata, annotations: Object.fromEntries(annotations) } };
}

function following(updateStrategy: UpdateStrategy = {}, value = "true"): SidecarSet {
  const set = sidecarSetOf({ selector: EVERY, updateStrategy: { maxUnavailable: 5, ...updateStrategy } });
  const annotations = { ...set.metadata?.annotations, "sidecarset.kruise.io/follow-ordinals": value };
  return { ...set, metadata: { ...set.metadata, annotations } };
}

function observe(sidecarSet: SidecarSet, pods: readonly Pod[], reserved: readonly string[] = []): Observation {
  const projected = pods.map((pod) => projectPod(pod, sidecarSet));
  const uids = reserved.map((name) => `uid-${name}`);
  return { sidecarSet, pods: projected, revisions: [], ...UNTOUCHED, reserved: reservedFor(uids) };
}

/** Returns the pods of the next batch. */
function next(sidecarSet: SidecarSet, pods: readonly Pod[], reserved: readonly string[] = []): readonly string[] {
  const { actions } = decide(observe(sidecarSet, pods, reserved), CONTEXT);
  return actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.name] : []));
}

/** Returns the pods of every batch until the rollout stops. */
function batches(sidecarSet: SidecarSet, pods: readonly Pod[]): readonly string[] {
  const { steps } = planRollout(observe(sidecarSet, pods), { ...CONTEXT, readyAfterSeconds: 5 });
  return steps.map((step) => step.pods.map(({ name }) => name).join(" "));
}

const A = ["a-0", "a-1", "a-2"].map((name) => member(name));
const B = ["b-0", "b-1"].map((name) => member(name, {}, "apps.kruise.io/v1beta1"));
const LONE = [podOf({ name: "x" }), podOf({ name: "y" })];

/** Rows: the title, the SidecarSet, the pods, the expected batches. */
const ROLLOUTS: readonly (readonly [string, SidecarSet, readonly Pod[], readonly string[]])[] = [
  [
    "pods of a StatefulSet are upgraded one at a time, from the highest ordinal down",
    following(),
    A,
    ["a-2", "a-1", "a-0"],
  ],
  [
    "pods of a StatefulSet are sorted by the number in their name, not by its letters",
    following(),
    ["a-2", "a-10", "a-9"].map((name) => member(name)),
    ["a-10", "a-9", "a-2"],
  ],
  ["one StatefulSet is upgraded after the other", following(), [...B, ...A], ["a-2", "a-1", "a-0", "b-1", "b-0"]],
  ["pods without a StatefulSet do not wait for the order", following(), [...A, ...LONE], ["a-2 x y", "a-1", "a-0"]],
  [
    "all pods are upgraded at once when the annotation is false",
    following({}, "false"),
    [...A, ...B],
    ["a-0 a-1 a-2 b-0 b-1"],
  ],
  ["the partition keeps the last pods of the order", following({ partition: 2 }), [...A, ...B], ["a-2", "a-1", "a-0"]],
  [
    "a StatefulSet with a pod of high priority is upgraded first",
    following({ priorityStrategy: { orderPriority: [{ orderedKey: "rank" }] } }),
    [...A.map((pod) => relabelled(pod, { rank: "1" })), ...B.map((pod) => relabelled(pod, { rank: "2" }))],
    ["b-1", "b-0", "a-2", "a-1", "a-0"],
  ],
  [
    "scatterStrategy does not change the order of a StatefulSet",
    following({ scatterStrategy: [{ key: "zone", value: "1" }] }),
    A.map((pod, index) => relabelled(pod, { zone: String(index % 2) })),
    ["a-2", "a-1", "a-0"],
  ],
  [
    "a StatefulSet whose upgrade has begun is finished first",
    following(),
    [...A, member("b-1", UPDATED), ...B.slice(0, 1)],
    ["b-0", "a-2", "a-1", "a-0"],
  ],
  [
    "pods of a StatefulSet that are down are upgraded one at a time",
    following(),
    A.map((pod) => downed(pod)),
    ["a-2", "a-1", "a-0"],
  ],
  [
    "a pod that is down is upgraded before the ready pods of its StatefulSet",
    following(),
    [member("a-0", DOWN), ...A.slice(1)],
    ["a-0", "a-2", "a-1"],
  ],
  [
    "maxUnavailable also limits a rollout that follows ordinals",
    following({ maxUnavailable: 1 }),
    [...A, ...LONE],
    ["a-2", "a-1", "a-0", "x", "y"],
  ],
];

function relabelled(pod: Pod, labels: Readonly<Record<string, string>>): Pod {
  return { ...pod, metadata: { ...pod.metadata, labels } };
}

function downed(pod: Pod): Pod {
  return member(pod.metadata?.name ?? "", DOWN);
}

const ended = (pod: Pod): Pod => ({ ...pod, status: { ...pod.status, phase: "Failed" } });
const leaving = (pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: NOW } });
const bare = (pod: Pod): Pod => without(pod, "kruise.io/sidecarset-injected-list");

/** Rows: the title, the pods, the reserved pods, the expected next batch. */
const TURNS: readonly (readonly [string, readonly Pod[], readonly string[], readonly string[]])[] = [
  [
    "no pod is selected while an updated pod of its set is not ready",
    [...A.slice(0, 2), member("a-2", BROKEN)],
    [],
    [],
  ],
  ["no pod is selected while an updated pod of another set is not ready", [...B, member("a-2", BROKEN)], [], []],
  [
    "no ready pod is selected while a pod of its set is being deleted",
    [...A.slice(0, 2), leaving(member("a-2", UPDATED))],
    [],
    [],
  ],
  [
    "no ready pod is selected while a pod of its set has failed",
    [...A.slice(0, 2), ended(member("a-2", UPDATED))],
    [],
    [],
  ],
  [
    "no ready pod is selected while a pod of its set without sidecars is not ready",
    [...A.slice(0, 2), bare(member("a-2", DOWN))],
    [],
    [],
  ],
  [
    "a ready pod is selected when the pod of its set without sidecars is ready",
    [...A.slice(0, 2), bare(member("a-2"))],
    [],
    ["a-1"],
  ],
  ["another set begins when the first set cannot begin", [...A.slice(0, 2), leaving(member("a-2")), ...B], [], ["b-1"]],
  [
    "no other set begins while a set that has begun cannot continue",
    [A[0] as Pod, member("a-1", UPDATED), leaving(member("a-2")), ...B],
    [],
    [],
  ],
  [
    "a set of another namespace begins while a set that has begun cannot continue",
    [A[0] as Pod, member("a-1", UPDATED), leaving(member("a-2")), ...B.map((pod) => movedTo("other", pod))],
    [],
    ["b-1"],
  ],
  [
    "a pod that names the uid of another namespace's set does not hold that set",
    [...B, movedTo("other", leaving(member("b-9")))],
    [],
    ["b-1"],
  ],
  [
    "a pod that is down is selected although another pod of its set is being deleted",
    [member("a-0", DOWN), leaving(member("a-1")), ...A.slice(2)],
    [],
    ["a-0"],
  ],
  [
    "a pod that the last release broke is selected before the other pods of its set",
    [A[0] as Pod, member("a-1", DOWN), A[2] as Pod],
    [],
    ["a-1"],
  ],
  ["a reserved pod is selected again", A, ["a-2"], ["a-2"]],
  ["a reserved pod is selected before a pod with a higher ordinal", A, ["a-1"], ["a-1"]],
  [
    "no pod is selected while an updated pod is reserved",
    [...A, ...B.slice(0, 1), member("b-1", UPDATED)],
    ["b-1"],
    [],
  ],
  ["no pod is selected while several ready pods are reserved", [...A, ...B], ["a-2", "a-1"], []],
  [
    "a reserved pod is not selected while another pod of its set is being deleted",
    [...A.slice(0, 2), leaving(member("a-2"))],
    ["a-1"],
    [],
  ],
  ["the first of several reserved pods is selected when they are down already", A.map(downed), ["a-2", "a-1"], ["a-2"]],
  ["a pod whose upgrade is refused is skipped", [A[0] as Pod, refused(member("a-1"))], [], ["a-0"]],
  [
    "no pod is selected while a container of another pod is between two images",
    [A[0] as Pod, unsettled(member("a-1"))],
    [],
    [],
  ],
  [
    "a pod whose name does not belong to its StatefulSet does not wait for the order",
    [misnamed(member("a-1")), ...A],
    [],
    ["b-a-1", "a-2"],
  ],
];

function refused(pod: Pod): Pod {
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...pod.metadata?.annotations, team: "{" } } };
}

function unsettled(pod: Pod): Pod {
  const name = "kruise.io/sidecarset-inplace-update-state";
  const state = { ss: { revision: "x", updateTimestamp: NOW, lastContainerStatuses: { sc: { imageID: "old" } } } };
  const statuses = (pod.status?.containerStatuses ?? []).map((one) => ({ ...one, image: "other", imageID: "old" }));
  const annotations = { ...pod.metadata?.annotations, [name]: JSON.stringify(state) };
  return { ...pod, metadata: { ...pod.metadata, annotations }, status: { ...pod.status, containerStatuses: statuses } };
}

function misnamed(pod: Pod): Pod {
  return { ...pod, metadata: { ...pod.metadata, name: `b-${pod.metadata?.name}`, uid: "uid-misnamed" } };
}

describe("follow-ordinals", () => {
  test.each(ROLLOUTS)("%s", (_, sidecarSet, pods, expected) => {
    expect(batches(sidecarSet, pods)).toEqual(expected);
  });

  test("with ignore-never-ready, a set whose updated pod was never ready holds no set of another namespace", () => {
    const set = following();
    const annotations = { ...set.metadata?.annotations, "sidecarset.kruise.io/ignore-never-ready": "true" };
    const ignoring = { ...set, metadata: { ...set.metadata, annotations } };
    const pods = (namespace: string) => [
      ...A.slice(0, 2),
      neverReady(member("a-2", BROKEN)),
      ...B.map((pod) => movedTo(namespace, pod)),
    ];
    expect([next(set, pods("other")), next(ignoring, pods("other"))]).toEqual([[], ["b-1"]]);
    expect(next(ignoring, pods("default"))).toEqual([]);
  });

  test.each(TURNS)("%s", (_, pods, reserved, expected) => {
    const patchPodMetadata = [{ annotations: { team: '{"a":1}' }, patchPolicy: "MergePatchJson" }];
    const set = following();
    expect(next({ ...set, spec: { ...set.spec, patchPodMetadata } }, pods, reserved)).toEqual(expected);
  });

  test("at most one pod is selected, and no ready pod while another pod of its set is not ready", () => {
    const facts = record({ isUpdated: boolean(), isReady: boolean(), isReserved: boolean() });
    let taken = 0;
    let tried = 0;
    assert(
      property(array(facts, { minLength: 2, maxLength: 9 }), constantFrom(1, 2, 3), (all, sets) => {
        const pods = all.map(({ isUpdated, isReady }, index) =>
          member(`${"abc"[index % sets]}-${index}`, { ...(isUpdated ? UPDATED : {}), isReady }),
        );
        const reserved = new Set(
          pods.filter((_, index) => all[index]?.isReserved).map(({ metadata }) => metadata?.uid ?? ""),
        );
        tried++;
        taken += judgeTurn(pods, reserved);
      }),
      { numRuns: 1_000 },
    );
    expect(taken).toBeGreaterThan(tried / 20);
  });
});

/** Checks the selected pod, and returns how many pods were selected. */
function judgeTurn(pods: readonly Pod[], reserved: ReadonlySet<string>): number {
  const set = following({ maxUnavailable: 9 });
  const states = pods.map((pod) => podStateOf(pod, set, undefined));
  const { selected } = selectPods(set, states, {
    reserved,
    StrictMaxUnavailable: false,
    rules: { ordinals: new Map() },
  });
  expect(selected.length).toBeLessThanOrEqual(1);
  const [one] = selected;
  if (!one) return 0;
  const others = states.filter((state) => state !== one);
  expect(others.filter(({ isUpdated, isReady }) => isUpdated && !isReady)).toEqual([]);
  const own = others.filter(({ pod }) => pod.metadata?.name?.[0] === one.pod.metadata?.name?.[0]);
  if (one.isReady) expect(own.filter(({ isReady }) => !isReady)).toEqual([]);
  const higher = own.filter(({ pod, isUpdated }) => !isUpdated && ordinal(pod) > ordinal(one.pod));
  if (one.isReady && !reserved.has(one.pod.metadata?.uid ?? "")) expect(higher).toEqual([]);
  return 1;
}

const ordinal = ({ metadata }: Pod): number => Number(metadata?.name?.slice(2));

describe("explain for a StatefulSet", () => {
  const facts = {
    namespace: { metadata: { name: "default" } },
    registrations: [{ name: "mpod.kb.io" }],
    sidecarSets: [],
    revisions: [],
    ...UNTOUCHED,
    ...CONTEXT,
    lastPass: NOW,
  };
  const ROWS: readonly (readonly [string, string, readonly Pod[], string])[] = [
    [
      "explain names the pod of the same set that comes first",
      "a-0",
      A,
      "3 of 3 that wait: default/a-2 of the same set comes first",
    ],
    [
      "explain names the set that comes first",
      "b-0",
      [...A, ...B],
      "5 of 5 that wait: the set default/a comes first, now with default/a-2",
    ],
    [
      "explain names the updated pod of the same set that is not ready",
      "a-0",
      [...A.slice(0, 2), member("a-2", BROKEN)],
      "2 of 2 that wait: default/a-2 of the same set has the new version, and has to be ready first",
    ],
    [
      "explain names the other set whose updated pod is not ready",
      "b-0",
      [...A.slice(0, 2), member("a-2", BROKEN), ...B],
      "4 of 4 that wait: the set default/a comes first, and its default/a-2 has to be ready",
    ],
    [
      "explain names the pod of the same set that is down",
      "a-1",
      [...A.slice(0, 2), leaving(member("a-2"))],
      "1 of 2 that wait: default/a-2 of the same set is not ready: fix it, or delete it, and its successor has the new version",
    ],
    [
      "explain names the set that has begun and cannot continue",
      "b-0",
      [...A.slice(0, 1), member("a-1", UPDATED), leaving(member("a-2")), ...B],
      "3 of 3 that wait: the set default/a has begun, and waits for default/a-2, which is not ready",
    ],
    [
      "explain names the pod of the same set that is down, not a set of another namespace that cannot continue",
      "b-0",
      [
        ...[...A.slice(0, 1), member("a-1", UPDATED), leaving(member("a-2"))],
        ...[member("b-0"), leaving(member("b-1"))].map((pod) => movedTo("other", pod)),
      ],
      "2 of 2 that wait: other/b-1 of the same set is not ready: fix it, or delete it, and its successor has the new version",
    ],
    [
      "explain names the set of the same namespace that cannot continue, where one of another namespace cannot either",
      "c-0",
      [
        ...[...A.slice(0, 1), member("a-1", UPDATED), leaving(member("a-2"))],
        ...[member("b-0"), member("b-1", UPDATED), leaving(member("b-2")), member("c-0")].map((pod) =>
          movedTo("other", pod),
        ),
      ],
      "3 of 3 that wait: the set other/b has begun, and waits for other/b-2, which is not ready",
    ],
  ];
  test.each(ROWS)("%s", (_, name, pods, expected) => {
    const set = { ...following(), status: { observedGeneration: 2 } };
    const pod = pods.find(({ metadata }) => metadata?.name === name) as Pod;
    const step = explainPod(pod, set, { ...facts, pods }).find(({ reason }) => reason === "OrderOfSets");
    expect(step).toEqual({ reason: "OrderOfSets", verdict: "wait", message: `the pod is ${expected}` });
  });

  test("explain marks the pod that comes first with NextInLine, and the summary names that pod", () => {
    const set = { ...following(), status: { observedGeneration: 2 } };
    const [first] = explainPod(A[2] as Pod, set, { ...facts, pods: A }).filter(({ reason }) => reason === "NextInLine");
    expect(first?.verdict).toBe("ok");
    const { summary } = decide(observe(set, A), CONTEXT);
    expect(summary).toMatchObject({
      hold: "order",
      selected: 1,
      rules: { ordinals: { reason: "default/a-2 of the same set comes first", isStuck: false } },
    });
    const all = explainSidecarSet(set, { ...facts, pods: A }).find(({ reason }) => reason === "OrderOfSets");
    expect(all?.message).toBe(
      "pods of StatefulSets are updated one at a time, in their order: default/a-2 of the same set comes first",
    );
  });
});
