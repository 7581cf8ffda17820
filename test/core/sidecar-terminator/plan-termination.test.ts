import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ContainerStatus, EnvVar, Pod } from "../../../shared/api/kubernetes.ts";
import {
  areSuccessful,
  areTerminated,
  finishPod,
  planEnding,
  planTermination,
  type TerminationAction,
  terminationRequestName,
  unfinished,
} from "../../../shared/core/sidecar-terminator/plan-termination.ts";
import { holds } from "../../properties/holds.ts";
import { listedPod } from "../../support/objects.ts";

const NORMAL: EnvVar = { name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", value: "true" };
const IGNORING: EnvVar = { name: "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE", value: "true" };
const BY_IMAGE: EnvVar = { name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE", value: "exit:1" };

interface Given {
  readonly env?: readonly EnvVar[];
  /** exit code of the container; absent: it runs */
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

describe("planTermination:", () => {
  const rows: readonly [sentence: string, pod: Pod, expected: readonly string[]][] = [
    ["the sidecars of a running job are not touched", podOf([{}, { env: [NORMAL] }]), []],
    [
      "the sidecars of a succeeded job are terminated by a request",
      podOf([{ exitCode: 0 }, { env: [NORMAL] }]),
      ["request c1", "event"],
    ],
    [
      "the sidecars of a job that failed for good are terminated by a request",
      podOf([{ exitCode: 1 }, { env: [NORMAL] }]),
      ["request c1", "event"],
    ],
    [
      "the sidecars of a failed job that will be retried are not touched",
      podOf([{ exitCode: 1 }, { env: [NORMAL] }], "OnFailure"),
      [],
    ],
    [
      "the sidecars of a pod with restartPolicy Always are not touched",
      podOf([{ exitCode: 0 }, { env: [NORMAL] }], "Always"),
      [],
    ],
    ["sidecars that have ended are not touched", podOf([{ exitCode: 0 }, { env: [NORMAL], exitCode: 9 }]), []],
    [
      "the phase of a pod with ignored exit codes comes from the job's own containers",
      podOf([{ exitCode: 3 }, { env: [NORMAL, IGNORING] }]),
      ["Failed", "request c1", "event"],
    ],
    [
      "the sidecars of a pod that is being deleted are not touched",
      deleted(podOf([{ exitCode: 0 }, { env: [NORMAL] }])),
      [],
    ],
    ["the sidecars of a pending pod are not touched", pending(podOf([{ exitCode: 0 }, { env: [NORMAL] }])), []],
    [
      "a container without the value true is not a sidecar",
      podOf([{ exitCode: 0 }, { env: [{ name: NORMAL.name }] }]),
      [],
    ],
    ["a container that only ignores its exit code is not a sidecar", podOf([{ exitCode: 0 }, { env: [IGNORING] }]), []],
  ];
  test.each(rows)("%s", (_, pod, expected) => {
    expect(planOf(pod)).toEqual(expected);
  });

  test("an existing request is not created again, but the phase of the pod is still set", () => {
    const pod = podOf([{ exitCode: 0 }, { env: [NORMAL] }]);
    expect(planOf(pod, NODE, true)).toEqual([]);
    const both = podOf([{ exitCode: 0 }, { env: [NORMAL], exitCode: 0 }, { env: [NORMAL, IGNORING] }]);
    expect(planOf(both, NODE, true)).toEqual(["Succeeded"]);
  });
});

describe("areTerminated, areSuccessful and unfinished:", () => {
  const pod = podOf([{ exitCode: 0 }, { exitCode: 2 }, {}]);
  const statuses = pod.status?.containerStatuses ?? [];
  const seeing = (containerStatuses: readonly ContainerStatus[]): Pod => ({ ...pod, status: { containerStatuses } });
  const { status: _status, ...unseen } = pod;
  const rows: readonly [sentence: string, pod: Pod, names: readonly string[], expected: object][] = [
    ["succeeded containers", pod, ["c0"], { areTerminated: true, areSuccessful: true, unfinished: [] }],
    [
      "containers of which one failed",
      pod,
      ["c0", "c1"],
      { areTerminated: true, areSuccessful: false, unfinished: [] },
    ],

    [
      "a succeeded container beside one without a status",
      seeing(statuses.slice(0, 2)),
      ["c0"],
      { areTerminated: false, areSuccessful: false, unfinished: [] },
    ],
    [
      "a container of a pod without a status",
      unseen,
      ["c0"],
      { areTerminated: false, areSuccessful: false, unfinished: ["c0"] },
    ],
    [
      "a container without a state",
      seeing(statuses.map(({ name }) => ({ name }))),
      ["c0"],
      { areTerminated: false, areSuccessful: false, unfinished: ["c0"] },
    ],
  ];
  test.each(rows)(
    "areTerminated, areSuccessful and unfinished return the right values for %s",
    (_, given, names, expected) => {
      expect({
        areTerminated: areTerminated(given, names),
        areSuccessful: areSuccessful(given, names),
        unfinished: unfinished(given, names),
      }).toEqual(expected);
    },
  );
});

describe("the actions of planTermination:", () => {
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

  test("the request names the sidecars sorted by name", () => {
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

  test("a sidecar that has ended does not get its image for termination", () => {
    const pod = podOf([{ exitCode: 0 }, { env: [BY_IMAGE], exitCode: 0 }, { env: [BY_IMAGE] }]);
    expect(planOf(pod, VIRTUAL)).toEqual(["swap c2→exit:1", "event"]);
  });

  test("the plan is refused if the node of the pod does not exist", () => {
    const pod = podOf([{ exitCode: 0 }, { env: [NORMAL] }]);
    const { nodeName: _, ...spec } = pod.spec;
    const view = { node: undefined, hasRequest: false, now: NOW };
    expect(planTermination(pod, view)).toEqual({ kind: "refused", message: 'nodes "n" not found' });
    expect(planTermination({ ...pod, spec }, view)).toEqual({ kind: "refused", message: 'nodes "" not found' });
  });

  test("a plan is made for a pod without a name and for a container without an image", () => {
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

  test.each(["Succeeded", "Failed"])("finishPod returns no action if the phase is already %s", (phase) => {
    const pod = podOf([{ exitCode: 0 }, { env: [NORMAL] }]);
    expect(finishPod({ ...pod, status: { ...pod.status, phase } }, NOW)).toEqual([]);
  });

  test("finishPod sets the phase with the condition SidecarTerminated", () => {
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

test("planTermination never touches an app container and does nothing before all app containers have ended", () => {
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

describe("planEnding, which terminates sidecars without a daemon:", () => {
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
    ["a sidecar without an image for termination is left running", [DONE, plain], ["left c1"], ["Succeeded"]],

    ["the phase is Failed if the job failed", [{ exitCode: 1 }, ignoring], ["Failed"], ["Failed"]],
    ["a sidecar with an image for termination gets it", [DONE, swappable], ["swap c1→exit:1"], ["swap c1→exit:1"]],
    ["no phase is set while another sidecar is left running", [DONE, ignoring, plain], ["left c2"], ["Succeeded"]],
    [
      "no phase is set while another sidecar gets its image for termination",
      [DONE, ignoring, swappable],
      ["swap c2→exit:1"],
      ["swap c2→exit:1"],
    ],

    [
      "a sidecar that has only the image variable is not touched, as in OpenKruise",
      [DONE, { env: [BY_IMAGE] }],
      [],
      [],
    ],
    ["the sidecars of a running job are not touched without a daemon", [{}, plain], [], []],
  ];
  test.each(rows)("%s", (_, containers, safe, first) => {
    expect(ending(podOf(containers))).toEqual(safe);
    expect(ending(podOf(containers), { isPhaseFirst: true })).toEqual(first);
  });

  test("on a virtual kubelet a sidecar gets its image, and one without an image is not touched, as in OpenKruise", () => {
    const node = VIRTUAL;
    expect(ending(podOf([DONE, swappable]), { node })).toEqual(["swap c1→exit:1"]);
    expect(ending(podOf([DONE, plain]), { node })).toEqual([]);
  });

  test("a sidecar does not get its image for termination twice", () => {
    const pod = podOf([DONE, swappable]);
    const containers = pod.spec.containers.map((container) => ({ ...container, image: "exit:1" }));
    expect(ending({ ...pod, spec: { ...pod.spec, containers } })).toEqual([]);
  });

  test("planEnding is refused if the node of the pod does not exist", () => {
    const plan = planEnding(podOf([DONE, plain]), { node: undefined, isPhaseFirst: false, now: NOW });
    expect(plan).toEqual({ kind: "refused", message: 'nodes "n" not found' });
  });
});
