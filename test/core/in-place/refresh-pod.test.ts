import { describe, expect, test } from "vitest";
import type { Labels, Pod } from "../../../shared/api/kubernetes.ts";
import {
  IN_PLACE_GRACE_ANNOTATION,
  IN_PLACE_READY_CONDITION,
  IN_PLACE_STATE_ANNOTATION,
} from "../../../shared/api/names.ts";
import { whyNotCompleted } from "../../../shared/core/statefulset/in-place/update-completed.ts";
import { refreshPod, updatePod } from "../../../shared/core/statefulset/in-place/update-pod.ts";
import { listedPod } from "../../support/objects.ts";
import { NOW } from "../../support/rollout-fixture.ts";

const CONTEXT = { now: NOW, revisionLabel: "rev" };
const STATE = { revision: "r", updateTimestamp: "2025-05-31T00:00:00Z", lastContainerStatuses: null };

interface Remembered {
  readonly state?: object;
  readonly grace?: object;
}

function annotationsOf({ state, grace }: Remembered): Labels {
  return {
    ...(state ? { [IN_PLACE_STATE_ANNOTATION]: JSON.stringify(state) } : {}),
    ...(grace ? { [IN_PLACE_GRACE_ANNOTATION]: JSON.stringify(grace) } : {}),
  };
}

/** Returns a pod with the readiness gate and with the label of revision r. */
function podOf(remembered: Remembered, status: Pod["status"] = {}): Pod {
  return listedPod(
    { labels: { rev: "r" }, annotations: annotationsOf(remembered) },
    {
      containers: [
        { name: "a", image: "a:1" },
        { name: "b", image: "b:1" },
      ],
      readinessGates: [{ conditionType: IN_PLACE_READY_CONDITION }],
    },
    status,
  );
}

/** Returns the images and the status of the gate after one step. */
function refreshed(pod: Pod) {
  const step = refreshPod(pod, CONTEXT);
  if (step.kind !== "step") return step;
  const gate = step.pod.status?.conditions?.find(({ type }) => type === IN_PLACE_READY_CONDITION)?.status;
  return { images: step.pod.spec.containers.map(({ image }) => image).join(" "), gate };
}

describe("refreshPod after a complete batch:", () => {
  const OPENED = { images: "a:1 b:1", gate: "True" };
  const WAITING = { images: "a:1 b:1", gate: undefined };
  const NEXT_IMAGE = { images: "a:2 b:1", gate: undefined };
  const next = { nextContainerImages: { a: "a:2" } };
  const required = (...names: readonly string[]) => ({ preCheckBeforeNext: { containersRequiredReady: names } });
  const ready = (ofB: boolean) => ({ containerStatuses: [{ name: "a" }, { name: "b", ready: ofB }] });

  const rows: readonly [sentence: string, state: object, status: Pod["status"], expected: object][] = [
    ["the gate opens if there is no next batch", {}, {}, OPENED],
    ["the gate opens without a next batch even if a check for one is left", required("b"), {}, OPENED],
    ["the next batch begins", next, {}, NEXT_IMAGE],
    [
      "the next batch begins at once if no container has to be ready",
      { ...next, preCheckBeforeNext: {} },
      {},
      NEXT_IMAGE,
    ],
    ["the next batch waits if the pod has no status", { ...next, ...required("b") }, undefined, WAITING],
    ["the next batch waits if a container has no status", { ...next, ...required("b") }, {}, WAITING],
    ["the next batch waits for a container that is not ready", { ...next, ...required("b") }, ready(false), WAITING],
    ["the next batch waits for a container that does not exist", { ...next, ...required("c") }, ready(true), WAITING],
    [
      "the next batch begins when the required containers are ready",
      { ...next, ...required("b") },
      ready(true),
      NEXT_IMAGE,
    ],
    [
      "the next batch has images and metadata together",
      { ...next, nextContainerRefMetadata: { a: { labels: { x: "1" } } } },
      {},
      NEXT_IMAGE,
    ],
    [
      "the gate opens if only resources would follow",
      { nextContainerResources: { a: { limits: { cpu: "1" } } } },
      {},
      OPENED,
    ],
  ];
  test.each(rows)("%s", (_, state, status, expected) => {
    const { status: _none, ...bare } = podOf({ state: { ...STATE, ...state } });
    expect(refreshed(status ? { ...bare, status } : bare)).toEqual(expected);
  });
});

describe("refreshPod with a grace period:", () => {
  const grace = { revision: "r", containerImages: { a: "a:2" }, graceSeconds: 5 };

  test("the update is applied after the grace period", () => {
    expect(refreshed(podOf({ state: STATE, grace }))).toEqual({ images: "a:2 b:1", gate: undefined });
  });

  test("the update is dropped if the pod has another revision or none", () => {
    const dropped = { pod: { metadata: { annotations: annotationsOf({ state: STATE }) } }, delaySeconds: 0 };
    const pod = podOf({ state: STATE, grace });
    const { labels: _, ...unlabelled } = pod.metadata ?? {};
    for (const metadata of [unlabelled, { ...unlabelled, labels: {} }, { ...unlabelled, labels: { rev: "s" } }]) {
      expect(refreshPod({ ...pod, metadata }, CONTEXT)).toMatchObject(dropped);
      expect(refreshed({ ...pod, metadata })).toEqual({ images: "a:1 b:1", gate: undefined });
    }
  });

  test("the update is applied if neither the pod nor the update has a revision", () => {
    const { revision: _, ...nameless } = grace;
    const annotations = annotationsOf({ state: STATE, grace: nameless });
    expect(refreshed({ ...podOf({}), metadata: { annotations } })).toMatchObject({ images: "a:2 b:1" });
  });
});

describe("refreshPod with invalid annotations:", () => {
  const grace = { revision: "r" };
  const rows: readonly [sentence: string, annotations: Labels, message: string][] = [
    [
      "the state is not an object",
      { [IN_PLACE_STATE_ANNOTATION]: "[]" },
      `annotation ${IN_PLACE_STATE_ANNOTATION} is not a JSON object`,
    ],

    [
      "the grace annotation is not an object",
      { [IN_PLACE_GRACE_ANNOTATION]: "[]" },
      `annotation ${IN_PLACE_GRACE_ANNOTATION} is not a JSON object`,
    ],
    [
      "the grace annotation has no state beside it",
      annotationsOf({ grace }),
      `annotation ${IN_PLACE_STATE_ANNOTATION} is missing`,
    ],
  ];
  test.each(rows)("refreshPod refuses a pod if %s", (_, annotations, message) => {
    const pod: Pod = { ...podOf({}), metadata: { labels: { rev: "r" }, annotations } };
    expect(refreshPod(pod, CONTEXT)).toEqual({ kind: "refused", message });
    expect(whyNotCompleted(pod)).toBe(
      IN_PLACE_GRACE_ANNOTATION in annotations ? "still in grace period of in-place update" : message,
    );
  });
});

test("refreshPod does nothing without a message if the state next to a grace annotation is invalid", () => {
  for (const revision of ["r", "s"]) {
    const annotations = { ...annotationsOf({ grace: { revision } }), [IN_PLACE_STATE_ANNOTATION]: "[]" };
    const pod: Pod = { ...podOf({}), metadata: { labels: { rev: "r" }, annotations } };
    expect(refreshPod(pod, CONTEXT)).toEqual({ kind: "step", pod, delaySeconds: 0 });
    expect(whyNotCompleted(pod)).toBe("still in grace period of in-place update");
  }
});

describe("updatePod:", () => {
  const options = { gracePeriodSeconds: 0, isEnvFromMetadataUpdated: true, isVerticalScalingAllowed: false };
  const revisionOf = (image: string, name: string) => ({
    metadata: { name },
    revision: 1,
    data: { spec: { template: { spec: { containers: [{ name: "a", image }] } } } },
  });

  test("a pod without metadata is updated in place", () => {
    const revisions = { before: revisionOf("a:1", "old"), after: revisionOf("a:2", "new") };
    expect(
      updatePod({ spec: { containers: [{ name: "a", image: "a:1" }] } }, revisions, options, CONTEXT),
    ).toMatchObject({
      kind: "step",
      pod: { metadata: { labels: { rev: "new" } }, spec: { containers: [{ name: "a", image: "a:2" }] } },
    });
  });

  test("updatePod returns notInPlace if the new revision has no template", () => {
    const revisions = { before: revisionOf("a:1", "old"), after: { revision: 2, data: {} } };
    expect(updatePod(podOf({}), revisions, options, CONTEXT)).toEqual({ kind: "notInPlace" });
  });
});
