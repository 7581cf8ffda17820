/** Tells whether a container's SidecarSet fields are valid: policies, transferred variables. */
import type {
  FieldReference,
  ResourceExpressions,
  ResourcesPolicy,
  SidecarContainer,
  SidecarSetSpec,
  TransferEnvVar,
} from "../../../api/sidecarset.ts";
import { type FieldError, invalid, invalidEach, required } from "../../../go/field-error.ts";
import { qualifiedNameErrors } from "../../../go/label-name.ts";
import { evaluateResourceExpression } from "../../../go/quantity/resource-expression.ts";
import { compileRegularExpression } from "../../../go/regular-expression.ts";
import { splitSubscript, validatePath } from "../../pod/validate/field-reference.ts";

const INJECT_POLICIES: ReadonlySet<string> = new Set(["BeforeAppContainer", "AfterAppContainer"]);
const SHARE_POLICIES: ReadonlySet<string> = new Set(["enabled", "disabled"]);

function validateContainer(container: SidecarContainer, index: number): readonly FieldError[] {
  const { podInjectPolicy = "", shareVolumePolicy } = container;
  const injectErrors = INJECT_POLICIES.has(podInjectPolicy)
    ? []
    : [invalid("spec.container.podInjectPolicy", podInjectPolicy, "unsupported pod inject policy")];
  const shareErrors = SHARE_POLICIES.has(shareVolumePolicy?.type ?? "")
    ? []
    : [invalid("spec.container.shareVolumePolicy", shareVolumePolicy ?? {}, "unsupported share volume policy")];
  return [
    ...injectErrors,
    ...shareErrors,
    ...validateTransferEnv(container.transferEnv, `spec[${index}].transferEnv`),
    ...validateResourcesPolicy(container, `spec[${index}].resourcesPolicy`),
  ];
}

/** Compat: of initContainers only the resourcesPolicy is looked at (vector bad-inject-policy-init-ignored). */
export function validateSidecarContainers({ containers, initContainers }: SidecarSetSpec): readonly FieldError[] {
  return [
    ...(initContainers ?? []).flatMap((container, index) =>
      validateInitResourcesPolicy(container, `spec[${index}].resourcesPolicy`),
    ),
    ...(containers ?? []).flatMap(validateContainer),
  ];
}

// Tells whether a sidecar's resources may be computed from those of other containers as it says.

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

/** `field`: the path of the policy. */
function validateResourcesPolicy(container: SidecarContainer, field: string): readonly FieldError[] {
  const policy = container.resourcesPolicy;
  if (policy == null) return [];
  return hasOwnResources(container)
    ? [invalid(field, policy, "resourcesPolicy and resources cannot be configured together")]
    : validatePolicy(policy, field);
}

/** The policy of an initContainer: only a native sidecar may have one. */
function validateInitResourcesPolicy(container: SidecarContainer, field: string): readonly FieldError[] {
  const errors = validateResourcesPolicy(container, field);
  if (container.resourcesPolicy == null || container.restartPolicy === "Always") return errors;
  const detail = "resourcesPolicy is only supported for containers with RestartPolicy Always";
  return [invalid(field, container.resourcesPolicy, detail), ...errors];
}

// Tells whether the container that environment variables are taken from may be named as it is.

const ANNOTATIONS = "metadata.annotations";
const LABELS = "metadata.labels";

function pathProblem(apiVersion: string, fieldPath: string): string | undefined {
  if (apiVersion !== "v1") return `unsupported pod version: ${apiVersion}`;
  const { path, subscript } = splitSubscript(fieldPath);
  if (subscript === undefined) return `field label not supported: ${fieldPath}`;
  return path === ANNOTATIONS || path === LABELS ? undefined : `field path not supported: ${path}`;
}

function validateReference(reference: FieldReference, field: string): readonly FieldError[] {
  const wrong = validatePath(reference, field, pathProblem);
  if (wrong.length > 0) return wrong;
  const { path, subscript = "" } = splitSubscript(reference.fieldPath ?? "");
  const key = path === ANNOTATIONS ? subscript.toLowerCase() : subscript;
  return invalidEach(field, subscript, qualifiedNameErrors(key));
}

/** Allows only a single label or annotation of the pod, although OpenKruise's documentation mentions names. */
function validateTransferEnv(transferEnv: readonly TransferEnvVar[] | undefined, field: string): readonly FieldError[] {
  return (transferEnv ?? []).flatMap(({ sourceContainerNameFrom }) => {
    const reference = sourceContainerNameFrom?.fieldRef;
    return reference == null ? [] : validateReference(reference, `${field}.fieldRef`);
  });
}
