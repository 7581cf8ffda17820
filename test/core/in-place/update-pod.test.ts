import { describe, expect, test } from "vitest";
import type { Container, ControllerRevision, Labels, Pod } from "../../../shared/api/kubernetes.ts";
import {
  IN_PLACE_GRACE_ANNOTATION,
  IN_PLACE_READY_CONDITION,
  IN_PLACE_STATE_ANNOTATION,
} from "../../../shared/api/names.ts";
import {
  type CalculateOptions,
  calculateSpec,
  qosClassOf,
} from "../../../shared/core/statefulset/in-place/calculate-spec.ts";
import { whyNotCompleted } from "../../../shared/core/statefulset/in-place/update-completed.ts";
import { type InPlaceStep, refreshPod, updatePod } from "../../../shared/core/statefulset/in-place/update-pod.ts";
import { listedPod } from "../../support/objects.ts";
import { NOW } from "../../support/rollout-fixture.ts";

const OPTIONS: CalculateOptions = {
  gracePeriodSeconds: 0,
  isEnvFromMetadataUpdated: true,
  isVerticalScalingAllowed: true,
};
const CONTEXT = { now: NOW, revisionLabel: "rev" };

interface Template {
  readonly labels?: Labels;
  readonly containers?: readonly Container[];
  readonly more?: Readonly<Record<string, unknown>>;
}

const A: Container = { name: "a", image: "a:1" };

function revisionOf(name: string, { labels = {}, containers = [A], more = {} }: Template): ControllerRevision {
  const data = { spec: { template: { metadata: { labels }, spec: { containers, ...more } } } };
  return { metadata: { name }, revision: 1, data };
}

function podAt(containers: readonly Container[], conditions: readonly string[] = []): Pod {
  return listedPod(
    { name: "p", labels: { rev: "old" } },
    { containers, readinessGates: conditions.map((conditionType) => ({ conditionType })) },
    {
      conditions: ["Ready", "ContainersReady", ...conditions].map((type) => ({ type, status: "True" })),
      containerStatuses: containers.map(({ name, image = "" }) => ({ name, image, imageID: image, ready: true })),
    },
  );
}

const spec = (before: Template, after: Template, options = OPTIONS) =>
  calculateSpec(revisionOf("old", before), revisionOf("new", after), options);

function begin(pod: Pod, after: Template, options = OPTIONS): Pod {
  const revisions = { before: revisionOf("old", { containers: pod.spec.containers }), after: revisionOf("new", after) };
  return podOf(updatePod(pod, revisions, options, CONTEXT));
}

function podOf(step: InPlaceStep): Pod {
  if (step.kind !== "step") throw new Error(step.kind);
  return step.pod;
}

const statusOf = (pod: Pod, type: string) =>
  pod.status?.conditions?.find((condition) => condition.type === type)?.status;

/** Makes the kubelet run the containers of the spec. */
function settle(pod: Pod): Pod {
  const { containerStatuses } = podAt(pod.spec.containers).status ?? {};
  return { ...pod, status: { ...pod.status, ...(containerStatuses ? { containerStatuses } : {}) } };
}

describe("calculateSpec:", () => {
  const b: Container = { name: "b", image: "b:1" };
  test.each([
    ["of an image", { containers: [{ ...A, image: "a:2" }] }, true],
    ["that removes an image", { containers: [{ name: "a" }] }, false],
    ["that adds a container", { containers: [A, b] }, false],
    ["that renames a container", { containers: [{ ...A, name: "z" }] }, false],
    ["that adds an init container", { more: { initContainers: [b] } }, false],
    ["of a label", { labels: { x: "1" } }, true],
  ])("calculateSpec decides whether a change %s is possible in place", (_, after, isInPlace) => {
    expect(spec({}, after) !== undefined).toBe(isInPlace);
  });

  test("calculateSpec refuses new ownerReferences and accepts their removal", () => {
    const owned = (ownerReferences: readonly object[]): ControllerRevision => ({
      revision: 1,
      data: { spec: { template: { metadata: { ownerReferences }, spec: { containers: [A] } } } },
    });
    expect(calculateSpec(owned([]), owned([{ uid: "1" }]), OPTIONS)).toBeUndefined();
    expect(calculateSpec(owned([{ uid: "1" }]), owned([]), OPTIONS)).toBeDefined();
  });

  test.each<[readonly string[], readonly string[], readonly string[] | undefined]>([
    [[], ["a/a"], ["their/own", "a/a"]],
    [["a/a"], ["a/a", "a/b"], ["a/a", "their/own", "a/b"]],
    [["a/a"], ["a/b"], ["their/own", "a/b"]],
    [["a/a", "a/b"], ["a/b"], ["a/b", "their/own"]],
    [["a/a"], [], undefined],
  ])(
    "if the template's finalizers change from %j to %j, the pod has %j in addition to its own",
    (before, after, left) => {
      const revision = (name: string, finalizers: readonly string[]): ControllerRevision => ({
        metadata: { name },
        revision: 1,
        data: { spec: { template: { metadata: { finalizers }, spec: { containers: [A] } } } },
      });
      const pod = podAt([A]);
      const finalizers = [...before, "their/own"];
      const revisions = { before: revision("old", before), after: revision("new", after) };
      const step = updatePod({ ...pod, metadata: { ...pod.metadata, finalizers } }, revisions, OPTIONS, CONTEXT);
      expect(podOf(step).metadata?.finalizers).toEqual(left);
    },
  );

  test("resources that keep the QoS class because of an init container may change in place", () => {
    const limited = (cpu: string) => ({
      containers: [{ ...A, resources: { limits: { cpu, memory: "1" }, requests: { cpu: "1", memory: "1" } } }],
    });
    const more = { initContainers: [{ name: "i", image: "i:1" }] };
    expect(spec(limited("1"), limited("2"))).toBeUndefined();
    expect(spec({ ...limited("1"), more }, { ...limited("2"), more })).toBeDefined();
  });
});

describe("an update in place:", () => {
  const after = { containers: [{ ...A, image: "a:2" }] };

  test("an update closes the gate, restarts the container and opens the gate again", () => {
    const begun = begin(podAt([A], [IN_PLACE_READY_CONDITION]), after);
    expect([statusOf(begun, IN_PLACE_READY_CONDITION), statusOf(begun, "Ready")]).toEqual(["False", "False"]);
    expect(whyNotCompleted(begun)).toBe("container a imageID not changed");
    expect(refreshPod(begun, CONTEXT)).toMatchObject({ pod: begun });
    const ended = podOf(refreshPod(settle(begun), CONTEXT));
    expect([whyNotCompleted(ended), statusOf(ended, IN_PLACE_READY_CONDITION)]).toEqual([undefined, "True"]);
  });

  test("a change of resources closes the gate only if a container restarts for it", () => {
    const limited = (name: string, cpu: string, policies: Readonly<Record<string, string>> = {}): Container =>
      ({
        name,
        image: "x:1",
        resources: { limits: { cpu, memory: "1Gi" }, requests: { cpu: "1", memory: "1Gi" } },
        resizePolicy: Object.entries(policies).map(([resourceName, restartPolicy]) => ({
          resourceName,
          restartPolicy,
        })),
      }) as Container;
    const gateOf = (...before: readonly Container[]) => {
      const sized = (cpu: string) => revisionOf(cpu, { containers: [limited("a", cpu), limited("b", "4")] });
      const revisions = { before: sized("2"), after: sized("3") };
      const begun = podOf(updatePod(podAt(before, [IN_PLACE_READY_CONDITION]), revisions, OPTIONS, CONTEXT));
      return statusOf(begun, IN_PLACE_READY_CONDITION);
    };
    const restarted = { cpu: "RestartContainer" };
    expect([
      gateOf(limited("a", "2"), limited("b", "4")),
      gateOf(limited("a", "2", { cpu: "NotRequired", memory: "RestartContainer" }), limited("b", "4", restarted)),
      gateOf(limited("a", "2", restarted), limited("b", "4")),
    ]).toEqual(["True", "True", "False"]);
  });

  test("an update waits for its grace period", () => {
    const begun = begin(podAt([A]), after, { ...OPTIONS, gracePeriodSeconds: 10 });
    expect(begun.spec.containers[0]?.image).toBe("a:1");
    expect(refreshPod(begun, { ...CONTEXT, now: "2025-06-01T00:00:04Z" })).toMatchObject({ delaySeconds: 6 });
    const due = podOf(refreshPod(begun, { ...CONTEXT, now: "2025-06-01T00:00:10Z" }));
    expect(due.spec.containers[0]?.image).toBe("a:2");
    expect(due.metadata?.annotations?.[IN_PLACE_GRACE_ANNOTATION]).toBeUndefined();
  });

  test("metadata with a non-ASCII letter is applied after the grace period", () => {
    const begun = begin(podAt([A]), { ...after, labels: { x: "ü" } }, { ...OPTIONS, gracePeriodSeconds: 1 });
    const due = podOf(refreshPod(begun, { ...CONTEXT, now: "2025-06-01T00:01:00Z" }));
    expect(due.metadata?.labels).toEqual({ rev: "new", x: "ü" });
  });

  test("containers are updated in batches in the order of their launch priorities", () => {
    const barrier = (key: string) => [{ name: "KRUISE_CONTAINER_BARRIER", valueFrom: { configMapKeyRef: { key } } }];
    const containers = ["p_1", "p_-1", "p_1"].map((key, index) => ({
      name: `c${index}`,
      image: "c:1",
      env: barrier(key),
    }));
    const next = { containers: containers.map((container) => ({ ...container, image: "c:2" })) };
    const imagesOf = (pod: Pod) => pod.spec.containers.map(({ image }) => image).join(" ");
    const begun = begin(podAt(containers), next);
    expect(imagesOf(begun)).toBe("c:2 c:1 c:2");
    expect(whyNotCompleted(begun)).toMatch("next batches");
    const second = podOf(refreshPod(settle(begun), CONTEXT));
    expect(imagesOf(second)).toBe("c:2 c:2 c:2");
    expect(whyNotCompleted(settle(second))).toBeUndefined();
  });

  test.each([["{"], ["[]"], ["1"]])("refreshPod refuses a pod whose state is %s", (state) => {
    const pod = podAt([A]);
    const broken = { ...pod, metadata: { ...pod.metadata, annotations: { [IN_PLACE_STATE_ANNOTATION]: state } } };
    expect(refreshPod(broken, CONTEXT).kind).toBe("refused");
    expect(whyNotCompleted(broken)).toBeDefined();
  });
});

describe("qosClassOf:", () => {
  const both = { cpu: "1", memory: "1Gi" };
  test.each([
    ["without resources", [{}], "BestEffort"],
    ["with requests of zero", [{ requests: { cpu: "0" } }], "BestEffort"],
    ["with limits of other resources only", [{ limits: { "x/y": "1" } }], "BestEffort"],
    ["with requests only", [{ requests: both }], "Burstable"],

    ["with resources in one of two containers only", [{ requests: both, limits: both }, {}], "Burstable"],
  ])("qosClassOf returns the right class for a pod %s", (_, resources, expected) => {
    expect(qosClassOf(resources.map((given) => ({ resources: given })))).toBe(expected);
  });
});
