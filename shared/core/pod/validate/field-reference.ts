/** Checks whether the downward API offers a field of the pod or a resource of its containers. */
import type { EnvVarSource } from "../../../api/pod-parts.ts";
import { type FieldError, invalid, invalidEach, notSupported, required } from "../../../go/field-error.ts";
import { qualifiedNameErrors } from "../../../go/label-name.ts";
import { fieldQuantity, formatQuantity } from "../../../go/quantity/quantity.ts";

/** The types as JSON may have them: any member may be missing. */
type Loose<T> = { readonly [Member in keyof T]?: T[Member] | undefined };
type FieldReference = Loose<NonNullable<EnvVarSource["fieldRef"]>>;
type ResourceReference = Loose<NonNullable<EnvVarSource["resourceFieldRef"]>>;

const POD_FIELDS: ReadonlySet<string> = new Set([
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.restartPolicy",
  "spec.serviceAccountName",
  "spec.schedulerName",
  "status.phase",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
]);
const SUBSCRIPTED: ReadonlySet<string> = new Set(["metadata.annotations", "metadata.labels"]);
const RESOURCES = [
  "limits.cpu",
  "limits.ephemeral-storage",
  "limits.memory",
  "requests.cpu",
  "requests.ephemeral-storage",
  "requests.memory",
];
const HUGE_PAGES = ["limits.hugepages-", "requests.hugepages-"];
const CPU_DIVISORS = ["1m", "1"];
const BYTE_DIVISORS = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
const BYTE_RESOURCES: ReadonlyMap<string, string> = new Map([
  ["memory", "memory resource"],
  ["ephemeral-storage", "local ephemeral storage resource"],
]);

function pathProblem(apiVersion: string, fieldPath: string): string | undefined {
  if (apiVersion !== "v1") return `unsupported pod version: ${apiVersion}`;
  const { path, subscript } = splitSubscript(fieldPath);
  if (subscript !== undefined) {
    return SUBSCRIPTED.has(path) ? undefined : `field label does not support subscript: ${fieldPath}`;
  }
  return POD_FIELDS.has(path) || path === "spec.host" ? undefined : `field label not supported: ${fieldPath}`;
}

/** Validates a path. `problemOf`: returns the fault of a path in that version. */
export function validatePath(
  { apiVersion = "", fieldPath = "" }: FieldReference,
  field: string,
  problemOf: (apiVersion: string, fieldPath: string) => string | undefined,
): readonly FieldError[] {
  if (apiVersion === "") return [required(`${field}.apiVersion`)];
  if (fieldPath === "") return [required(`${field}.fieldPath`)];
  const problem = problemOf(apiVersion, fieldPath);
  return problem ? [invalid(`${field}.fieldPath`, fieldPath, `error converting fieldPath: ${problem}`)] : [];
}

/** Validates a reference to a field. `offered`: the available fields at this place, sorted. */
export function validateFieldReference(
  reference: FieldReference,
  field: string,
  offered: readonly string[],
): readonly FieldError[] {
  const wrong = validatePath(reference, field, pathProblem);
  if (wrong.length > 0) return wrong;
  const { fieldPath = "" } = reference;
  const { path, subscript } = splitSubscript(fieldPath === "spec.host" ? "spec.nodeName" : fieldPath);
  if (subscript === undefined) {
    return offered.includes(path) ? [] : [notSupported(`${field}.fieldPath`, path, offered)];
  }
  const key = path === "metadata.annotations" ? subscript.toLowerCase() : subscript;
  return invalidEach(field, key, qualifiedNameErrors(key));
}

function isHugePages(resource: string): boolean {
  return HUGE_PAGES.some((prefix) => resource.startsWith(prefix));
}

function validateResourceName(
  { containerName, resource = "" }: ResourceReference,
  field: string,
  isVolume: boolean,
): readonly FieldError[] {
  if (isVolume && !containerName) return [required(`${field}.containerName`)];
  if (resource === "") return [required(`${field}.resource`)];
  return RESOURCES.includes(resource) || isHugePages(resource)
    ? []
    : [notSupported(`${field}.resource`, resource, RESOURCES)];
}

function divisorRule(resource: string): readonly [readonly string[], string] | undefined {
  const [list = "", name = ""] = resource.split(/\.(.*)/s);
  if (isHugePages(resource)) return [BYTE_DIVISORS, "hugepages resource"];
  if (list !== "limits" && list !== "requests") return undefined;
  if (name === "cpu") return [CPU_DIVISORS, "cpu resource"];
  const title = BYTE_RESOURCES.get(name);
  return title === undefined ? undefined : [BYTE_DIVISORS, title];
}

function validateDivisor({ resource = "", divisor }: ResourceReference, field: string): readonly FieldError[] {
  const quantity = fieldQuantity(divisor ?? "0");
  const rule = divisorRule(resource);
  if (quantity === undefined || quantity.unscaled === 0n || rule === undefined) return [];
  const [divisors, title] = rule;
  if (divisors.includes(formatQuantity(quantity))) return [];
  const list = divisors === CPU_DIVISORS ? "1m and 1" : divisors.join(", ");
  return [invalid(`${field}.divisor`, resource, `only divisor's values ${list} are supported with the ${title}`)];
}

/** Validates a reference to a resource. In a volume it must name the container. */
export function validateResourceReference(
  reference: ResourceReference,
  field: string,
  isVolume: boolean,
): readonly FieldError[] {
  return [...validateResourceName(reference, field, isVolume), ...validateDivisor(reference, field)];
}

/** The target of a downward API field path: a field, or one label or annotation of the pod. */
interface SubscriptedPath {
  readonly path: string;
  /** the text between `['` and `']`, if any */
  readonly subscript?: string;
}

/** Splits `metadata.labels['app']` into path and subscript. Source: Kubernetes' SplitMaybeSubscriptedPath. */
export function splitSubscript(fieldPath: string): SubscriptedPath {
  const start = fieldPath.indexOf("['");
  if (!fieldPath.endsWith("']") || start <= 0 || start + 2 > fieldPath.length - 2) return { path: fieldPath };
  return { path: fieldPath.slice(0, start), subscript: fieldPath.slice(start + 2, -2) };
}
