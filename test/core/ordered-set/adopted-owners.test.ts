import { expect, test } from "vitest";
import { adoptedOwners, controllerReference } from "../../../shared/core/statefulset/revisions/new-revision.ts";
import { setOf } from "./fixture.ts";

const owner = controllerReference(setOf());
const other = { apiVersion: "v1", kind: "ConfigMap", name: "other", uid: "other" };
const { controller: _, blockOwnerDeletion: __, ...bare } = owner;

test.each([
  ["nobody's is owned from then on", [], [owner]],
  ["somebody else's keeps that owner", [other], [owner, other]],
  ["one that it owns without control is controlled", [bare, other], [owner, other]],
  ["that stands where it stood", [other, bare], [other, owner]],
])("what a set adopts: %s", (_case, ownerReferences, owners) => {
  expect(adoptedOwners({ metadata: { ownerReferences } }, owner)).toEqual(owners);
});
