/** What the policies of the fence have in common: whom they are about, and how an optional role widens them. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../api/names.ts";
import { celText } from "../../go/json/cel-literal.ts";
import { RECONCILER, RECONCILER_GROUP } from "../rbac/access.ts";

/** There is no such API: a role that may `use` one of its features says to the policies that somebody wants it. */
export const FENCE_GROUP = "fence.sidecarset.kruise.io";
export const FENCE_RESOURCE = "features";
export const FENCE_VERB = "use";

const ADMISSION = "admissionregistration.k8s.io/v1";

interface ResourceRule {
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  readonly operations: readonly string[];
  readonly resources: readonly string[];
  readonly scope?: "Namespaced" | "Cluster";
}

interface Validation {
  /** CEL: true of what is let through */
  readonly expression: string;
  /** why it is not */
  readonly message: string;
}

export interface Policy {
  /** behind the account's name */
  readonly name: string;
  readonly rules: readonly ResourceRule[];
  /** CEL, each in terms of those before it */
  readonly variables: Readonly<Record<string, string>>;
  readonly validations: readonly Validation[];
}

/** CEL: one of ours wrote nothing but what our roles are for; what anybody else writes is no business of the fence. */
const IS_RECONCILER = `request.userInfo.username == ${celText(`system:serviceaccount:${KRUISE_NAMESPACE}:${RECONCILER}`)} || (has(request.userInfo.groups) && ${celText(RECONCILER_GROUP)} in request.userInfo.groups)`;

/** CEL: the account has the optional role of that feature. It costs a third of what an expression may cost: ask once. */
export function hasFeature(feature: string): string {
  const group = `authorizer.group(${celText(FENCE_GROUP)})`;
  return `${group}.resource(${celText(FENCE_RESOURCE)}).name(${celText(feature)}).check(${celText(FENCE_VERB)}).allowed()`;
}

/** Which objects of core or another group, whatever is done to them. */
export function writesOf(apiGroup: string, ...resources: readonly string[]): ResourceRule {
  const operations = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
  return { apiGroups: [apiGroup], apiVersions: ["*"], operations, resources };
}

/**
 * The policy and its binding. A write that cannot be judged is refused. Neither has parameters: where those are missing the
 * write of whoever it is would be refused, since that is found before it is asked whom the policy is about.
 */
export function policyObjects(policy: Policy): readonly KubernetesObject[] {
  const name = `${RECONCILER}-${policy.name}`;
  const { rules, variables, validations } = policy;
  const spec = {
    failurePolicy: "Fail",
    matchConstraints: { matchPolicy: "Equivalent", resourceRules: rules },
    matchConditions: [{ name: "the-reconciler", expression: IS_RECONCILER }],
    variables: Object.entries(variables).map(([variable, expression]) => ({ name: variable, expression })),
    // Another reason would be answered as a conflict is, after which a pass looks again.
    validations: validations.map((one) => ({ ...one, reason: "Forbidden" })),
  };
  const binding = { policyName: name, validationActions: ["Deny"] };
  return [
    { apiVersion: ADMISSION, kind: "ValidatingAdmissionPolicy", metadata: { name }, ...{ spec } },
    { apiVersion: ADMISSION, kind: "ValidatingAdmissionPolicyBinding", metadata: { name }, ...{ spec: binding } },
  ];
}
