/** Decides what kind of resource a name stands for. */
import { qualifiedNameErrors } from "../../../go/label-name.ts";

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

export function isHugePages(name: string): boolean {
  return name.startsWith(HUGE_PAGES);
}

/** A name without prefix, or one of Kubernetes' own. */
function isNative(name: string): boolean {
  return !name.includes("/") || name.includes("kubernetes.io/");
}

function isExtended(name: string): boolean {
  if (isNative(name) || name.startsWith(REQUESTS)) return false;
  return qualifiedNameErrors(`${REQUESTS}${name}`).length === 0;
}

/** Requests may stay below limits, and be given without them. */
export function isOvercommitAllowed(name: string): boolean {
  return isNative(name) && !isHugePages(name);
}

/** Counted in whole pieces. */
export function isInteger(name: string): boolean {
  return COUNTED_RESOURCES.has(name) || isExtended(name);
}

function isStandard(name: string): boolean {
  return STANDARD_RESOURCES.has(name) || isHugePages(name) || name.startsWith(`${REQUESTS}${HUGE_PAGES}`);
}

/** Why a container cannot ask for it. */
export function containerResourceErrors(name: string): readonly string[] {
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
