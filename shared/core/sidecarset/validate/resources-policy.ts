/** Decides whether a sidecar's resources may be computed from those of other containers as it says. */
import type { ResourceExpressions, ResourcesPolicy, SidecarContainer } from "../../../api/sidecarset.ts";
import { type FieldError, invalid, required } from "../../../go/field-error.ts";
import { evaluateResourceExpression } from "../../../go/quantity/resource-expression.ts";
import { compileRegularExpression } from "../../../go/regular-expression.ts";

function validatePattern(pattern: string, field: string): readonly FieldError[] {
  if (pattern === "") return [required(field, "invalid empty regex")];
  const compiled = compileRegularExpression(pattern);
  return compiled.kind === "malformed" ? [invalid(field, pattern, `invalid regex pattern: ${compiled.message}`)] : [];
}

/** An expression must come out at 0 or more when its own variable is 1. */
function validateExpressions(expressions: ResourceExpressions | undefined, field: string): readonly FieldError[] {
  return (["cpu", "memory"] as const).flatMap((variable) => {
    const expression = expressions?.[variable] ?? "";
    if (expression === "") return [];
    const result = evaluateResourceExpression(expression, new Map([[variable, { kind: "number", number: 1 }]]));
    return result.kind === "failed"
      ? [invalid(`${field}.${variable}`, expression, `invalid expression: ${result.message}`)]
      : [];
  });
}

function validatePolicy(policy: ResourcesPolicy, field: string): readonly FieldError[] {
  const { limits, requests } = policy.resourcesExpr ?? {};
  const isEmpty = limits == null && requests == null;
  const detail = "at least one of limits or requests must be configured";
  return [
    ...validatePattern(policy.targetContainersNameRegex ?? "", `${field}.targetContainersNameRegex`),
    ...(isEmpty ? [invalid(`${field}.resourcesExpr`, policy.resourcesExpr ?? {}, detail)] : []),
    ...validateExpressions(limits, `${field}.resourcesExpr.limits`),
    ...validateExpressions(requests, `${field}.resourcesExpr.requests`),
  ];
}

function hasOwnResources({ resources }: SidecarContainer): boolean {
  return [resources?.limits, resources?.requests].some((list) => Object.keys(list ?? {}).length > 0);
}

/** `field` is that of the policy. */
export function validateResourcesPolicy(container: SidecarContainer, field: string): readonly FieldError[] {
  const policy = container.resourcesPolicy;
  if (policy == null) return [];
  return hasOwnResources(container)
    ? [invalid(field, policy, "resourcesPolicy and resources cannot be configured together")]
    : validatePolicy(policy, field);
}

/** Of an initContainer: only a native sidecar may have one. */
export function validateInitResourcesPolicy(container: SidecarContainer, field: string): readonly FieldError[] {
  const errors = validateResourcesPolicy(container, field);
  if (container.resourcesPolicy == null || container.restartPolicy === "Always") return errors;
  const detail = "resourcesPolicy is only supported for containers with RestartPolicy Always";
  return [invalid(field, container.resourcesPolicy, detail), ...errors];
}
