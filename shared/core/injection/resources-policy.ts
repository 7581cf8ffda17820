/** The resources of a sidecar whose resourcesPolicy derives them from the pod's containers. */
import type { Container, PodSpec, Quantity, ResourceRequirements } from "../../api/kubernetes.ts";
import type { ResourceExpressions, ResourcesPolicy } from "../../api/sidecarset.ts";
import { quote } from "../../go/field-error.ts";
import { fieldQuantity, formatQuantity, type ParsedQuantity } from "../../go/quantity/quantity.ts";
import { addQuantities, compareQuantities, quantityOfMilli } from "../../go/quantity/quantity-arithmetic.ts";
import { evaluateResourceExpression } from "../../go/quantity/resource-expression.ts";
import { type ExpressionValue, toInt64 } from "../../go/quantity/resource-expression-arithmetic.ts";
import { compileRegularExpression } from "../../go/regular-expression.ts";
import { Refusal } from "../admission/admission.ts";

const RESOURCES = ["cpu", "memory"] as const;
type Resource = (typeof RESOURCES)[number];
type Bound = "limits" | "requests";

type Quantities = { readonly [resource in Resource]?: string };

const ZERO: ParsedQuantity = { unscaled: 0n, scale: 0, format: "DecimalSI", isInt64: true };

type Combine = (quantities: readonly ParsedQuantity[]) => ParsedQuantity;

function sum(quantities: readonly ParsedQuantity[]): ParsedQuantity {
  return quantities.reduce(addQuantities, ZERO);
}

function max(quantities: readonly ParsedQuantity[]): ParsedQuantity {
  return quantities.reduce((most, quantity) => (compareQuantities(quantity, most) > 0 ? quantity : most), ZERO);
}

/** Under any other mode nothing is aggregated. */
const MODES: ReadonlyMap<string, Combine> = new Map([
  ["sum", sum],
  ["max", max],
]);

/** Limit of a stored container's name: matching time grows with the text. */
const LONGEST_NAME = 63;

/** The pod's native sidecars and containers, except containers that a SidecarSet will overwrite. */
function targetsOf(
  { targetContainersNameRegex }: ResourcesPolicy,
  { initContainers, containers }: PodSpec,
  sidecarNames: ReadonlySet<string>,
): readonly Container[] | Refusal {
  const pattern = targetContainersNameRegex ?? "";
  const expression = compileRegularExpression(pattern);
  if (expression.kind === "malformed") {
    return new Refusal(
      `failed to get target containers: invalid regex pattern ${quote(pattern)}: ${expression.message}`,
    );
  }
  const native = (initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  const targets = [...native, ...(containers ?? [])].filter(
    ({ name }) => name.length <= LONGEST_NAME && expression.matches(name) && !sidecarNames.has(name),
  );
  return targets.length > 0 ? targets : new Refusal(`no containers match the regex pattern ${quote(pattern)}`);
}

function quantityOf(container: Container, bound: Bound, resource: Resource): ParsedQuantity | undefined {
  const quantity: Quantity | undefined = container.resources?.[bound]?.[resource];
  return quantity === undefined ? undefined : fieldQuantity(quantity);
}

/** Undefined: unlimited, since one of the targets is, or not aggregated. */
function aggregate(targets: readonly Container[], bound: Bound, resource: Resource, combine: Combine | undefined) {
  if (combine === undefined) return undefined;
  const given = targets.flatMap((target) => quantityOf(target, bound, resource) ?? []);
  if (bound === "limits" && given.length < targets.length) return undefined;
  return combine(given);
}

/** Compat: a plain number is cut off to thousandths by the variable's name, whichever resource it is for. */
function toQuantity(value: ExpressionValue, variable: Resource): ParsedQuantity {
  if (value.kind === "quantity") return value.quantity;
  if (variable === "cpu") return quantityOfMilli(toInt64(value.number * 1000), "DecimalSI");
  return { unscaled: toInt64(value.number), scale: 0, format: "DecimalSI", isInt64: true };
}

/**
 * Compat: an expression with the lower-case word memory gets the aggregate under that name, any other under cpu, for
 * either resource (vector rp-cpu-expr-uses-memory-var).
 */
function evaluate(expression: string, aggregated: ParsedQuantity): string | Refusal {
  const variable = /\bmemory\b/.test(expression) ? "memory" : "cpu";
  const result = evaluateResourceExpression(
    expression,
    new Map([[variable, { kind: "quantity", quantity: aggregated }]]),
  );
  if (result.kind !== "failed") return formatQuantity(toQuantity(result, variable));
  return new Refusal(`failed to parse expression ${quote(expression)}: ${result.message}`);
}

/** A request that no target has counts as 0; a limit that cannot be aggregated is not set. */
function evaluateBound(
  expressions: ResourceExpressions | undefined,
  bound: Bound,
  aggregateOf: (resource: Resource) => ParsedQuantity | undefined,
): Quantities | Refusal {
  const quantities: { -readonly [resource in Resource]?: string } = {};
  for (const resource of RESOURCES) {
    const expression = expressions?.[resource];
    const aggregated = aggregateOf(resource) ?? (bound === "requests" ? ZERO : undefined);
    if (!expression || aggregated === undefined) continue;
    const quantity = evaluate(expression, aggregated);
    if (quantity instanceof Refusal) return failed(resource, bound, quantity);
    quantities[resource] = quantity;
  }
  return quantities;
}

function failed(resource: Resource, bound: Bound, { message }: Refusal): Refusal {
  return new Refusal(`failed to evaluate ${resource === "cpu" ? "CPU" : resource} ${bound} expression: ${message}`);
}

/** The resources that replace the sidecar's own. `sidecarNames` are the names in every SidecarSet that is injected. */
export function resourcesByPolicy(
  policy: ResourcesPolicy,
  spec: PodSpec,
  sidecarNames: ReadonlySet<string>,
): ResourceRequirements | Refusal {
  const targets = targetsOf(policy, spec, sidecarNames);
  if (targets instanceof Refusal) return targets;
  const combine = MODES.get(policy.targetContainersMode);
  const evaluated = (bound: Bound) =>
    evaluateBound(policy.resourcesExpr?.[bound], bound, (resource) => aggregate(targets, bound, resource, combine));
  const limits = evaluated("limits");
  if (limits instanceof Refusal) return limits;
  const requests = evaluated("requests");
  if (requests instanceof Refusal) return requests;
  return { ...unlessEmpty("limits", limits), ...unlessEmpty("requests", requests) };
}

function unlessEmpty(bound: Bound, quantities: Quantities): ResourceRequirements {
  return Object.keys(quantities).length > 0 ? { [bound]: quantities } : {};
}
