/** The columns of each kind, with the cells kubectl get shows. */

import type { Kind, PrinterColumn } from "../kinds/kind.ts";
import { asList, asNumber, asText, at, objectsIn, textAt } from "../storage/json.ts";
import { type ApiObject, controllerOf } from "../storage/object.ts";
import { jsonPath } from "./json-path.ts";
import { age } from "./table-age.ts";
import { column, type TableColumn } from "./table-column.ts";
import { podColumns } from "./table-pod.ts";

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

export function columnsOf(kind: Kind): readonly TableColumn[] {
  if (kind.custom !== undefined) return [NAME, ...kind.custom.columns.map(printerColumn)];
  return COLUMNS[kind.collection] ?? [NAME, AGE];
}
