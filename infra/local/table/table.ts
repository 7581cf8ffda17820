/** metav1.Table: the rows that kubectl prints. */
import type { Kind, PrinterColumn } from "../kinds/kind.ts";
import {
  type ApiObject,
  asList,
  asNumber,
  asText,
  at,
  controllerOf,
  type JsonObject,
  objectsIn,
  textAt,
} from "../storage/json.ts";

function partial(object: ApiObject): JsonObject {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object.metadata };
}

function includedObject(object: ApiObject, include: string): unknown {
  if (include === "None") return undefined;
  return include === "Object" ? object : partial(object);
}

function definition(column: TableColumn): JsonObject {
  const { name, type, format, description, priority } = column;
  return { name, type, format, description, priority };
}

export interface TableSettings {
  /** metav1.IncludeObjectPolicy: "", None, Metadata or Object */
  readonly includeObject: string;
  /** milliseconds since the epoch, for ages */
  readonly now: number;
}

/** The Table of objects in the version of `kind`. `metadata`: metadata of the list. */
export function tableOf(
  kind: Kind,
  objects: readonly ApiObject[],
  metadata: JsonObject,
  settings: TableSettings,
): JsonObject {
  const columns = columnsOf(kind);
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: columns.map(definition),
    rows: objects.map((object) => ({
      cells: columns.map((column) => column.cell(object, settings.now)),
      object: includedObject(object, settings.includeObject),
    })),
  };
}

// The columns of each kind, with the cells that kubectl get prints.

/** A pod's row: READY, STATUS and RESTARTS as pkg/printers/internalversion counts them. */
function statuses(pod: ApiObject, field: string): readonly JsonObject[] {
  return objectsIn(at(pod, "status", field));
}

function isSidecar(pod: ApiObject, name: unknown): boolean {
  return objectsIn(at(pod, "spec", "initContainers")).some((container) => {
    return container["name"] === name && container["restartPolicy"] === "Always";
  });
}

/** Containers that run as long as the pod: the plain ones and the native sidecars. */
function running(pod: ApiObject): readonly JsonObject[] {
  const sidecars = statuses(pod, "initContainerStatuses").filter((status) => isSidecar(pod, status["name"]));
  return [...sidecars, ...statuses(pod, "containerStatuses")];
}

function readyCell(pod: ApiObject): string {
  const sidecars = objectsIn(at(pod, "spec", "initContainers")).filter((one) => one["restartPolicy"] === "Always");
  const total = objectsIn(at(pod, "spec", "containers")).length + sidecars.length;
  return `${running(pod).filter((status) => status["ready"] === true).length}/${total}`;
}

function initReason(pod: ApiObject): string | undefined {
  const list = statuses(pod, "initContainerStatuses");
  const total = objectsIn(at(pod, "spec", "initContainers")).length;
  for (const [index, status] of list.entries()) {
    if (at(status, "state", "terminated", "exitCode") === 0) continue;
    if (isSidecar(pod, status["name"]) && status["started"] === true) continue;
    const waiting = textAt(status, "state", "waiting", "reason");
    return waiting === "" || waiting === "PodInitializing" ? `Init:${index}/${total}` : `Init:${waiting}`;
  }
  return undefined;
}

function containerReason(pod: ApiObject): string | undefined {
  for (const status of statuses(pod, "containerStatuses")) {
    const reason = textAt(status, "state", "waiting", "reason") || textAt(status, "state", "terminated", "reason");
    if (reason !== "") return reason;
  }
  return undefined;
}

function statusCell(pod: ApiObject): string {
  if (pod.metadata.deletionTimestamp !== undefined) return "Terminating";
  const phase = textAt(pod, "status", "reason") || textAt(pod, "status", "phase");
  return initReason(pod) ?? containerReason(pod) ?? phase;
}

function restartsCell(pod: ApiObject, now: number): string {
  const list = running(pod);
  const count = list.reduce((sum, status) => sum + asNumber(status["restartCount"], 0), 0);
  const last =
    list
      .map((status) => textAt(status, "lastState", "terminated", "finishedAt"))
      .sort()
      .at(-1) ?? "";
  return count > 0 && last !== "" ? `${count} (${age(last, now)} ago)` : String(count);
}

function orNone(...path: readonly string[]): (pod: ApiObject) => string {
  return (pod) => textAt(pod, ...path) || "<none>";
}

function podColumns(name: TableColumn, created: TableColumn): readonly TableColumn[] {
  return [
    name,
    column("Ready", "string", readyCell),
    column("Status", "string", statusCell),
    column("Restarts", "string", restartsCell),
    created,
    column("IP", "string", orNone("status", "podIP"), 1),
    column("Node", "string", orNone("spec", "nodeName"), 1),
    column("Nominated Node", "string", orNone("status", "nominatedNodeName"), 1),
    column("Readiness Gates", "string", (pod) => gatesCell(pod), 1),
  ];
}

function gatesCell(pod: ApiObject): string {
  const gates = objectsIn(at(pod, "spec", "readinessGates"));
  if (gates.length === 0) return "<none>";
  const conditions = objectsIn(at(pod, "status", "conditions"));
  const isTrue = (gate: JsonObject): boolean => {
    return conditions.some((one) => one["type"] === asText(gate["conditionType"]) && one["status"] === "True");
  };
  return `${gates.filter(isTrue).length}/${gates.length}`;
}

/** One column of a Table. */
interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  /** 0: the column is always shown; 1: with -o wide */
  readonly priority: number;
  /** Returns the text of a cell. `now`: milliseconds since the epoch */
  cell(object: ApiObject, now: number): unknown;
}

function column(name: string, type: string, cell: TableColumn["cell"], priority = 0): TableColumn {
  return { name, type, format: name === "Name" ? "name" : "", description: "", priority, cell };
}

type Cell = (object: ApiObject, now: number) => unknown;

const NAME = column("Name", "string", (object) => object.metadata.name ?? "");
const AGE = column("Age", "string", (object, now) => age(object.metadata.creationTimestamp, now));

function count(...path: readonly string[]): Cell {
  return (object) => asNumber(at(object, ...path), 0);
}

function text(...path: readonly string[]): Cell {
  return (object) => textAt(object, ...path);
}

function keyCount(...fields: readonly string[]): Cell {
  return (object) =>
    fields.reduce((sum, field) => sum + Object.keys((at(object, field) as object | undefined) ?? {}).length, 0);
}

function readyOf(object: ApiObject): string {
  return `${asNumber(at(object, "status", "readyReplicas"), 0)}/${asNumber(at(object, "spec", "replicas"), 0)}`;
}

function nodeStatus(node: ApiObject): string {
  const ready = objectsIn(at(node, "status", "conditions")).find((condition) => condition["type"] === "Ready");
  const status = ready?.["status"] === "True" ? "Ready" : "NotReady";
  return at(node, "spec", "unschedulable") === true ? `${status},SchedulingDisabled` : status;
}

function lastSeen(event: ApiObject, now: number): string {
  const time = textAt(event, "lastTimestamp") || textAt(event, "eventTime") || textAt(event, "firstTimestamp");
  return age(time === "" ? event.metadata.creationTimestamp : time, now);
}

function eventObject(event: ApiObject): string {
  const involved = at(event, "involvedObject") ?? at(event, "regarding");
  return `${textAt(involved, "kind").toLowerCase()}/${textAt(involved, "name")}`;
}

const WEBHOOKS = column("Webhooks", "integer", (object) => asList(object["webhooks"]).length);

const COLUMNS: Readonly<Record<string, readonly TableColumn[]>> = {
  "/pods": podColumns(NAME, AGE),
  "/namespaces": [NAME, column("Status", "string", text("status", "phase")), AGE],
  "/nodes": [
    NAME,
    column("Status", "string", nodeStatus),
    column("Roles", "string", () => "<none>"),
    AGE,
    column("Version", "string", text("status", "nodeInfo", "kubeletVersion")),
  ],
  "/configmaps": [NAME, column("Data", "integer", keyCount("data", "binaryData")), AGE],
  "/secrets": [NAME, column("Type", "string", text("type")), column("Data", "integer", keyCount("data")), AGE],
  "/serviceaccounts": [NAME, column("Secrets", "integer", (object) => asList(object["secrets"]).length), AGE],
  "/events": [
    column("Last Seen", "string", lastSeen),
    column("Type", "string", text("type")),
    column("Reason", "string", text("reason")),
    column("Object", "string", eventObject),
    column("Message", "string", (event) => asText(event["message"] ?? event["note"]).trim()),
  ],
  "apps/deployments": [
    NAME,
    column("Ready", "string", readyOf),
    column("Up-to-date", "integer", count("status", "updatedReplicas")),
    column("Available", "integer", count("status", "availableReplicas")),
    AGE,
  ],
  "apps/replicasets": [
    NAME,
    column("Desired", "integer", count("spec", "replicas")),
    column("Current", "integer", count("status", "replicas")),
    column("Ready", "integer", count("status", "readyReplicas")),
    AGE,
  ],
  "apps/statefulsets": [NAME, column("Ready", "string", readyOf), AGE],
  "apps/controllerrevisions": [
    NAME,
    column("Controller", "string", (object) => {
      const owner = controllerOf(object);
      return owner ? `${owner.kind.toLowerCase()}.${owner.apiVersion.split("/")[0]}/${owner.name}` : "<none>";
    }),
    column("Revision", "integer", count("revision")),
    AGE,
  ],
  "coordination.k8s.io/leases": [NAME, column("Holder", "string", text("spec", "holderIdentity")), AGE],
  "admissionregistration.k8s.io/mutatingwebhookconfigurations": [NAME, WEBHOOKS, AGE],
  "admissionregistration.k8s.io/validatingwebhookconfigurations": [NAME, WEBHOOKS, AGE],
  "apiextensions.k8s.io/customresourcedefinitions": [
    NAME,
    column("Created At", "date", (object) => object.metadata.creationTimestamp ?? ""),
  ],
};

function printerColumn(printed: PrinterColumn): TableColumn {
  return {
    ...printed,
    cell(object, now) {
      const value = jsonPath(object, printed.jsonPath);
      if (printed.type === "date") return age(asText(value), now);
      return value ?? null;
    },
  };
}

function columnsOf(kind: Kind): readonly TableColumn[] {
  if (kind.custom !== undefined) return [NAME, ...kind.custom.columns.map(printerColumn)];
  return COLUMNS[kind.collection] ?? [NAME, AGE];
}

/** Ages as kubectl prints them: k8s.io/apimachinery/pkg/util/duration. */
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

function two(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}

function human(seconds: number): string {
  const minutes = Math.floor(seconds / MINUTE);
  const hours = Math.floor(seconds / HOUR);
  const days = Math.floor(seconds / DAY);
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (minutes < 10) return two(minutes, "m", seconds % MINUTE, "s");
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  if (days < 8) return two(days, "d", hours % 24, "h");
  if (days < 2 * 365) return `${days}d`;
  return two(Math.floor(seconds / YEAR), "y", days % 365, "d");
}

/** An age as text: "<unknown>" without a time, "<invalid>" for a time in the future. */
function age(time: string | null | undefined, now: number): string {
  if (time === undefined || time === null || time === "") return "<unknown>";
  const seconds = Math.floor((now - Date.parse(time)) / 1000);
  return seconds < -1 ? "<invalid>" : human(Math.max(0, seconds));
}

// Evaluates JSONPath, with the forms that printer columns use.

/** The value at a path: `.status.x`, `.spec.list[0].y`, `.status.list[?(@.type=="x")].y`; for `[*]` the first. */
export function jsonPath(object: ApiObject, path: string): unknown {
  const [, list = "", field = "", value = "", rest = ""] = FILTERED.exec(path) ?? [];
  if (list === "") return plainPath(object, path);
  const found = objectsIn(plainPath(object, list)).find((item) => item[field] === value);
  return found && plainPath(found as ApiObject, rest);
}

const FILTERED = /^(.+)\[\?\(@\.(\w+)==["']([^"']+)["']\)\](.*)$/;

function plainPath(object: ApiObject, path: string): unknown {
  const steps = [...path.matchAll(/\.((?:\\.|[^.[\]\\])+)|\[(\d+|\*)\]|\[['"]([^'"]+)['"]\]/g)];
  const keys = steps.map(([, field, index, quoted]) => {
    if (index !== undefined) return index === "*" ? 0 : Number(index);
    return quoted ?? asText(field).replaceAll("\\", "");
  });
  return at(object, ...keys);
}
