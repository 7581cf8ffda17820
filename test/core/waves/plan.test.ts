import { describe, expect, test } from "vitest";
import { METRICS_ANNOTATION, WAVES_ANNOTATION } from "../../../shared/api/names.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { planRollout } from "../../../shared/core/rollout/plan/plan.ts";
import { gateRequest } from "../../../shared/core/rollout/rules/gate/approval.ts";
import { CONTEXT, podOf, sidecarSetOf, UNTOUCHED } from "../../support/rollout-fixture.ts";

const STAGES = ["dev", "staging", "production"];

function observed(more: Readonly<Record<string, object>> = {}) {
  const set = sidecarSetOf({ selector: {}, updateStrategy: { maxUnavailable: 1 } });
  const waves = STAGES.slice(0, 2).map((name) => ({
    name,
    namespaceSelector: { matchLabels: { stage: name } },
    ...more[name],
  }));
  const annotations = { ...set.metadata?.annotations, [WAVES_ANNOTATION]: JSON.stringify(waves) };
  const sidecarSet = { ...set, metadata: { ...set.metadata, annotations } };
  const pods = ["production", "staging", "dev", "dev"].map((namespace, at) => {
    const pod = podOf({ name: `${namespace}-${at}` });
    return { ...pod, metadata: { ...pod.metadata, namespace } };
  });
  const namespaceLabels = new Map(STAGES.map((stage) => [stage, { stage }]));
  return { sidecarSet, pods, revisions: [], ...UNTOUCHED, namespaceLabels };
}

const planned = (more?: Readonly<Record<string, object>>) =>
  planRollout(observed(more), { ...CONTEXT, readyAfterSeconds: 10 });

describe("planRollout with waves:", () => {
  test("a plan updates the pods of one wave after the other", () => {
    const { steps, isComplete } = planned();
    expect(
      steps.map(({ atSeconds, waves, pods }) => [atSeconds, waves, pods.map(({ namespace }) => namespace)]),
    ).toEqual([
      [0, ["dev"], ["dev"]],
      [10, ["dev"], ["dev"]],
      [20, ["staging"], ["staging"]],
      [30, [""], ["production"]],
    ]);
    expect(isComplete).toBe(true);
  });

  test("a plan includes the soak times, except for a wave that no pod waits for", () => {
    const { steps, seconds } = planned({ dev: { soakSeconds: 3600 }, staging: { soakSeconds: 60 } });
    expect(steps.map(({ atSeconds }) => atSeconds)).toEqual([0, 10, 3620, 3690]);
    expect(seconds).toBe(3700);
  });

  test("a plan ends before a paused wave", () => {
    const { steps, after, isComplete } = planned({ dev: { paused: true } });
    expect(steps.map(({ waves }) => waves)).toEqual([["dev"], ["dev"]]);
    expect(isComplete).toBe(false);
    expect([after.hold, after.rules.waves?.holder?.stage, after.rules.waves?.behind]).toEqual(["wave", "paused", 2]);
  });
});

test("a plan names the checks of metrics and the interval that they put between batches", () => {
  const { sidecarSet, ...rest } = observed();
  const checks = [
    { name: "errors", query: "up", max: 1, intervalSeconds: 30 },
    { name: "restarts", query: "up", min: 0 },
  ];
  const annotations = { ...sidecarSet.metadata?.annotations, [METRICS_ANNOTATION]: JSON.stringify(checks) };
  const checked = { ...sidecarSet, metadata: { ...sidecarSet.metadata, annotations } };
  const options = { ...CONTEXT, readyAfterSeconds: 10 };
  const plan = planRollout({ ...rest, sidecarSet: checked }, options);
  expect(plan.checks).toEqual({ names: ["errors", "restarts"], intervalSeconds: 60 });
  expect(plan.isComplete).toBe(true);
  expect(planRollout({ ...rest, sidecarSet }, options)).not.toHaveProperty("checks");
});

test("a gate request contains the name of the wave", () => {
  const observation = observed();
  const decision = decide(observation, CONTEXT);
  expect(gateRequest(observation.sidecarSet, "r", decision, []).wave).toBe("dev");
  const plain = decide({ ...observation, sidecarSet: sidecarSetOf({ selector: {} }) }, CONTEXT);
  expect(gateRequest(observation.sidecarSet, "r", plain, [])).not.toHaveProperty("wave");
});
