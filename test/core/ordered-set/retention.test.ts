import { expect, test } from "vitest";
import { planSet } from "../../../shared/core/ordered-set/plan-set.ts";
import { podWrites, revisionOfSet, seenOf, setOf } from "./fixture.ts";

const set = setOf({
  replicas: 1,
  volumeClaimTemplates: [{ metadata: { name: "data" } }],
  persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Delete" },
});

test.each([
  ["an earlier pod of this name", { kind: "Pod", name: "db-0" }, []],
  ["something else of this name", { kind: "Job", name: "db-0" }, []],
  ["another pod", { kind: "Pod", name: "db-1" }, ["CreatePod db-0"]],
])("a claim that %s owns: whether its pod is created", (_, { kind, name }, writes) => {
  const ownerReferences = [{ apiVersion: "v1", kind, name, uid: "other" }];
  const claims = [{ metadata: { name: "data-db-0", namespace: "shop", ownerReferences } }];
  expect(podWrites(planSet(seenOf(set, [], [revisionOfSet(set, 1)]), { claims }).writes)).toEqual(writes);
});
