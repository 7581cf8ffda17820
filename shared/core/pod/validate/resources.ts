/** Tells whether Kubernetes would accept a container's resources. */

import type { Quantity } from "../../../api/kubernetes.ts";
import type { ContainerDetails, ContainerResizePolicy, ResourceClaim } from "../../../api/pod-parts.ts";
import {
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  invalidEach,
  notFound,
  notSupported,
  required,
} from "../../../go/field-error.ts";
import { dnsLabelErrors, qualifiedNameErrors } from "../../../go/label-name.ts";
import { fieldQuantity, formatQuantity, type ParsedQuantity } from "../../../go/quantity/quantity.ts";
import { compareQuantities, milliValue } from "../../../go/quantity/quantity-arithmetic.ts";

type ResourceList = Readonly<Record<string, Quantity>>;

const RESIZED = ["cpu", "memory"];
const RESIZE_POLICIES = ["NotRequired", "RestartContainer"];

function quantityOf(quantity: Quantity): ParsedQuantity {
  return fieldQuantity(quantity) ?? { unscaled: 0n, scale: 0, format: "DecimalSI", isInt64: true };
}

/** Source: Kubernetes' ValidateResourceQuantityValue. */
function validateAmount(name: string, amount: Quantity, field: string): readonly FieldError[] {
  const quantity = quantityOf(amount);
  const isNegative = quantity.unscaled < 0n;
  const hasFraction = isInteger(name) && milliValue(quantity) % 1000n !== 0n;
  return [
    ...(isNegative ? [invalid(field, formatQuantity(quantity), "must be greater than or equal to 0")] : []),
    ...(hasFraction ? [invalid(field, formatQuantity(quantity), "must be an integer")] : []),
  ];
}

function validateList(list: ResourceList, field: string): readonly FieldError[] {
  return Object.entries(list).flatMap(([name, amount]) => [
    ...invalidEach(`${field}[${name}]`, name, containerResourceErrors(name)),
    ...validateAmount(name, amount, `${field}[${name}]`),
  ]);
}

function requestProblem(name: string, request: ParsedQuantity, limit: ParsedQuantity): string | undefined {
  const order = compareQuantities(request, limit);
  if (order !== 0 && !isOvercommitAllowed(name)) return `must be equal to ${name} limit of ${formatQuantity(limit)}`;
  return order > 0 ? `must be less than or equal to ${name} limit of ${formatQuantity(limit)}` : undefined;
}

function validateRequests(requests: ResourceList, limits: ResourceList, field: string): readonly FieldError[] {
  return Object.entries(requests).flatMap(([name, amount]) => {
    const limit = limits[name];
    if (limit === undefined) {
      const detail = "Limit must be set for non overcommitable resources";
      return isOvercommitAllowed(name) ? [] : [required(`${field}.limits`, detail)];
    }
    const request = quantityOf(amount);
    const problem = requestProblem(name, request, quantityOf(limit));
    return problem === undefined ? [] : [invalid(`${field}.requests`, formatQuantity(request), problem)];
  });
}

/** Checks a claim against the earlier ones. `keys`: `claim` or `claim/request`. */
function validateClaimKey(
  { name = "", request = "" }: ResourceClaim,
  field: string,
  keys: Set<string>,
): readonly FieldError[] {
  if (keys.has(name)) return [duplicate(field, name)];
  const key = request === "" ? name : `${name}/${request}`;
  const parts = [...keys].filter((other) => request === "" && other.startsWith(`${name}/`));
  const errors = [
    ...(request === "" ? [] : invalidEach(`${field}.request`, request, dnsLabelErrors(request))),
    ...(keys.has(key) ? [duplicate(field, key)] : []),
    ...parts.map(() => duplicate(field, name)),
  ];
  keys.add(key);
  return errors;
}

/** Validates claims. The pod that the validation builds has none, so no reference is valid. */
function validateClaims(claims: readonly ResourceClaim[], field: string): readonly FieldError[] {
  const keys = new Set<string>();
  return claims.flatMap((claim, index) => {
    const member = `${field}[${index}]`;
    if (!claim.name) return [required(member)];
    const detail = "must be one of the names in pod.spec.resourceClaims which is empty";
    return [...validateClaimKey(claim, member, keys), notFound(member, claim.name, detail)];
  });
}

export function validateResources(resources: ContainerDetails["resources"], field: string): readonly FieldError[] {
  const limits = resources?.limits ?? {};
  const requests = resources?.requests ?? {};
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  const isOnlyHugePages = names.some(isHugePages) && !names.some((name) => name === "cpu" || name === "memory");
  return [
    ...validateList(limits, `${field}.limits`),
    ...validateList(requests, `${field}.requests`),
    ...validateRequests(requests, limits, field),
    ...(isOnlyHugePages ? [forbidden(field, "HugePages require cpu or memory")] : []),
    ...validateClaims(resources?.claims ?? [], `${field}.claims`),
  ];
}

function validateChoice(value: string, field: string, supported: readonly string[]): readonly FieldError[] {
  if (value === "") return [required(field)];
  return supported.includes(value) ? [] : [notSupported(field, value, supported)];
}

export function validateResizePolicy(
  policies: readonly ContainerResizePolicy[] | undefined,
  field: string,
): readonly FieldError[] {
  const seen = new Set<string>();
  return (policies ?? []).flatMap(({ resourceName = "", restartPolicy = "" }, index) => {
    const isRepeated = seen.has(resourceName);
    seen.add(resourceName);
    return [
      ...(isRepeated ? [duplicate(`${field}[${index}]`, resourceName)] : []),
      ...validateChoice(resourceName, field, RESIZED),
      ...validateChoice(restartPolicy, field, RESIZE_POLICIES),
    ];
  });
}

/** Finds the kind of resource from its name. */
const HUGE_PAGES = "hugepages-";
const REQUESTS = "requests.";

const COUNTED = [
  "pods",
  "resourcequotas",
  "services",
  "replicationcontrollers",
  "secrets",
  "configmaps",
  "persistentvolumeclaims",
  "services.nodeports",
  "services.loadbalancers",
];
const COUNTED_RESOURCES: ReadonlySet<string> = new Set(COUNTED);
const CONTAINER_RESOURCES: ReadonlySet<string> = new Set(["cpu", "memory", "ephemeral-storage"]);
const STANDARD_RESOURCES: ReadonlySet<string> = new Set([
  ...COUNTED,
  ...CONTAINER_RESOURCES,
  "requests.cpu",
  "requests.memory",
  "requests.ephemeral-storage",
  "limits.cpu",
  "limits.memory",
  "limits.ephemeral-storage",
  "storage",
  "requests.storage",
]);

function isHugePages(name: string): boolean {
  return name.startsWith(HUGE_PAGES);
}

/** True for a name without prefix, or with a prefix of Kubernetes. */
function isNative(name: string): boolean {
  return !name.includes("/") || name.includes("kubernetes.io/");
}

function isExtended(name: string): boolean {
  if (isNative(name) || name.startsWith(REQUESTS)) return false;
  return qualifiedNameErrors(`${REQUESTS}${name}`).length === 0;
}

/** True if requests may be lower than limits, and limits may be absent. */
function isOvercommitAllowed(name: string): boolean {
  return isNative(name) && !isHugePages(name);
}

/** True for a resource that is counted in whole pieces. */
function isInteger(name: string): boolean {
  return COUNTED_RESOURCES.has(name) || isExtended(name);
}

function isStandard(name: string): boolean {
  return STANDARD_RESOURCES.has(name) || isHugePages(name) || name.startsWith(`${REQUESTS}${HUGE_PAGES}`);
}

/** The reasons why a container cannot request the resource. */
function containerResourceErrors(name: string): readonly string[] {
  const errors = [...qualifiedNameErrors(name)];
  const isPlain = !name.includes("/");
  if (errors.length === 0 && isPlain && !isStandard(name)) {
    errors.push("must be a standard resource type or fully qualified");
  }
  if (isPlain && !CONTAINER_RESOURCES.has(name) && !isHugePages(name)) {
    errors.push("must be a standard resource for containers");
  }
  if (!isPlain && !isNative(name) && !isExtended(name)) {
    errors.push("doesn't follow extended resource name standard");
  }
  return errors;
}
