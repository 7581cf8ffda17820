import { expect, test } from "vitest";
import { claimsOf } from "../../../shared/core/statefulset/claims/claims.ts";
import { newPod } from "../../../shared/core/statefulset/pods/identity.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import { setOf } from "./fixture.ts";

test.each([
  [0, "db-0"],
  [-2, "db-2"],
])("the pod of ordinal %i has the name and hostname %s", (ordinal, name) => {
  const { metadata, spec } = newPod(setOf(), ordinal, "db-1", DEFAULT_STATEFUL_SET_FEATURE_GATES);
  expect(metadata).toMatchObject({ name, labels: { "statefulset.kubernetes.io/pod-name": name } });
  expect(spec).toMatchObject({ hostname: name, subdomain: "db" });
});

test("of two claim templates with the same name, the last one is used", () => {
  const template = (name: string, className: string) => ({ metadata: { name }, spec: { storageClassName: className } });
  const set = setOf({
    volumeClaimTemplates: [template("data", "slow"), template("log", "slow"), template("data", "fast")],
  });
  const { spec } = newPod(set, 0, "db-1", DEFAULT_STATEFUL_SET_FEATURE_GATES);
  expect(spec.volumes?.map(({ name }) => name)).toEqual(["data", "log"]);
  expect(claimsOf(set, 0).map((claim) => [claim.metadata?.name, claim.spec?.storageClassName])).toEqual([
    ["data-db-0", "fast"],
    ["log-db-0", "slow"],
  ]);
});
