import { expect, test } from "vitest";
import { planSet } from "../../../shared/core/statefulset/plan/simulated-world.ts";
import { podOf, podWrites, revisionOfSet, seenOf, setOf } from "./fixture.ts";

const set = setOf({
  replicas: 1,
  volumeClaimTemplates: [{ metadata: { name: "data" } }],
  persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Delete" },
});

test.each([
  ["an earlier pod of the same name is not created", { kind: "Pod", name: "db-0" }, []],
  ["another object of the same name is not created", { kind: "Job", name: "db-0" }, []],
  ["another pod is created", { kind: "Pod", name: "db-1" }, ["CreatePod db-0"]],
])("the pod of a claim that is owned by %s", (_, { kind, name }, writes) => {
  const ownerReferences = [{ apiVersion: "v1", kind, name, uid: "other" }];
  const claims = [{ metadata: { name: "data-db-0", namespace: "shop", ownerReferences } }];
  expect(podWrites(planSet(seenOf(set, [], [revisionOfSet(set, 1)]), { claims }).writes)).toEqual(writes);
});

test.each([
  [{ whenDeleted: "Delete", whenScaled: "Retain" }, 1],
  [{ whenDeleted: "Delete" }, 0],
  [{ whenDeleted: "Delete", whenScaled: "Later" }, 0],
])("the retention policy %j of a claim adds %i owner reference to the set", (policy, owners) => {
  const strict = setOf({ ...set.spec, persistentVolumeClaimRetentionPolicy: policy });
  const claims = [{ metadata: { name: "data-db-0", namespace: "shop" } }];
  const { writes } = planSet(seenOf(strict, [podOf(strict, 0)], [revisionOfSet(strict, 1)]), { claims });
  expect(writes.filter(({ kind }) => kind === "UpdateClaim")).toHaveLength(owners);
});

test("a claim of an earlier pod delays the new pod unless whenScaled is Retain", () => {
  const lax = setOf({ ...set.spec, persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain" } });
  const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "db-0", uid: "other" }];
  const claims = [{ metadata: { name: "data-db-0", namespace: "shop", ownerReferences } }];
  expect(podWrites(planSet(seenOf(lax, [], [revisionOfSet(lax, 1)]), { claims }).writes)).toEqual([]);
});

test("a claim gets its pod as owner before the pod is deleted, so that no claim is left behind", () => {
  const claims = [0, 1].map((ordinal) => ({ metadata: { name: `data-db-${ordinal}`, namespace: "shop" } }));
  const { writes } = planSet(seenOf(set, [podOf(set, 0), podOf(set, 1)], [revisionOfSet(set, 1)]), { claims });
  const kinds = writes.map(({ kind }) => kind).filter((kind) => kind === "UpdateClaim" || kind === "DeletePod");
  expect(kinds).toEqual(["UpdateClaim", "DeletePod"]);
});

test("a claim whose pod is wanted again loses the pod as owner", () => {
  const pod = podOf(set, 0);
  const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "db-0", uid: pod.metadata?.uid ?? "" }];
  const claims = [{ metadata: { name: "data-db-0", namespace: "shop", ownerReferences } }];
  const { writes } = planSet(seenOf(set, [pod], [revisionOfSet(set, 1)]), { claims });
  expect(writes.filter(({ kind }) => kind === "UpdateClaim")).toMatchObject([
    { after: { metadata: { name: "data-db-0", ownerReferences: [] } } },
  ]);
});

test("a claim of an earlier set of the same name gets the new set as a second owner, by uid", () => {
  const policy = { whenDeleted: "Delete", whenScaled: "Retain" };
  const strict = setOf({ ...set.spec, persistentVolumeClaimRetentionPolicy: policy });
  const former = { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet", name: "db", uid: "former" };
  const metadata = { name: "data-db-0", namespace: "shop", ownerReferences: [former] };
  const seen = seenOf(strict, [podOf(strict, 0)], [revisionOfSet(strict, 1)]);
  const { writes } = planSet(seen, { claims: [{ metadata }] });
  expect(writes.filter(({ kind }) => kind === "UpdateClaim")).toMatchObject([
    { after: { metadata: { ownerReferences: [former, { ...former, uid: strict.metadata?.uid }] } } },
  ]);
});
