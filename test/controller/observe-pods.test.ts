/** What is listed for a SidecarSet, and what need not be. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { listRevisions, observePods } from "../../shared/controller/rollout/observe-pods.ts";
import { faultyCluster } from "./faults.ts";
import { injectedPod, KRUISE_NAMESPACE, startTestCluster, type TestCluster } from "./fixture.ts";

let test: TestCluster;
beforeAll(async () => {
  test = await startTestCluster();
});
afterAll(() => test?.close());

it("a SidecarSet without a selector has no pods, and no list to watch from", async () => {
  const { view, scope, ...rest } = await observePods(test.cluster, { spec: {} });
  expect([Array.from(view.pods), rest]).toEqual([[], { namespaceLabels: new Map() }]);
  expect(scope.isSelected(injectedPod("any", "any-0"))).toBe(false);
});

it.each([
  [63, ["LIST controllerrevisions"]],
  [64, []],
])(
  "a SidecarSet whose name has %i characters has revisions only where that is short enough for a label",
  async (length, calls) => {
    const counted = faultyCluster(test.cluster, "unavailable", () => false);
    expect(await listRevisions(counted, KRUISE_NAMESPACE, "n".repeat(length))).toEqual([]);
    expect(counted.calls).toEqual(calls);
  },
);
