/** Pods: defaults, status of a new pod, and the fields that may change in a running pod. */
import {
  type ApiObject,
  asList,
  asObject,
  asText,
  at,
  childOf,
  copyOf,
  isEqual,
  isObject,
  type JsonObject,
  objectsIn,
  setDefault,
} from "../storage/json.ts";
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from "../storage/status-error.ts";
import { labelNameErrors } from "./names.ts";
import { quantityText, readQuantity } from "./quantity.ts";

// Errors of a pod spec, by the checks of pkg/apis/core/validation that users meet.

interface Names {
  readonly containers: Set<string>;
  readonly volumes: ReadonlySet<string>;
}

function nameErrors(item: JsonObject, seen: Set<string>, path: string): readonly FieldError[] {
  const name = asText(item["name"]);
  if (name === "") return [required(`${path}.name`)];
  if (seen.has(name)) return [duplicate(`${path}.name`, name)];
  seen.add(name);
  return labelNameErrors(name, `${path}.name`);
}

function imageErrors(image: string, path: string): readonly FieldError[] {
  if (image === "") return [required(`${path}.image`)];
  return image.trim() === image
    ? []
    : [invalid(`${path}.image`, image, "must not have leading or trailing whitespace")];
}

function mountErrors(container: JsonObject, volumes: ReadonlySet<string>, path: string): readonly FieldError[] {
  const paths = new Set<string>();
  return objectsIn(container["volumeMounts"]).flatMap((mount, index) => {
    const place = `${path}.volumeMounts[${index}]`;
    const name = asText(mount["name"]);
    const mountPath = asText(mount["mountPath"]);
    const errors: FieldError[] = [];
    if (name === "") errors.push(required(`${place}.name`));
    else if (!volumes.has(name)) errors.push(notFoundField(`${place}.name`, name));
    if (mountPath === "") errors.push(required(`${place}.mountPath`));
    else if (paths.has(mountPath)) errors.push(invalid(`${place}.mountPath`, mountPath, "must be unique"));
    paths.add(mountPath);
    return errors;
  });
}

function notFoundField(field: string, value: string): FieldError {
  return { field, reason: "FieldValueNotFound", message: `Not found: ${JSON.stringify(value)}` };
}

function environmentErrors(container: JsonObject, path: string): readonly FieldError[] {
  return objectsIn(container["env"]).flatMap((variable, index) =>
    asText(variable["name"]) === "" ? [required(`${path}.env[${index}].name`)] : [],
  );
}

function portErrors(container: JsonObject, path: string): readonly FieldError[] {
  return objectsIn(container["ports"]).flatMap((port, index) => {
    const place = `${path}.ports[${index}].containerPort`;
    const number = port["containerPort"];
    if (typeof number !== "number" || number === 0) return [required(place)];
    return number > 0 && number < 65_536 ? [] : [invalid(place, number, "must be between 1 and 65535, inclusive")];
  });
}

const PULL_POLICIES = ["Always", "IfNotPresent", "Never"];

function restartErrors(container: JsonObject, list: string, path: string): readonly FieldError[] {
  const policy = container["restartPolicy"];
  if (policy === undefined) return [];
  if (list === "containers") return [forbiddenField(`${path}.restartPolicy`, "may not be set for non-init containers")];
  return policy === "Always" ? [] : [notSupported(`${path}.restartPolicy`, policy, ["Always"])];
}

function requestErrors({ resources }: JsonObject, path: string): readonly FieldError[] {
  const { requests, limits } = asObject(resources);
  return Object.entries(asObject(limits)).flatMap(([name, limit]) => {
    const request = asObject(requests)[name];
    const [asked, most] = [readQuantity(request), readQuantity(limit)];
    if (asked === undefined || most === undefined || asked.nano <= most.nano) return [];
    return [invalid(path, request, `must be less than or equal to ${name} limit of ${limit}`)];
  });
}

function containerErrors(container: JsonObject, list: string, path: string, names: Names): readonly FieldError[] {
  const policy = container["imagePullPolicy"];
  const isGood = policy === undefined || PULL_POLICIES.includes(asText(policy));
  return [
    ...nameErrors(container, names.containers, path),
    ...imageErrors(asText(container["image"]), path),
    ...(isGood ? [] : [notSupported(`${path}.imagePullPolicy`, policy, PULL_POLICIES)]),
    ...portErrors(container, path),
    ...environmentErrors(container, path),
    ...mountErrors(container, names.volumes, path),
    ...restartErrors(container, list, path),
    ...requestErrors(container, `${path}.resources.requests`),
  ];
}

const RESTART_POLICIES = ["Always", "OnFailure", "Never"];

/** Errors of a spec. `path`: place of the spec, "spec" or "spec.template.spec". */
export function podSpecErrors(spec: JsonObject, path: string): readonly FieldError[] {
  const volumeNames = new Set<string>();
  const volumes = objectsIn(spec["volumes"]).flatMap((volume, index) =>
    nameErrors(volume, volumeNames, `${path}.volumes[${index}]`),
  );
  const names: Names = { containers: new Set(), volumes: volumeNames };
  const containers = objectsIn(spec["containers"]);
  const inList = (list: string): readonly FieldError[] =>
    objectsIn(spec[list]).flatMap((container, index) =>
      containerErrors(container, list, `${path}.${list}[${index}]`, names),
    );
  const policy = spec["restartPolicy"];
  return [
    ...volumes,
    ...(containers.length === 0 ? [required(`${path}.containers`)] : inList("containers")),
    ...inList("initContainers"),
    ...inList("ephemeralContainers"),
    ...(RESTART_POLICIES.includes(asText(policy))
      ? []
      : [notSupported(`${path}.restartPolicy`, policy, RESTART_POLICIES)]),
  ];
}

// Defaults of a pod spec, as pkg/apis/core/v1/defaults.go sets them, for pods and pod templates.

const PROBES = ["livenessProbe", "readinessProbe", "startupProbe"];
const DEFAULT_MODE = 420;

function pullPolicy(image: string): string {
  if (image.includes("@")) return "IfNotPresent";
  const tag = /:([^:/]+)$/.exec(image)?.[1] ?? "latest";
  return tag === "latest" ? "Always" : "IfNotPresent";
}

function defaultHttpGet(handler: unknown): void {
  const get = at(handler, "httpGet");
  if (!isObject(get)) return;
  setDefault(get, "path", "/");
  setDefault(get, "scheme", "HTTP");
}

function defaultProbe(probe: unknown): void {
  if (!isObject(probe)) return;
  defaultHttpGet(probe);
  setDefault(probe, "timeoutSeconds", 1);
  setDefault(probe, "periodSeconds", 10);
  setDefault(probe, "successThreshold", 1);
  setDefault(probe, "failureThreshold", 3);
}

/** Quantities as Go prints them: 1000m is 1. */
function canonical(amounts: unknown): JsonObject {
  const entries = Object.entries(asObject(amounts)).map(([name, amount]) => {
    const quantity = readQuantity(amount);
    return [name, quantity === undefined ? amount : quantityText(quantity)];
  });
  return Object.fromEntries(entries);
}

function defaultResources(container: JsonObject): void {
  setDefault(container, "resources", {});
  const resources = asObject(container["resources"]);
  const limits = canonical(resources["limits"]);
  if (resources["requests"] !== undefined) resources["requests"] = canonical(resources["requests"]);
  if (Object.keys(limits).length === 0) return;
  resources["limits"] = limits;
  resources["requests"] = { ...limits, ...asObject(resources["requests"]) };
}

function defaultVariable(variable: JsonObject): void {
  if (variable["value"] === "") delete variable["value"];
  defaultFieldRef(at(variable, "valueFrom"));
  const resource = at(variable, "valueFrom", "resourceFieldRef");
  if (isObject(resource)) setDefault(resource, "divisor", "0");
}

function defaultContainer(container: JsonObject): void {
  setDefault(container, "terminationMessagePath", "/dev/termination-log");
  setDefault(container, "terminationMessagePolicy", "File");
  setDefault(container, "imagePullPolicy", pullPolicy(asText(container["image"])));
  defaultResources(container);
  for (const port of objectsIn(container["ports"])) setDefault(port, "protocol", "TCP");
  for (const variable of objectsIn(container["env"])) defaultVariable(variable);
  for (const name of PROBES) defaultProbe(container[name]);
  defaultHttpGet(at(container, "lifecycle", "postStart"));
  defaultHttpGet(at(container, "lifecycle", "preStop"));
}

function defaultHostPorts(container: JsonObject): void {
  for (const port of objectsIn(container["ports"])) setDefault(port, "hostPort", port["containerPort"]);
}

function defaultFieldRef(source: unknown): void {
  const reference = at(source, "fieldRef");
  if (isObject(reference)) setDefault(reference, "apiVersion", "v1");
}

function defaultProjected(projected: JsonObject): void {
  setDefault(projected, "defaultMode", DEFAULT_MODE);
  for (const source of objectsIn(projected["sources"])) {
    const token = source["serviceAccountToken"];
    if (isObject(token)) setDefault(token, "expirationSeconds", 3600);
    for (const item of objectsIn(at(source, "downwardAPI", "items"))) defaultFieldRef(item);
  }
}

function defaultVolume(volume: JsonObject): void {
  if (Object.keys(volume).every((key) => key === "name")) volume["emptyDir"] = {};
  for (const name of ["secret", "configMap", "downwardAPI"]) {
    const source = volume[name];
    if (isObject(source)) setDefault(source, "defaultMode", DEFAULT_MODE);
  }
  for (const item of objectsIn(at(volume, "downwardAPI", "items"))) defaultFieldRef(item);
  if (isObject(volume["projected"])) defaultProjected(volume["projected"]);
  if (isObject(volume["hostPath"])) setDefault(volume["hostPath"], "type", "");
}

/** Sets the defaults in the given spec. */
export function defaultPodSpec(spec: JsonObject): void {
  setDefault(spec, "restartPolicy", "Always");
  setDefault(spec, "dnsPolicy", "ClusterFirst");
  setDefault(spec, "schedulerName", "default-scheduler");
  setDefault(spec, "securityContext", {});
  setDefault(spec, "terminationGracePeriodSeconds", 30);
  const account = spec["serviceAccountName"] ?? spec["serviceAccount"];
  if (account !== undefined) Object.assign(spec, { serviceAccountName: account, serviceAccount: account });
  for (const volume of objectsIn(spec["volumes"])) defaultVolume(volume);
  defaultContainers(spec);
}

function defaultContainers(spec: JsonObject): void {
  for (const list of ["initContainers", "containers", "ephemeralContainers"]) {
    for (const container of objectsIn(spec[list])) {
      defaultContainer(container);
      if (spec["hostNetwork"] === true) defaultHostPorts(container);
    }
    if (Array.isArray(spec[list]) && spec[list].length === 0 && list === "initContainers") delete spec[list];
  }
}

const IMMUTABLE =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

export function qualityOfService(spec: JsonObject): string {
  const containers = [...objectsIn(spec["containers"]), ...objectsIn(spec["initContainers"])];
  const resources = containers.map((container) => asObject(container["resources"]));
  const isEmpty = (value: unknown): boolean => Object.keys(asObject(value)).length === 0;
  if (resources.every((one) => isEmpty(one["limits"]) && isEmpty(one["requests"]))) return "BestEffort";
  const isGuaranteed = resources.every((one) => {
    const limits = asObject(one["limits"]);
    return limits["cpu"] !== undefined && limits["memory"] !== undefined && isEqual(limits, one["requests"]);
  });
  return isGuaranteed ? "Guaranteed" : "Burstable";
}

/** The spec without the fields that may change. */
function fixedPart(spec: JsonObject): JsonObject {
  const fixed = copyOf(spec);
  delete fixed["activeDeadlineSeconds"];
  delete fixed["tolerations"];
  for (const list of ["containers", "initContainers"]) {
    for (const container of objectsIn(fixed[list])) delete container["image"];
  }
  return fixed;
}

function tolerationErrors(next: JsonObject, previous: JsonObject): readonly FieldError[] {
  const now = asList(next["tolerations"]);
  const isKept = asList(previous["tolerations"]).every((old) => now.some((one) => isEqual(one, old)));
  const why = "existing toleration can not be modified except its tolerationSeconds";
  return isKept ? [] : [forbiddenField("spec.tolerations", why)];
}

function updateErrors(next: JsonObject, previous: JsonObject): readonly FieldError[] {
  for (const list of ["containers", "initContainers"]) {
    if (asList(next[list]).length !== asList(previous[list]).length) {
      return [forbiddenField(`spec.${list}`, "pod updates may not add or remove containers")];
    }
  }
  const isSame = isEqual(fixedPart(next), fixedPart(previous));
  return [...tolerationErrors(next, previous), ...(isSame ? [] : [forbiddenField("spec", IMMUTABLE)])];
}

/** Errors of a new status. An ended container stays ended, if the pod's restart policy does not restart it. */
function statusErrors(next: JsonObject, { spec, status }: ApiObject): readonly FieldError[] {
  const policy = asObject(spec)["restartPolicy"];
  const isFinal = (one: JsonObject): boolean => {
    const exitCode = at(one, "state", "terminated", "exitCode");
    return policy !== "Always" && exitCode !== undefined && (policy === "Never" || exitCode === 0);
  };
  return objectsIn(asObject(status)["containerStatuses"]).flatMap((one, index) => {
    const now = objectsIn(next["containerStatuses"]).find(({ name }) => name === one["name"]);
    if (now === undefined || !isFinal(one) || at(now, "state", "terminated") !== undefined) return [];
    const why = "may not be transitioned to non-terminated state";
    return [forbiddenField(`status.containerStatuses[${index}].state`, why)];
  });
}

export const POD_STRATEGY = {
  default(pod: ApiObject): void {
    const spec = childOf(pod, "spec");
    defaultPodSpec(spec);
    if (spec["enableServiceLinks"] === undefined) spec["enableServiceLinks"] = true;
    if (!isObject(pod["status"])) pod["status"] = {};
  },
  prepareCreate(pod: ApiObject): void {
    pod["status"] = { phase: "Pending", qosClass: qualityOfService(asObject(pod["spec"])) };
  },
  validate: (pod: ApiObject): readonly FieldError[] => podSpecErrors(asObject(pod["spec"]), "spec"),
  validateUpdate: (next: ApiObject, previous: ApiObject): readonly FieldError[] =>
    updateErrors(asObject(next["spec"]), asObject(previous["spec"])),
  validateStatus: (next: ApiObject, previous: ApiObject): readonly FieldError[] =>
    statusErrors(asObject(next["status"]), previous),
};
