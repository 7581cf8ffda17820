import { expect, test } from "vitest";
import { DEFAULT_ORDERED_SET_GATES } from "../../../shared/core/ordered-set/gates.ts";
import { newPod } from "../../../shared/core/ordered-set/identity.ts";
import { setOf } from "./fixture.ts";

test.each([
  [0, "db-0"],
  [-2, "db-2"],
])("the pod of ordinal %i is %s, and so is its host", (ordinal, name) => {
  const { metadata, spec } = newPod(setOf(), ordinal, "db-1", DEFAULT_ORDERED_SET_GATES);
  expect(metadata).toMatchObject({ name, labels: { "statefulset.kubernetes.io/pod-name": name } });
  expect(spec).toMatchObject({ hostname: name, subdomain: "db" });
});
