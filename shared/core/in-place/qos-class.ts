/** Decides a pod's quality of service class, which no change of resources may move. */
import type { Quantity, ResourceRequirements } from "../../api/kubernetes.ts";
import { parseQuantity } from "../lib/quantity.ts";
import { compareQuantities } from "../lib/quantity-arithmetic.ts";

interface WithResources {
  readonly resources?: ResourceRequirements;
}

type Quantities = Readonly<Record<string, Quantity>>;

const COUNTED = ["cpu", "memory"];

/** Source: Kubernetes pkg/apis/core/v1/helper/qos, ComputePodQOS; resources that are not given are not defaulted. */
export function qosClassOf(containers: readonly WithResources[]): "BestEffort" | "Burstable" | "Guaranteed" {
  const given = containers.map(
    ({ resources }) => [positive(resources?.requests), positive(resources?.limits)] as const,
  );
  if (given.every(([requests, limits]) => isEmpty(requests) && isEmpty(limits))) return "BestEffort";
  const isGuaranteed = given.every(([requests, limits]) => {
    const areRequested = Object.entries(requests).every(([resource, value]) => isSame(value, limits[resource]));
    return areRequested && Object.keys(requests).length === COUNTED.length;
  });
  return isGuaranteed ? "Guaranteed" : "Burstable";
}

/** True for two ways of writing one quantity. */
export function isSame(a: Quantity | undefined, b: Quantity | undefined): boolean {
  const [left, right] = [a, b].map((quantity) => (quantity === undefined ? undefined : parseQuantity(quantity)));
  if (!left || !right) return a === b;
  return compareQuantities(left, right) === 0;
}

function positive(quantities: Quantities = {}): Quantities {
  const counted = Object.entries(quantities).filter(([resource, value]) => {
    const quantity = parseQuantity(value);
    return COUNTED.includes(resource) && quantity !== undefined && quantity.unscaled > 0n;
  });
  return Object.fromEntries(counted);
}

function isEmpty(quantities: Quantities): boolean {
  return Object.keys(quantities).length === 0;
}
