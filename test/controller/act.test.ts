/** Actions of a decision, one at a time. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ControllerRevision } from "../../shared/api/kubernetes.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { act } from "../../shared/controller/rollout/act.ts";
import { type Cluster, CONTROLLER_REVISIONS } from "../../shared/kube/port.ts";
import { KRUISE_NAMESPACE, sidecarSet, startTestCluster, type TestCluster } from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test?.close());

it("a revision gets the label of the custom version, beside its others, and its number", async () => {
  const key = { namespace: KRUISE_NAMESPACE, name: "labelled" };
  const made = { metadata: { ...key, labels: { team: "shop" } }, data: {}, revision: 1 };
  await cluster.create<ControllerRevision>(CONTROLLER_REVISIONS, made);
  const context = { cluster, clock: systemClock, sidecarSet: sidecarSet("labelled", 1, {}) };
  await act({ kind: "LabelRevision", ...key, customVersion: "blue" }, context);
  await act({ kind: "RenumberRevision", ...key, revision: 7 }, context);
  const { metadata, revision } = await cluster.get<ControllerRevision>(CONTROLLER_REVISIONS, key);
  expect([metadata?.labels, revision]).toEqual([
    { team: "shop", "apps.kruise.io/sidecarset-custom-version": "blue" },
    7,
  ]);
});
