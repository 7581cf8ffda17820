import { describe, expect, test } from "vitest";
import type { StatefulSet } from "../../shared/api/stateful-set.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../shared/core/statefulset/step.ts";
import { validateStatefulSet } from "../../shared/core/statefulset/validate.ts";
import { setOf } from "./ordered-set/fixture.ts";

const gates = { ...DEFAULT_STATEFUL_SET_FEATURE_GATES, ResourcesDeletionProtection: true };

function deletionOf(oldObject: StatefulSet | null | undefined) {
  const request = {
    uid: "1",
    resource: { group: "apps.kruise.io", version: "v1beta1", resource: "statefulsets" },
    operation: "DELETE",
    ...(oldObject === undefined ? {} : { oldObject }),
  };
  return validateStatefulSet(request, { gates, storageClasses: [] }).kind;
}

describe("the deletion of a protected StatefulSet:", () => {
  const labels = { "policy.kruise.io/delete-protection": "Always" };
  const set = setOf();
  const isProtected = { ...set, metadata: { ...set.metadata, labels } };

  test("the deletion of a protected StatefulSet is denied", () => {
    expect(deletionOf(isProtected)).toBe("denied");
  });

  test("the deletion of a protected StatefulSet is allowed if it has begun already", () => {
    const metadata = { ...isProtected.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
    expect(deletionOf({ ...isProtected, metadata })).toBe("allowed");
  });

  test.each([undefined, null])("the deletion of a StatefulSet is allowed if the old object is %s", (oldObject) => {
    expect(deletionOf(oldObject)).toBe("allowed");
  });
});
