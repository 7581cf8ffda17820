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

/** A pod of the StatefulSet that its name says. */
function member(name: string, facts: PodFacts = {}, apiVersion = "apps/v1"): Pod {
  const set = name.replace(/-\d+$/, "");
  const pod = podOf({ name, ...facts });
  const owner = { apiVersion, kind: "StatefulSet", name: set, uid: `uid-of-${set}`, controller: true };
  return { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } };
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

/** Pods that the next batch takes. */
function next(sidecarSet: SidecarSet, pods: readonly Pod[], reserved: readonly string[] = []): readonly string[] {
  const { actions } = decide(observe(sidecarSet, pods, reserved), CONTEXT);
  return actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.name] : []));
}

/** Batch after batch, until nothing moves any more. */
function batches(sidecarSet: SidecarSet, pods: readonly Pod[]): readonly string[] {
  const { steps } = planRollout(observe(sidecarSet, pods), { ...CONTEXT, readyAfterSeconds: 5 });
  return steps.map((step) => step.pods.map(({ name }) => name).join(" "));
}

const A = ["a-0", "a-1", "a-2"].map((name) => member(name));
const B = ["b-0", "b-1"].map((name) => member(name, {}, "apps.kruise.io/v1beta1"));
const LONE = [podOf({ name: "x" }), podOf({ name: "y" })];

/** What it is, what there is, the batches. */
const ROLLOUTS: readonly (readonly [string, SidecarSet, readonly Pod[], readonly string[]])[] = [
  ["from the highest ordinal down, one at a time", following(), A, ["a-2", "a-1", "a-0"]],
  ["by number, not by letter", following(), ["a-2", "a-10", "a-9"].map((name) => member(name)), ["a-10", "a-9", "a-2"]],
  ["one set after the other", following(), [...B, ...A], ["a-2", "a-1", "a-0", "b-1", "b-0"]],
  ["pods of no set go on beside them", following(), [...A, ...LONE], ["a-2 x y", "a-1", "a-0"]],
  ["all at once where nobody asks for an order", following({}, "false"), [...A, ...B], ["a-0 a-1 a-2 b-0 b-1"]],
  ["the partition keeps the end of the line", following({ partition: 2 }), [...A, ...B], ["a-2", "a-1", "a-0"]],
  [
    "sets with a pod of high priority come first",
    following({ priorityStrategy: { orderPriority: [{ orderedKey: "rank" }] } }),
    [...A.map((pod) => relabelled(pod, { rank: "1" })), ...B.map((pod) => relabelled(pod, { rank: "2" }))],
    ["b-1", "b-0", "a-2", "a-1", "a-0"],
  ],
  [
    "scattering is for pods of no set",
    following({ scatterStrategy: [{ key: "zone", value: "1" }] }),
    A.map((pod, index) => relabelled(pod, { zone: String(index % 2) })),
    ["a-2", "a-1", "a-0"],
  ],
  [
    "a set that has begun is finished first",
    following(),
    [...A, member("b-1", UPDATED), ...B.slice(0, 1)],
    ["b-0", "a-2", "a-1", "a-0"],
  ],
  ["of pods that are down each waits for its turn", following(), A.map((pod) => downed(pod)), ["a-2", "a-1", "a-0"]],
  ["a pod that is down goes first", following(), [member("a-0", DOWN), ...A.slice(1)], ["a-0", "a-2", "a-1"]],
  ["the budget holds all the same", following({ maxUnavailable: 1 }), [...A, ...LONE], ["a-2", "a-1", "a-0", "x", "y"]],
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

/** What it is, what there is, what is reserved, the next batch. */
const TURNS: readonly (readonly [string, readonly Pod[], readonly string[], readonly string[]])[] = [
  ["none while one is not ready again", [...A.slice(0, 2), member("a-2", BROKEN)], [], []],
  ["none of another set while one is not ready again", [...B, member("a-2", BROKEN)], [], []],
  ["no ready one while one of its set is on its way out", [...A.slice(0, 2), leaving(member("a-2", UPDATED))], [], []],
  ["no ready one while one of its set has failed", [...A.slice(0, 2), ended(member("a-2", UPDATED))], [], []],
  ["no ready one while one without sidecars is not ready", [...A.slice(0, 2), bare(member("a-2", DOWN))], [], []],
  ["one beside a ready one without sidecars", [...A.slice(0, 2), bare(member("a-2"))], [], ["a-1"]],
  ["another set while a set cannot begin", [...A.slice(0, 2), leaving(member("a-2")), ...B], [], ["b-1"]],
  [
    "no other set while one that has begun cannot go on",
    [A[0] as Pod, member("a-1", UPDATED), leaving(member("a-2")), ...B],
    [],
    [],
  ],
  [
    "one that is down although another of its set is",
    [member("a-0", DOWN), leaving(member("a-1")), ...A.slice(2)],
    [],
    ["a-0"],
  ],
  [
    "what the last release broke, before others of its set",
    [A[0] as Pod, member("a-1", DOWN), A[2] as Pod],
    [],
    ["a-1"],
  ],
  ["the reserved one again", A, ["a-2"], ["a-2"]],
  ["the reserved one, and no higher one that has come meanwhile", A, ["a-1"], ["a-1"]],
  ["none while another is reserved that does not wait", [...A, ...B.slice(0, 1), member("b-1", UPDATED)], ["b-1"], []],
  ["none before the reserved ones are fenced, where there are several", [...A, ...B], ["a-2", "a-1"], []],
  ["the reserved one not while another of its set is down", [...A.slice(0, 2), leaving(member("a-2"))], ["a-1"], []],
  ["the first of reserved ones that are down anyway", A.map(downed), ["a-2", "a-1"], ["a-2"]],
  ["past a pod that is refused", [A[0] as Pod, refused(member("a-1"))], [], ["a-0"]],
  ["none while a container of another is between two images", [A[0] as Pod, unsettled(member("a-1"))], [], []],
  ["pods whose names are not their set's as any other", [misnamed(member("a-1")), ...A], [], ["b-a-1", "a-2"]],
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

describe("a rollout that follows ordinals takes", () => {
  test.each(ROLLOUTS)("%s", (_, sidecarSet, pods, expected) => {
    expect(batches(sidecarSet, pods)).toEqual(expected);
  });

  test.each(TURNS)("%s", (_, pods, reserved, expected) => {
    const patchPodMetadata = [{ annotations: { team: '{"a":1}' }, patchPolicy: "MergePatchJson" }];
    const set = following();
    expect(next({ ...set, spec: { ...set.spec, patchPodMetadata } }, pods, reserved)).toEqual(expected);
  });

  test("never more than one pod of all sets, and none that is ready while another of its set is not", () => {
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

/** How many pods it looked at. */
function judgeTurn(pods: readonly Pod[], reserved: ReadonlySet<string>): number {
  const set = following({ maxUnavailable: 9 });
  const states = pods.map((pod) => podStateOf(pod, set, undefined));
  const { selected } = selectPods(set, states, { reserved, StrictMaxUnavailable: false });
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

describe("a pod of a StatefulSet is told", () => {
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
    ["who of its set comes first", "a-0", A, "3 of 3 that wait: default/a-2 of the same set comes first"],
    [
      "which set comes first",
      "b-0",
      [...A, ...B],
      "5 of 5 that wait: the set default/a comes first, now with default/a-2",
    ],
    [
      "who of its set is not ready again",
      "a-0",
      [...A.slice(0, 2), member("a-2", BROKEN)],
      "2 of 2 that wait: default/a-2 of the same set is being upgraded, and has to be ready again first",
    ],
    [
      "which set is not ready again",
      "b-0",
      [...A.slice(0, 2), member("a-2", BROKEN), ...B],
      "4 of 4 that wait: the set default/a comes first, and its default/a-2 has to be ready again",
    ],
    [
      "who of its set is down",
      "a-1",
      [...A.slice(0, 2), leaving(member("a-2"))],
      "1 of 2 that wait: default/a-2 of the same set is not ready: fix it, or delete it, and its successor has the new version",
    ],
    [
      "which set has begun and cannot go on",
      "b-0",
      [...A.slice(0, 1), member("a-1", UPDATED), leaving(member("a-2")), ...B],
      "3 of 3 that wait: the set default/a has begun, and waits for default/a-2, which is not ready",
    ],
  ];
  test.each(ROWS)("%s", (_, name, pods, expected) => {
    const set = { ...following(), status: { observedGeneration: 2 } };
    const pod = pods.find(({ metadata }) => metadata?.name === name) as Pod;
    const step = explainPod(pod, set, { ...facts, pods }).find(({ reason }) => reason === "OrderOfSets");
    expect(step).toEqual({ reason: "OrderOfSets", verdict: "wait", message: `the pod is ${expected}` });
  });

  test("whose turn it is, and what the whole waits for", () => {
    const set = { ...following(), status: { observedGeneration: 2 } };
    const [first] = explainPod(A[2] as Pod, set, { ...facts, pods: A }).filter(({ reason }) => reason === "NextInLine");
    expect(first?.verdict).toBe("ok");
    const { summary } = decide(observe(set, A), CONTEXT);
    expect(summary).toMatchObject({ hold: "order", selected: 1, order: "default/a-2 of the same set comes first" });
    const all = explainSidecarSet(set, { ...facts, pods: A }).find(({ reason }) => reason === "OrderOfSets");
    expect(all?.message).toBe(
      "pods of StatefulSets are updated one at a time, in their order: default/a-2 of the same set comes first",
    );
  });
});
