/** What a node makes of other resources for a container that runs: it has 64 cores, and others use half of them. */
import { fieldQuantity, formatQuantity } from "../../../shared/go/quantity/quantity.ts";
import { milliValue } from "../../../shared/go/quantity/quantity-arithmetic.ts";
import { asObject, at, isEqual, type JsonObject, objectsIn } from "../storage/json.ts";

export interface ResizeProblem {
  readonly reason: "Infeasible" | "Deferred";
  readonly message: string;
}

const CAPACITY_MILLI = 64_000n;
const FREE_MILLI = 32_000n;

/** Undefined: the node does it. */
export function resizeProblem(container: JsonObject): ResizeProblem | undefined {
  const cpu = at(container, "resources", "requests", "cpu");
  const quantity = typeof cpu === "string" || typeof cpu === "number" ? fieldQuantity(cpu) : undefined;
  if (quantity === undefined || milliValue(quantity) <= FREE_MILLI) return undefined;
  const requested = `cpu, requested: ${formatQuantity(quantity)}`;
  if (milliValue(quantity) > CAPACITY_MILLI)
    return { reason: "Infeasible", message: `Node didn't have enough capacity: ${requested}, capacity: 64` };
  return { reason: "Deferred", message: `Node didn't have enough resource: ${requested}, used: 32, capacity: 64` };
}

/** Some of what changed asks for a restart. */
export function restartsForResize(container: JsonObject, before: JsonObject): boolean {
  const now = asObject(container["resources"]);
  return objectsIn(container["resizePolicy"]).some(({ resourceName, restartPolicy }) => {
    const bounds = ["requests", "limits"].map((bound) => [bound, String(resourceName)] as const);
    return (
      restartPolicy === "RestartContainer" && bounds.some((path) => !isEqual(at(now, ...path), at(before, ...path)))
    );
  });
}
