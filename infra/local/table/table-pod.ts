/** A pod's row: READY, STATUS and RESTARTS as pkg/printers/internalversion counts them. */
import { asNumber, asText, at, type JsonObject, objectsIn, textAt } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import { age } from "./table-age.ts";
import { column, type TableColumn } from "./table-column.ts";

function statuses(pod: ApiObject, field: string): readonly JsonObject[] {
  return objectsIn(at(pod, "status", field));
}

function isSidecar(pod: ApiObject, name: unknown): boolean {
  return objectsIn(at(pod, "spec", "initContainers")).some((container) => {
    return container["name"] === name && container["restartPolicy"] === "Always";
  });
}

/** Containers that run along: the plain ones and the native sidecars. */
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

export function podColumns(name: TableColumn, created: TableColumn): readonly TableColumn[] {
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
