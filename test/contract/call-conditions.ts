/**
 * Cases of the match conditions that we register: an API server must send exactly the pods that a SidecarSet matches.
 */
import fc from "fast-check";
import { expect } from "vitest";
import type { LabelSelector } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { callCondition } from "../../shared/core/injection/match/call-condition.ts";
import { matches } from "../../shared/core/injection/match/matches.ts";
import { PODS } from "../../shared/kube/port.ts";
import { withWebhooks } from "./admission-setup.ts";
import type { ContractCase } from "./contract.ts";

/** Number of lists of SidecarSets, each with pods. The figure counts pairs of a pod and a SidecarSet. */
const LISTS = 8;
const PODS_PER_LIST = 25;
const NAMESPACE_NAME = "kubernetes.io/metadata.name";
const POD_RULE = { operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] };

const key = fc.constantFrom("app", "tier", "example.com/env");
const value = fc.constantFrom("a", "b", "");
const requirement = fc.oneof(
  fc.record({ key, operator: fc.constantFrom("In", "NotIn"), values: fc.array(value, { minLength: 1, maxLength: 2 }) }),
  fc.record({ key, operator: fc.constantFrom("Exists", "DoesNotExist") }),
);
const selector: fc.Arbitrary<LabelSelector> = fc.record(
  { matchLabels: fc.dictionary(key, value, { maxKeys: 2 }), matchExpressions: fc.array(requirement, { maxLength: 2 }) },
  { requiredKeys: [] },
);
const labelsOf = fc.dictionary(key, value, { maxKeys: 3 });

function listsOf(namespace: string): readonly (readonly SidecarSet[])[] {
  const names = fc.subarray([namespace, "elsewhere"], { minLength: 1 });
  const namespaceSelector = names.map((values) => ({
    matchExpressions: [{ key: NAMESPACE_NAME, operator: "In", values }],
  }));
  const sidecarSet = fc.record({ spec: fc.record({ selector, namespaceSelector }, { requiredKeys: ["selector"] }) });
  return fc.sample(fc.array(sidecarSet, { minLength: 1, maxLength: 4 }), LISTS) as readonly (readonly SidecarSet[])[];
}

export const CALL_CONDITION_CASES: readonly ContractCase[] = [
  withWebhooks(
    "API servers call the webhook exactly for pods that a SidecarSet matches",
    async ({ server, install, ...context }) => {
      const { cluster, namespace } = context;
      const subject = { metadata: { name: namespace, labels: { [NAMESPACE_NAME]: namespace } } };
      let pairs = 0;
      let asked = 0;
      for (const [index, sidecarSets] of listsOf(namespace).entries()) {
        const path = `/list-${index}`;
        const matchConditions = [{ name: "needs-the-webhook", expression: callCondition(sidecarSets) ?? "true" }];
        await install({ type: "mutating", path, webhook: { rules: [POD_RULE], matchConditions } });
        for (const labels of fc.sample(labelsOf, PODS_PER_LIST)) {
          const before = server.requests(path).length;
          const pod = {
            metadata: { name: "p", namespace, labels },
            spec: { containers: [{ name: "c", image: "i:1" }] },
          };
          await cluster.create(PODS, pod, { dryRun: true });
          const isMatched = sidecarSets.some((one) => matches(one, { namespace: subject, podLabels: labels }) === true);
          const isAsked = server.requests(path).length > before;
          expect({ labels, sidecarSets, isAsked }).toEqual({ labels, sidecarSets, isAsked: isMatched });
          pairs += sidecarSets.length;
          asked += isAsked ? 1 : 0;
        }
      }
      expect(pairs).toBeGreaterThanOrEqual(LISTS * PODS_PER_LIST);
      expect(asked).toBeGreaterThan(0);
      expect(asked).toBeLessThan(LISTS * PODS_PER_LIST);
    },
  ),
];
