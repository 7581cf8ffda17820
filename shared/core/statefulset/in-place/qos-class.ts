/** Decides a pod's quality of service class, which no change of resources may move. */
import type { Quantity, ResourceRequirements } from "../../../api/kubernetes.ts";
import { fieldQuantity, type ParsedQuantity } from "../../../go/quantity/quantity.ts";
import { addQuantities, compareQuantities } from "../../../go/quantity/quantity-arithmetic.ts";

interface WithResources {
  readonly resources?: ResourceRequirements;
}

type Totals = ReadonlyMap<string, ParsedQuantity>;

const COUNTED = ["cpu", "memory"];

/** Source: Kubernetes pkg/apis/core/v1/helper/qos, ComputePodQOS; resources that are not given are not defaulted. */
export function qosClassOf(containers: readonly WithResources[]): "BestEffort" | "Burstable" | "Guaranteed" {
  const [requests, limits] = [totalOf(containers, "requests"), totalOf(containers, "limits")];
  if (requests.size === 0 && limits.size === 0) return "BestEffort";
  const areLimited = containers.every(({ resources }) =>
    COUNTED.every((resource) => positive(resources?.limits?.[resource])),
  );
  const areSame = [...requests].every(([resource, request]) => {
    const limit = limits.get(resource);
    return limit !== undefined && compareQuantities(limit, request) === 0;
  });
  return areLimited && areSame && limits.size === requests.size ? "Guaranteed" : "Burstable";
}

/** Compat: it is the sums of all containers that have to be equal. */
function totalOf(containers: readonly WithResources[], list: "limits" | "requests"): Totals {
  const totals = new Map<string, ParsedQuantity>();
  for (const { resources } of containers) {
    for (const resource of COUNTED) {
      const quantity = positive(resources?.[list]?.[resource]);
      const before = totals.get(resource);
      if (quantity) totals.set(resource, before ? addQuantities(before, quantity) : quantity);
    }
  }
  return totals;
}

function positive(quantity: Quantity | undefined): ParsedQuantity | undefined {
  const parsed = quantity === undefined ? undefined : fieldQuantity(quantity);
  return parsed && parsed.unscaled > 0n ? parsed : undefined;
}

/** True for two ways of writing one quantity. */
export function isSame(a: Quantity | undefined, b: Quantity | undefined): boolean {
  const [left, right] = [a, b].map((quantity) => (quantity === undefined ? undefined : fieldQuantity(quantity)));
  if (!left || !right) return a === b;
  return compareQuantities(left, right) === 0;
}
