/** metav1.Table: the rows that kubectl prints. */

import type { Kind } from "../kinds/kind.ts";
import type { JsonObject } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import type { TableColumn } from "./table-column.ts";
import { columnsOf } from "./table-columns.ts";

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

/** Objects in the version of `kind`; `metadata` is the list's. */
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
