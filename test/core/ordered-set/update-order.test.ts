import { expect, test } from "vitest";
import { updateOrder } from "../../../shared/core/statefulset/rolling-update.ts";
import { podOf, setOf } from "./fixture.ts";

const set = setOf();
const at = (ordinal: number, revision: string) =>
  podOf(set, ordinal, { labels: { "controller-revision-hash": revision } });
const slots = [at(0, "db-new"), at(1, "new"), at(2, "old"), at(3, "")];

test("without order, a pod that waits for its hook comes first only if the feature gate is on", () => {
  const labels = { "controller-revision-hash": "old", "lifecycle.apps.kruise.io/state": "PreparingUpdate" };
  const pods = [at(0, "old"), podOf(set, 1, { labels }), at(2, "old")];
  const target = { strategy: { unorderedUpdate: {} }, revision: "db-new", replicas: 3 };
  const orderOf = (isPreparingUpdated: boolean) =>
    updateOrder(pods, { ...target, isPreparingUpdated }).map((pod) => pods.indexOf(pod));
  expect([orderOf(false), orderOf(true)]).toEqual([
    [2, 1, 0],
    [1, 2, 0],
  ]);
});

test.each([
  [
    "updateOrder without order puts a pod with the hash of the revision among the updated ones",
    { unorderedUpdate: {} },
    [1, 0, 3, 2],
  ],
  ["updateOrder in order starts from the highest ordinal", {}, [3, 2, 1, 0]],
])("%s", (_, strategy, order) => {
  const pods = updateOrder(slots, { strategy, revision: "db-new", replicas: 4 });
  expect(pods.map((pod) => slots.indexOf(pod))).toEqual(order);
});
