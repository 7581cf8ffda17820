/** Tests that all readers agree whether a container fails: every reader is asked about every reason in the table. */
import { describe, expect, it } from "vitest";
import { progressOf } from "../../../functions/cli/input/progress.ts";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { HALT_ON_ANNOTATION } from "../../../shared/api/names.ts";
import { checkInstallation } from "../../../shared/core/inspect/check/check.ts";
import { explainPod, explainSidecarSet } from "../../../shared/core/inspect/explain/explain.ts";
import { reportOnSidecarSet } from "../../../shared/core/inspect/report/report.ts";
import { CONTAINER_REASONS, type ContainerReason } from "../../../shared/core/pod/container-failure.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { planRollout } from "../../../shared/core/rollout/plan/plan.ts";
import { projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import { isBroken } from "../../../shared/core/statefulset/explain/trace-pod.ts";
import { CONTEXT, NOW, podOf, takenDown, UNTOUCHED } from "../../support/rollout-fixture.ts";
import { LABELS, SET, updatedPod, withSets } from "../check/fixture.ts";

const OLD = podOf({ name: "old", labels: LABELS, withoutImage: hashWithoutImage() });

function hashWithoutImage(): string {
  return SET.metadata?.annotations?.["kruise.io/sidecarset-hash-without-image"] ?? "";
}

/** Returns a pod that the rollout took down. Its sidecar waits, or has ended, for the given reason. */
function downPod(reason: string, where: "waiting" | "terminated"): Pod {
  const statuses = [
    { name: "main", ready: true },
    { name: "sc", ready: false, state: { [where]: { reason } } },
  ];
  return takenDown(updatedPod(SET, { isReady: false, statuses }));
}

type Reader = (pod: Pod, observation: Parameters<typeof decide>[0]) => boolean;

const factsOf = (pods: readonly Pod[]) => ({
  pods,
  revisions: [],
  ...UNTOUCHED,
  lastPass: NOW,
  namespace: { metadata: { name: "default" } },
  registrations: undefined,
  sidecarSets: [SET],
  ...CONTEXT,
});

/** Reader → returns true if the reader says that the pod fails. */
const READERS: Readonly<Record<string, Reader>> = {
  "a pass": (_, observation) => decide(observation, CONTEXT).failing.length > 0,
  plan: (_, observation) => planRollout(observation, { ...CONTEXT, readyAfterSeconds: 5 }).after.hold === "budget",
  "explain of the pod": (pod) =>
    explainPod(pod, SET, factsOf([pod, OLD])).some(
      ({ reason }) => reason === "ImagePullError" || reason === "ContainerFailing",
    ),
  "explain of the SidecarSet": (pod) =>
    explainSidecarSet(SET, factsOf([pod, OLD])).find(({ reason }) => reason === "BudgetUsed")?.verdict === "stop",
  "the page": (_, observation) =>
    reportOnSidecarSet({ observation, events: [], missed: new Set(), lastPass: NOW }, CONTEXT).reasons.some(
      ({ title }) => title === "1 pod cannot start the current version",
    ),
  check: (pod) => checkInstallation(withSets([SET], [pod, OLD])).findings.some(({ id }) => id === "RolloutBlocked"),
  "the code for ordered sets": isBroken,
};

const REASONS = Object.keys(CONTAINER_REASONS) as readonly ContainerReason[];

describe.each(["waiting", "terminated"] as const)("a container whose state is %s:", (where) => {
  describe.each([...REASONS, "SomethingElse"])("with the reason %s:", (reason) => {
    const pod = downPod(reason, where);
    const observation = { sidecarSet: SET, pods: [pod, OLD], revisions: [], ...UNTOUCHED };
    const { comesBack } = { ...CONTAINER_REASONS, SomethingElse: { comesBack: "soon" } }[reason] ?? {};

    it.each(Object.keys(READERS))(
      `%s reports a container that is ${where} for ${reason} only if the reason does not go away by itself`,
      (reader) => {
        expect(READERS[reader]?.(pod, observation)).toBe(comesBack !== "soon");
      },
    );

    it(`status -w stops for a container that is ${where} for ${reason} only if a person has to act`, () => {
      expect(progressOf(SET, factsOf([pod, OLD])).isStopped === true).toBe(comesBack === "no");
    });
  });
});

/** A kubelet reports the former image until it has seen the changed pod. */
describe.each([
  [2, false],
  [3, true],
  [undefined, true],
])("a pod of generation 3 whose kubelet says that it has seen generation %s:", (observedGeneration, isReported) => {
  const down = downPod("ImagePullBackOff", "waiting");
  const status = { ...down.status, ...(observedGeneration === undefined ? {} : { observedGeneration }) };
  const raw = { ...down, metadata: { ...down.metadata, generation: 3 }, status };

  it.each(Object.keys(READERS))(`%s reports the failure: ${isReported}`, (reader) => {
    for (const pod of [raw, projectPod(raw, SET)]) {
      const observation = { sidecarSet: SET, pods: [pod, OLD], revisions: [], ...UNTOUCHED };
      expect(READERS[reader]?.(pod, observation)).toBe(isReported);
    }
  });
});

it("a release that comes back is not halted before the node of its pod has observed the change", () => {
  const annotations = { ...SET.metadata?.annotations, [HALT_ON_ANNOTATION]: "0" };
  const set = { ...SET, metadata: { ...SET.metadata, annotations } };
  const down = downPod("ErrImagePull", "waiting");
  const holdOf = (observedGeneration: number) => {
    const pod = {
      ...down,
      metadata: { ...down.metadata, generation: 3 },
      status: { ...down.status, observedGeneration },
    };
    const pods = [projectPod(pod, set), OLD];
    return decide({ sidecarSet: set, pods, revisions: [], ...UNTOUCHED }, CONTEXT).summary.hold;
  };
  expect([holdOf(2), holdOf(3)]).toEqual(["budget", "halted"]);
});
