/** Whether the matchConditions of a webhook hold: CEL over the request and its objects. */
import { evaluate } from "@marcbachmann/cel-js";
import type { Call } from "../storage/api.ts";
import { asText, type JsonObject, objectsIn } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import { forbidden } from "../storage/status-error.ts";

/** What a condition may look at. */
interface Subject {
  readonly call: Call;
  readonly operation: string;
  readonly object: ApiObject | undefined;
  readonly oldObject: ApiObject | undefined;
}

/** One that is false goes before one that fails; which then counts as failurePolicy says. */
export function matchConditionsHold(webhook: JsonObject, request: Subject): boolean {
  const conditions = objectsIn(webhook["matchConditions"]);
  if (conditions.length === 0) return true;
  const { call, operation, object = null, oldObject = null } = request;
  const { namespace, name, dryRun } = call;
  const variables = { object, oldObject, request: { namespace, name, operation, dryRun } };
  const results = conditions.map((condition) => evaluated(asText(condition["expression"]), variables));
  if (results.includes(false)) return false;
  const failure = results.find((result) => result instanceof Error);
  if (failure instanceof Error && webhook["failurePolicy"] !== "Ignore")
    throw forbidden(call.kind, name, failure.message);
  return failure === undefined;
}

function evaluated(expression: string, variables: Record<string, unknown>): unknown {
  try {
    return evaluate(expression, variables);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
