/** Defaults of a pod spec, as pkg/apis/core/v1/defaults.go fills them in; used for pods and for pod templates. */
import { asObject, asText, at, isObject, type JsonObject, objectsIn, setDefault } from "../storage/json.ts";
import { quantityText, readQuantity } from "./quantity.ts";

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

/** Changes the spec. */
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
