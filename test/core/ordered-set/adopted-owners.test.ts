import { expect, test } from "vitest";
import { adoptedOwners, controllerReference } from "../../../shared/core/statefulset/revisions.ts";
import { setOf } from "./fixture.ts";

const owner = controllerReference(setOf());
const other = { apiVersion: "v1", kind: "ConfigMap", name: "other", uid: "other" };
const { controller: _, blockOwnerDeletion: __, ...bare } = owner;

test.each([
  ["an adopted object without owners gets the set as its owner", [], [owner]],
  ["an adopted object of another owner keeps it and gets the set as a second owner", [other], [owner, other]],
  ["an adopted object that the set owns without control gets the set as its controller", [bare, other], [owner, other]],
  [
    "an adopted object that gets the set as its controller keeps the order of its owners",
    [other, bare],
    [other, owner],
  ],
])("%s", (_case, ownerReferences, owners) => {
  expect(adoptedOwners({ metadata: { ownerReferences } }, owner)).toEqual(owners);
});
