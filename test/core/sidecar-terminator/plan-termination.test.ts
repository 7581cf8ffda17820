import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ContainerStatus, EnvVar, Pod } from "../../../shared/api/kubernetes.ts";
import {
  areSuccessful,
  areTerminated,
  isWaitingForSidecars,
  unfinished,
} from "../../../shared/core/sidecar-terminator/job-sidecars.ts";
import {
  finishPod,
  planEnding,
  planTermination,
  type TerminationAction,
  terminationRequestName,
} from "../../../shared/core/sidecar-terminator/plan-termination.ts";
import { holds } from "../../properties/holds.ts";
import { listedPod } from "../../support/objects.ts";

const NORMAL: EnvVar = { name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", value: "true" };
const IGNORING: EnvVar = { name: "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE", value: "true" };
const BY_IMAGE: EnvVar = { name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE", value: "exit:1" };

interface Given {
  readonly env?: readonly EnvVar[];
  /** absent: it runs */
  readonly exitCode?: number | undefined;
}

function podOf(containers: readonly Given[], restartPolicy = "Never"): Pod {
  const statusOf = ({ exitCode }: Given, index: number): ContainerStatus => ({
    name: `c${index}`,
    state: exitCode === undefined ? { running: {} } : { terminated: { exitCode } },
  });
  return listedPod(
    { name: "job", namespace: "ns", uid: "u" },
    {
      nodeName: "n",
      restartPolicy,
      containers: containers.map(({ env = [] }, index) => ({ name: `c${index}`, image: `i${index}`, env })),
    },
    { phase: "Running", containerStatuses: containers.map(statusOf) },
  );
}

const deleted = (pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: NOW } });
const pending = (pod: Pod): Pod => ({ ...pod, status: { ...pod.status, phase: "Pending" } });

const NODE = { metadata: { name: "n" } };
const VIRTUAL = { metadata: { name: "n", labels: { type: "virtual-kubelet" } } };
const NOW = "2025-06-01T00:00:00Z";

function said(action: TerminationAction): string {
  switch (action.kind) {
    case "SwapImages":
      return `swap ${action.images.map(({ container, to }) => `${container}→${to}`)}`;
    case "CreateRequest":
      return `request ${action.request.spec.containers.map(({ name }) => name)}`;
    case "FinishPod":
      return action.phase;
    case "RecordEvent":
      return "event";
    default:
      return action satisfies never;
  }
}

function planOf(pod: Pod, node = NODE, hasRequest = false): readonly string[] {
  const plan = planTermination(pod, { node, hasRequest, now: NOW });
  return plan.kind === "plan" ? plan.actions.map(said) : [plan.message];
}

describe("the sidecars of a job", () => {
  const rows: readonly [sentence: string, pod: Pod, expected: readonly string[]][] = [
    ["are left alone while the job runs", podOf([{}, { env: [NORMAL] }]), []],
    ["are ended when it is done", podOf([{ exitCode: 0 }, { env: [NORMAL] }]), ["request c1", "event"]],
    ["are ended when it failed for good", podOf([{ exitCode: 1 }, { env: [NORMAL] }]), ["request c1", "event"]],
    ["are left alone when it will be tried again", podOf([{ exitCode: 1 }, { env: [NORMAL] }], "OnFailure"), []],
    ["are left alone where pods run for ever", podOf([{ exitCode: 0 }, { env: [NORMAL] }], "Always"), []],
    ["are left alone once they have ended", podOf([{ exitCode: 0 }, { env: [NORMAL], exitCode: 9 }]), []],
    [
      "count as failed with the job's own containers, not with theirs",
      podOf([{ exitCode: 3 }, { env: [NORMAL, IGNORING] }]),
      ["Failed", "request c1", "event"],
    ],
    ["are left alone in a pod that is going", deleted(podOf([{ exitCode: 0 }, { env: [NORMAL] }])), []],
    ["are left alone in a pod that waits", pending(podOf([{ exitCode: 0 }, { env: [NORMAL] }])), []],
    ["are none without the word true", podOf([{ exitCode: 0 }, { env: [{ name: NORMAL.name }] }]), []],
    ["need more than the wish to ignore their exit code", podOf([{ exitCode: 0 }, { env: [IGNORING] }]), []],
  ];
  test.each(rows)("%s", (_, pod, expected) => {
    expect(planOf(pod)).toEqual(expected);
  });

  test("are ended by their image where nothing can recreate a container, and told of again until they have", () => {
    const pod = podOf([{ exitCode: 0 }, { env: [BY_IMAGE] }]);
    expect(planOf(pod, VIRTUAL)).toEqual(["swap c1→exit:1", "event"]);
    const swapped = pod.spec.containers.map((container) => ({ ...container, image: "exit:1" }));
    expect(planOf({ ...pod, spec: { ...pod.spec, containers: swapped } }, VIRTUAL)).toEqual(["event"]);
  });

  test("have one request, whoever it was for", () => {
    const pod = podOf([{ exitCode: 0 }, { env: [NORMAL] }]);
    expect(planOf(pod, NODE, true)).toEqual([]);
    const both = podOf([{ exitCode: 0 }, { env: [NORMAL], exitCode: 0 }, { env: [NORMAL, IGNORING] }]);
    expect(planOf(both, NODE, true)).toEqual(["Succeeded"]);
  });

  test("are not judged before every container has a status", () => {
    const pod = podOf([{ exitCode: 0 }, { env: [NORMAL] }]);
    const containerStatuses = pod.status?.containerStatuses?.slice(0, 1) ?? [];
    expect(isWaitingForSidecars({ ...pod, status: { ...pod.status, containerStatuses } })).toBe(false);
  });
});

test("a status of a container that the pod does not have is waited for by nobody", () => {
  const pod = podOf([{ exitCode: 0 }, { env: [NORMAL] }]);
  const named = (pod.status?.containerStatuses ?? []).map((one) => (one.name === "c1" ? { ...one, name: "x" } : one));
  const other = { ...pod, status: { ...pod.status, containerStatuses: named } };
  expect([isWaitingForSidecars(pod), isWaitingForSidecars(other)]).toEqual([true, false]);
});

describe("containers", () => {
  const pod = podOf([{ exitCode: 0 }, { exitCode: 2 }, {}]);
  const statuses = pod.status?.containerStatuses ?? [];
  const seeing = (containerStatuses: readonly ContainerStatus[]): Pod => ({ ...pod, status: { containerStatuses } });
  const { status: _status, ...unseen } = pod;
  const rows: readonly [sentence: string, pod: Pod, names: readonly string[], expected: object][] = [
    ["that have ended well", pod, ["c0"], { areTerminated: true, areSuccessful: true, unfinished: [] }],
    ["that have failed", pod, ["c0", "c1"], { areTerminated: true, areSuccessful: false, unfinished: [] }],
    ["that run", pod, ["c0", "c2"], { areTerminated: false, areSuccessful: false, unfinished: ["c2"] }],
    [
      "beside one of which nothing is known",
      seeing(statuses.slice(0, 2)),
      ["c0"],
      { areTerminated: false, areSuccessful: false, unfinished: [] },
    ],
    ["of which nothing is known", unseen, ["c0"], { areTerminated: false, areSuccessful: false, unfinished: ["c0"] }],
    [
      "without a state",
      seeing(statuses.map(({ name }) => ({ name }))),
      ["c0"],
      { areTerminated: false, areSuccessful: false, unfinished: ["c0"] },
    ],
  ];
  test.each(rows)("%s", (_, given, names, expected) => {
    expect({
      areTerminated: areTerminated(given, names),
      areSuccessful: areSuccessful(given, names),
      unfinished: unfinished(given, names),
    }).toEqual(expected);
  });

  test("that exit without a code have ended well", () => {
    expect(areSuccessful(seeing(statuses.map(({ name }) => ({ name, state: { terminated: {} } }))), ["c0"])).toBe(true);
  });
});

describe("what is written for a pod", () => {
  const named = (...names: readonly string[]): Pod => {
    const given = podOf([{ exitCode: 0 }, ...names.map(() => ({ env: [NORMAL] }))]);
    const nameOf = (index: number) => names[index - 1] ?? "job";
    return {
      ...given,
      spec: {
        ...given.spec,
        containers: given.spec.containers.map((one, index) => ({ ...one, name: nameOf(index) })),
      },
      status: {
        ...given.status,
        containerStatuses: (given.status?.containerStatuses ?? []).map((one, index) => ({
          ...one,
          name: nameOf(index),
        })),
      },
    };
  };

  test("names its sidecars in their order", () => {
    const plan = planTermination(named("z", "b"), { node: NODE, hasRequest: false, now: NOW });
    expect(plan).toEqual({
      kind: "plan",
      actions: [
        {
          kind: "CreateRequest",
          request: {
            apiVersion: "apps.kruise.io/v1beta1",
            kind: "ContainerRecreateRequest",
            metadata: {
              namespace: "ns",
              name: "sidecar-termination-u",
              ownerReferences: [
                { apiVersion: "v1", kind: "Pod", name: "job", uid: "u", controller: true, blockOwnerDeletion: true },
              ],
            },
            spec: {
              podName: "job",
              containers: [{ name: "b" }, { name: "z" }],
              strategy: { forceRecreate: true, failurePolicy: "Ignore" },
            },
          },
        },
        {
          kind: "RecordEvent",
          type: "Normal",
          reason: "SidecarTerminator",
          message: "Kruise SidecarTerminator is trying to terminate sidecar [b z] using crr",
        },
      ],
    });
  });

  test("touches no sidecar that has ended", () => {
    const pod = podOf([{ exitCode: 0 }, { env: [BY_IMAGE], exitCode: 0 }, { env: [BY_IMAGE] }]);
    expect(planOf(pod, VIRTUAL)).toEqual(["swap c2→exit:1", "event"]);
  });

  test("says that its node is not there", () => {
    const pod = podOf([{ exitCode: 0 }, { env: [NORMAL] }]);
    const { nodeName: _, ...spec } = pod.spec;
    const view = { node: undefined, hasRequest: false, now: NOW };
    expect(planTermination(pod, view)).toEqual({ kind: "refused", message: 'nodes "n" not found' });
    expect(planTermination({ ...pod, spec }, view)).toEqual({ kind: "refused", message: 'nodes "" not found' });
  });

  test("can do without names, and without images", () => {
    const pod = podOf([{ exitCode: 0 }, { env: [NORMAL] }]);
    const { metadata: _, ...nameless } = pod;
    expect(terminationRequestName(nameless)).toBe("sidecar-termination-");
    const plan = planTermination(nameless, { node: {}, hasRequest: false, now: NOW });
    const [create] = plan.kind === "plan" ? plan.actions : [];
    expect(create).toMatchObject({
      request: { metadata: { namespace: "", ownerReferences: [{ name: "", uid: "" }] }, spec: { podName: "" } },
    });
    const imageless = podOf([{ exitCode: 0 }, { env: [BY_IMAGE] }]);
    const containers = imageless.spec.containers.map(({ image: _image, ...one }) => one);
    const swapped = planTermination(
      { ...imageless, spec: { ...imageless.spec, containers } },
      { node: VIRTUAL, hasRequest: false, now: NOW },
    );
    expect(swapped.kind === "plan" ? swapped.actions[0] : undefined).toEqual({
      kind: "SwapImages",
      images: [{ index: 1, container: "c1", from: "", to: "exit:1" }],
    });
  });

  test.each(["Succeeded", "Failed"])("is no phase where it is %s already", (phase) => {
    const pod = podOf([{ exitCode: 0 }, { env: [NORMAL] }]);
    expect(finishPod({ ...pod, status: { ...pod.status, phase } }, NOW)).toEqual([]);
  });

  test("is its phase, and why", () => {
    const { status: _, ...unseen } = podOf([{ exitCode: 0 }]);
    expect(finishPod(unseen, NOW)).toEqual([
      {
        kind: "FinishPod",
        phase: "Failed",
        condition: {
          type: "SidecarTerminated",
          status: "True",
          lastTransitionTime: NOW,
          message: "Terminated by Sidecar Terminator",
        },
      },
    ]);
  });
});

test("a container of the job itself is never touched, and nothing is done before all of them have ended", () => {
  const container = fc.record({
    env: fc.subarray([NORMAL, IGNORING, BY_IMAGE]),
    exitCode: fc.option(fc.constantFrom(0, 1), { nil: undefined }),
  });
  const cases = fc.record({
    containers: fc.array(container, { minLength: 1, maxLength: 5 }),
    node: fc.constantFrom(NODE, VIRTUAL),
    restartPolicy: fc.constantFrom("Never", "OnFailure", "Always"),
  });
  holds(cases, ["acts", "does nothing"], ({ containers, node, restartPolicy }, seen) => {
    const pod = podOf(containers, restartPolicy);
    const plan = planTermination(pod, { node, hasRequest: false, now: NOW });
    const actions = plan.kind === "plan" ? plan.actions : [];
    const isMain = ({ env = [] }: Given) => !env.includes(NORMAL) && !env.includes(BY_IMAGE);
    const mains = new Set(containers.flatMap((given, index) => (isMain(given) ? [`c${index}`] : [])));
    const areDone = containers.every((given) => !isMain(given) || given.exitCode !== undefined);
    seen(actions.length > 0 ? "acts" : "does nothing");
    expect(actions.length === 0 || areDone).toBe(true);
    const touched = actions.flatMap((action) => {
      if (action.kind === "SwapImages") return action.images.map(({ container: name }) => name);
      return action.kind === "CreateRequest" ? action.request.spec.containers.map(({ name }) => name) : [];
    });
    expect(touched.filter((name) => mains.has(name))).toEqual([]);
  });
});

describe("without a daemon, the sidecars of a job", () => {
  const DONE: Given = { exitCode: 0 };
  const ending = (pod: Pod, { node = NODE, isPhaseFirst = false } = {}) => {
    const plan = planEnding(pod, { node, isPhaseFirst, now: NOW });
    return plan.kind === "plan"
      ? [...plan.actions.map(said), ...plan.left.map((name) => `left ${name}`)]
      : [plan.message];
  };
  const plain: Given = { env: [NORMAL] };
  const ignoring: Given = { env: [NORMAL, IGNORING] };
  const swappable: Given = { env: [NORMAL, BY_IMAGE] };
  const rows: readonly [
    sentence: string,
    containers: readonly Given[],
    safe: readonly string[],
    first: readonly string[],
  ][] = [
    ["that are nothing but sidecars are left", [DONE, plain], ["left c1"], ["Succeeded"]],
    ["whose exit code shall not count end with the pod", [DONE, ignoring], ["Succeeded"], ["Succeeded"]],
    ["fail with the job", [{ exitCode: 1 }, ignoring], ["Failed"], ["Failed"]],
    ["that have an image to end by get it", [DONE, swappable], ["swap c1→exit:1"], ["swap c1→exit:1"]],
    ["wait for each other", [DONE, ignoring, plain], ["left c2"], ["Succeeded"]],
    ["wait for an image that ends", [DONE, ignoring, swappable], ["swap c2→exit:1"], ["swap c2→exit:1"]],
    [
      "that others waited for have ended",
      [DONE, ignoring, { ...swappable, exitCode: 0 }],
      ["Succeeded"],
      ["Succeeded"],
    ],
    ["that asked for an image alone are left, as by OpenKruise", [DONE, { env: [BY_IMAGE] }], [], []],
    ["are left alone while the job runs", [{}, plain], [], []],
  ];
  test.each(rows)("%s", (_, containers, safe, first) => {
    expect(ending(podOf(containers))).toEqual(safe);
    expect(ending(podOf(containers), { isPhaseFirst: true })).toEqual(first);
  });

  test("on a virtual kubelet get an image, or are left as by OpenKruise", () => {
    const node = VIRTUAL;
    expect(ending(podOf([DONE, swappable]), { node })).toEqual(["swap c1→exit:1"]);
    expect(ending(podOf([DONE, plain]), { node })).toEqual([]);
  });

  test("are not given their image twice", () => {
    const pod = podOf([DONE, swappable]);
    const containers = pod.spec.containers.map((container) => ({ ...container, image: "exit:1" }));
    expect(ending({ ...pod, spec: { ...pod.spec, containers } })).toEqual([]);
  });

  test("can't be judged without their node", () => {
    const plan = planEnding(podOf([DONE, plain]), { node: undefined, isPhaseFirst: false, now: NOW });
    expect(plan).toEqual({ kind: "refused", message: 'nodes "n" not found' });
  });
});
