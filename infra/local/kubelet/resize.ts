/** What a node makes of other resources for a container that runs: it has 64 cores, and others use half of them. */
import { milliOf, quantityText, readQuantity } from "../kinds/quantity.ts";
import { asObject, at, isEqual, type JsonObject, objectsIn } from "../storage/json.ts";

export interface ResizeProblem {
  readonly reason: "Infeasible" | "Deferred";
  readonly message: string;
}

const CAPACITY_MILLI = 64_000n;
const FREE_MILLI = 32_000n;

/** Undefined: the node does it. */
export function resizeProblem(container: JsonObject): ResizeProblem | undefined {
  const quantity = readQuantity(at(container, "resources", "requests", "cpu"));
  if (quantity === undefined || milliOf(quantity) <= FREE_MILLI) return undefined;
  const requested = `cpu, requested: ${quantityText(quantity)}`;
  if (milliOf(quantity) > CAPACITY_MILLI)
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
