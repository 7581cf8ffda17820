/**
 * The objects beside pods that the reconciler may write: a pass's own objects, by name and owner, and none in the
 * namespaces of the cluster.
 */

import type { KubernetesObject } from "../../api/kubernetes.ts";
import {
  ANNOUNCEMENTS_CONFIG_MAP,
  CONTROL_PLANE_LABEL,
  FENCE_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  KRUISE_NAMESPACE,
  METRICS_ANNOTATION,
  RESTARTED_AT_ANNOTATION,
  RESTARTED_FOR_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
  UNDONE_ANNOTATION,
} from "../../api/names.ts";
import { EXEMPT_NAMESPACES } from "../../core/injection/match/matches.ts";
import { celText, celTexts } from "../../go/json/cel-literal.ts";
import { RECONCILER, RECONCILER_GROUP } from "../rbac/access.ts";

// The common part of the fence's policies: the writers that they cover, and how an optional role widens them.

/** An API that does not exist: a role that may `use` one of its features tells the policies that somebody wants it. */
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
  /** CEL: true for allowed writes */
  readonly expression: string;
  /** the reason for a refusal */
  readonly message: string;
}

export interface Policy {
  /** suffix of the name, after the account's name */
  readonly name: string;
  readonly rules: readonly ResourceRule[];
  /** CEL variables; each may use earlier ones */
  readonly variables: Readonly<Record<string, string>>;
  readonly validations: readonly Validation[];
}

/** CEL: the writer is one of this project's accounts. The fence ignores all other writers. */
const IS_RECONCILER = `request.userInfo.username == ${celText(`system:serviceaccount:${KRUISE_NAMESPACE}:${RECONCILER}`)} || (has(request.userInfo.groups) && ${celText(RECONCILER_GROUP)} in request.userInfo.groups)`;

/** CEL: the account has the optional role of that feature. It costs a third of an expression's limit: ask once. */
export function hasFeature(feature: string): string {
  const group = `authorizer.group(${celText(FENCE_GROUP)})`;
  return `${group}.resource(${celText(FENCE_RESOURCE)}).name(${celText(feature)}).check(${celText(FENCE_VERB)}).allowed()`;
}

/** A rule for all operations on these resources. */
export function allOperations(apiGroup: string, ...resources: readonly string[]): ResourceRule {
  const operations = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
  return { apiGroups: [apiGroup], apiVersions: ["*"], operations, resources };
}

/**
 * The policy and its binding. A write that cannot be judged is refused. Neither has parameters: API servers look for
 * missing parameters before they match the writer, and would refuse everybody's writes.
 */
export function policyObjects(policy: Policy): readonly KubernetesObject[] {
  const name = `${RECONCILER}-${policy.name}`;
  const { rules, variables, validations } = policy;
  const spec = {
    failurePolicy: "Fail",
    matchConstraints: { matchPolicy: "Equivalent", resourceRules: rules },
    matchConditions: [{ name: "the-reconciler", expression: IS_RECONCILER }],
    variables: Object.entries(variables).map(([variable, expression]) => ({ name: variable, expression })),
    // Another reason would look like a conflict, after which a pass reads again.
    validations: validations.map((one) => ({ ...one, reason: "Forbidden" })),
  };
  const binding = { policyName: name, validationActions: ["Deny"] };
  return [
    { apiVersion: ADMISSION, kind: "ValidatingAdmissionPolicy", metadata: { name }, ...{ spec } },
    { apiVersion: ADMISSION, kind: "ValidatingAdmissionPolicyBinding", metadata: { name }, ...{ spec: binding } },
  ];
}

const IS_HOME = `request.namespace == ${celText(KRUISE_NAMESPACE)}`;

/** CEL: the written object, or the deleted one. */
const SUBJECT = `request.operation == "DELETE" ? oldObject : object`;

const LABELS = "namespaceObject.metadata.?labels.orValue({})";

/** A pass has no work in namespaces without the webhooks: the same rule as in infra/webhooks. */
const NAMESPACE_POLICY: Policy = {
  name: "namespaces",
  rules: [{ ...allOperations("*", "*/*"), scope: "Namespaced" }],
  variables: {},
  validations: [
    {
      expression: `!(request.namespace in ${celTexts(EXEMPT_NAMESPACES)})`,
      message: `the reconciler writes nothing in ${EXEMPT_NAMESPACES.toReversed().join(" and ")}`,
    },
    {
      expression: `${IS_HOME} ? request.resource.resource in ["configmaps", "controllerrevisions", "leases"] || (request.resource.resource == "pods" && request.operation in ["CREATE", "DELETE"] && ${hasFeature("pre-pull")}) : !(${celText(CONTROL_PLANE_LABEL)} in ${LABELS})`,
      message: `the reconciler writes nothing in namespaces with a label ${CONTROL_PLANE_LABEL}, but its own records in ${KRUISE_NAMESPACE}, and pods that pull images with infra/rbac/optional/pre-pull.yaml`,
    },
  ],
};

/** True if the ConfigMap is owned by the pod that it holds back. */
const IS_BARRIER = [
  `subject.metadata.name.endsWith("-barrier")`,
  `subject.metadata.?ownerReferences.orValue([]).exists(o, o.apiVersion == "v1" && o.kind == "Pod" && o.name + "-barrier" == subject.metadata.name)`,
  `subject.?data.orValue({}).all(key, key.startsWith("p_"))`,
];

const IS_LEDGER = `subject.?data.orValue({}).all(key, key in ["sidecarSetUID", "statefulSetUID", "generation", "reservations", "checks", "departed", "restarted", "shared", "refused", "pulls"])`;

/** True for the webhooks' writes, whose account may be the same. */
const IS_ANNOUNCING = `${IS_HOME} && variables.name == ${celText(ANNOUNCEMENTS_CONFIG_MAP)} && request.operation == "UPDATE" && variables.subject.?data.orValue({}).all(key, key == "announcements")`;

/** CEL: true for the written ConfigMap and, if it existed before, for the old one. */
function ofBoth(conditions: readonly string[]): string {
  return `[variables.subject, oldObject == null ? variables.subject : oldObject].all(subject, ${conditions.join(" && ")})`;
}

const CONFIG_MAP_POLICY: Policy = {
  name: "configmaps",
  rules: [allOperations("", "configmaps")],
  variables: { subject: SUBJECT, name: "variables.subject.metadata.name" },
  validations: [
    {
      expression: `request.operation != "DELETE"`,
      message: "the reconciler deletes no ConfigMap: a ledger goes with its owner, a barrier with its pod",
    },
    {
      expression: `(${IS_ANNOUNCING}) || (${ofBoth([IS_LEDGER])} ? ((${IS_HOME} && variables.name.startsWith("sidecarset-ledger-")) || (variables.name.startsWith("statefulset-ledger-") && ${hasFeature("ordered-sets")}) || (${ofBoth(IS_BARRIER)} && ${hasFeature("launch-order")})) : (${ofBoth(IS_BARRIER)} && ${hasFeature("launch-order")}))`,
      message: `the reconciler writes no ConfigMap but sidecarset-ledger-… and ${ANNOUNCEMENTS_CONFIG_MAP} in ${KRUISE_NAMESPACE}, statefulset-ledger-… with infra/rbac/optional/ordered-sets.yaml, and a pod's own …-barrier with launch-order.yaml`,
    },
    {
      expression: "!has(variables.subject.binaryData)",
      message: "the reconciler writes no binary data",
    },
  ],
};

const KRUISE_OWNER = `has(o.controller) && o.controller && o.apiVersion.startsWith("apps.kruise.io/")`;

/** CEL: the owners of one object. */
const ownedBy = (subject: string, kind: string) =>
  `${subject}.metadata.?ownerReferences.orValue([]).exists(o, ${KRUISE_OWNER} && o.kind == ${celText(kind)})`;

const REVISION_POLICY: Policy = {
  name: "revisions",
  rules: [allOperations("apps", "controllerrevisions")],
  variables: {
    subject: SUBJECT,
    // An object without an owner may be adopted.
    isForeign: `oldObject != null && oldObject.metadata.?ownerReferences.orValue([]).exists(o, has(o.controller) && o.controller && !(o.apiVersion.startsWith("apps.kruise.io/") && o.kind in ["SidecarSet", "StatefulSet"]))`,
  },
  validations: [
    {
      expression: `!variables.isForeign && ((${IS_HOME} && ${ownedBy("variables.subject", "SidecarSet")}) || (${ownedBy("variables.subject", "StatefulSet")} && ${hasFeature("ordered-sets")}))`,
      message: `the reconciler writes no ControllerRevision but those of SidecarSets in ${KRUISE_NAMESPACE}, and those of ordered sets with infra/rbac/optional/ordered-sets.yaml`,
    },
  ],
};

const LEASE_POLICY: Policy = {
  name: "leases",
  rules: [allOperations("coordination.k8s.io", "leases")],
  variables: {},
  validations: [
    {
      expression: `request.operation != "DELETE" && ${IS_HOME} && object.metadata.name in ["sidecarset-rollout", "sidecarset-ordered-sets"]`,
      message: `the reconciler writes no Lease but sidecarset-rollout and sidecarset-ordered-sets in ${KRUISE_NAMESPACE}`,
    },
  ],
};

const CLAIM_POLICY: Policy = {
  name: "claims",
  rules: [allOperations("", "persistentvolumeclaims")],
  variables: {},
  validations: [
    {
      expression: `request.operation != "DELETE"`,
      message: "the reconciler deletes no claim: one that is not to be retained goes with its owner",
    },
    {
      expression: hasFeature("ordered-sets"),
      message: "the reconciler writes claims of ordered sets alone, with infra/rbac/optional/ordered-sets.yaml",
    },
  ],
};

/** Counts that the controllers of budgets compute, for both kinds. */
const COUNTED_BY_OTHERS = [
  ...["currentHealthy", "desiredHealthy", "expectedPods"],
  ...["currentAvailable", "desiredAvailable", "totalReplicas", "observedGeneration"],
];

/** CEL: a number of a budget's status, before or after. */
const numberOf = (subject: string, field: string) => `${subject}.?status.?${field}.orValue(0)`;

const BUDGET_POLICY: Policy = {
  name: "budgets",
  rules: [
    allOperations("policy", "poddisruptionbudgets", "poddisruptionbudgets/status"),
    allOperations("policy.kruise.io", "podunavailablebudgets", "podunavailablebudgets/status"),
  ],
  variables: {},
  validations: [
    {
      expression: `request.operation == "UPDATE" && request.?subResource.orValue("") == "status" && ${hasFeature("disruption-budgets")}`,
      message:
        "the reconciler writes the status of disruption budgets alone, with infra/rbac/optional/disruption-budgets.yaml",
    },
    {
      expression: [
        ...["disruptionsAllowed", "unavailableAllowed"].map(
          (field) => `${numberOf("object", field)} <= ${numberOf("oldObject", field)}`,
        ),
        ...COUNTED_BY_OTHERS.map((field) => `${numberOf("object", field)} == ${numberOf("oldObject", field)}`),
      ].join(" && "),
      message: "the reconciler lets disruption budgets count pods, and allows nothing more in their place",
    },
  ],
};

/** CEL: all annotations except these are unchanged. */
const differing = (a: string, b: string, own: string) =>
  `${a}.all(key, key in ${own} || (key in ${b} && ${a}[key] == ${b}[key]))`;
const sameAnnotations = (path: string, own: string) => {
  const [before, after] = ["oldObject", "object"].map((one) => `${one}.${path}.orValue({})`) as [string, string];
  return `${differing(before, after, own)} && ${differing(after, before, own)}`;
};

/** The annotation that an API server itself writes when a DaemonSet's template changes. */
const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";

/** The fields beside a workload's template, for all kinds. */
const BESIDE_TEMPLATE = [
  ...["minReadySeconds", "ordinals", "paused", "persistentVolumeClaimRetentionPolicy", "podManagementPolicy"],
  ...["progressDeadlineSeconds", "replicas", "revisionHistoryLimit", "selector", "serviceName", "strategy"],
  ...["updateStrategy", "volumeClaimTemplates", "template.?spec", "template.?metadata.?labels"],
].map((field) => `spec.?${field}`);

const WORKLOAD_POLICY: Policy = {
  name: "workloads",
  rules: [allOperations("apps", "deployments", "statefulsets", "daemonsets")],
  variables: {},
  validations: [
    {
      expression: `request.operation == "UPDATE" && ${hasFeature("restart")}`,
      message:
        "the reconciler creates and deletes no workloads, and restarts them with infra/rbac/optional/restart.yaml",
    },
    {
      expression: `request.operation != "UPDATE" || (${[
        ...["metadata.?labels", "metadata.?finalizers", "metadata.?ownerReferences", ...BESIDE_TEMPLATE].map(
          (field) => `object.${field} == oldObject.${field}`,
        ),
        sameAnnotations(
          "metadata.?annotations",
          celTexts([FENCE_ANNOTATION, RESTARTED_FOR_ANNOTATION, TEMPLATE_GENERATION]),
        ),
        sameAnnotations("spec.template.?metadata.?annotations", celTexts([RESTARTED_AT_ANNOTATION])),
      ].join(" && ")})`,
      message: `of a workload the reconciler writes when its template was restarted, and for which SidecarSets (${RESTARTED_FOR_ANNOTATION})`,
    },
  ],
};

const OWN_OF_SET = celTexts([HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, UNDONE_ANNOTATION]);

/** CEL: everything except the fields of an undo is unchanged. */
const sameOfSet = (member: string, absent: string) =>
  `object.metadata.?${member}.orValue(${absent}) == oldObject.metadata.?${member}.orValue(${absent})`;

/** CEL: somebody who may write the SidecarSet has asked for undo, in general or after a failed metric check. */
const ASKS_FOR_UNDO = [
  `(${celText(UNDO_ON_HALT_ANNOTATION)} in variables.before && variables.before[${celText(UNDO_ON_HALT_ANNOTATION)}] == "true")`,
  `(${celText(METRICS_ANNOTATION)} in variables.before && variables.before[${celText(METRICS_ANNOTATION)}].matches('"onFailure"\\\\s*:\\\\s*"undo"'))`,
].join(" || ");

const SIDECARSET_POLICY: Policy = {
  name: "sidecarsets",
  rules: [allOperations("apps.kruise.io", "sidecarsets")],
  variables: {
    before: `oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})`,
    after: `object == null ? {} : object.metadata.?annotations.orValue({})`,
  },
  validations: [
    {
      expression: `request.operation == "UPDATE" && (${ASKS_FOR_UNDO}) && ${hasFeature("undo")}`,
      message: `the reconciler changes no SidecarSet but one with the annotation ${UNDO_ON_HALT_ANNOTATION}: "true", or whose ${METRICS_ANNOTATION} says "onFailure": "undo", with infra/rbac/optional/undo.yaml`,
    },
    {
      expression: `request.operation != "UPDATE" || (${sameOfSet("labels", "{}")} && ${sameOfSet("finalizers", "[]")} && ${sameOfSet("ownerReferences", "[]")} && ${differing("variables.before", "variables.after", OWN_OF_SET)} && ${differing("variables.after", "variables.before", OWN_OF_SET)})`,
      message: "of a SidecarSet the reconciler writes its spec, and what it remembers of an undoing",
    },
  ],
};

export const OBJECT_POLICIES: readonly Policy[] = [
  NAMESPACE_POLICY,
  CONFIG_MAP_POLICY,
  REVISION_POLICY,
  LEASE_POLICY,
  CLAIM_POLICY,
  BUDGET_POLICY,
  WORKLOAD_POLICY,
  SIDECARSET_POLICY,
];
