/** One column of a Table. */
import type { ApiObject } from "../storage/object.ts";

export interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  /** 0: always shown; 1: with -o wide */
  readonly priority: number;
  /** `now` in milliseconds since the epoch */
  cell(object: ApiObject, now: number): unknown;
}

export function column(name: string, type: string, cell: TableColumn["cell"], priority = 0): TableColumn {
  return { name, type, format: name === "Name" ? "name" : "", description: "", priority, cell };
}
