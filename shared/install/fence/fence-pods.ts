/** The fields of pods that the reconciler may write: images of injected containers, its annotations, conditions. */
import {
  DRAINED,
  DRAINED_BY_ANNOTATION,
  FENCE_ANNOTATION,
  FENCE_CONDITION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_READY_CONDITION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  IS_INJECTED_ENV,
  KRUISE_NAMESPACE,
  LAUNCH_COMPLETED_ANNOTATION,
  POD_READY_CONDITION,
  PRE_PULL_LABEL,
  RECREATED_CONTAINERS_ANNOTATION,
  RESIZE_ANNOTATION,
  SERVING,
  SIDECAR_TERMINATED_CONDITION,
  TERMINATE_SIDECAR_ENV,
  TERMINATE_SIDECAR_WITH_IMAGE_ENV,
  TRAFFIC_LABEL,
  UPGRADABLE_CONDITION,
  VALUE_ANNOTATION_SUFFIX,
  VALUES_ANNOTATION_PREFIX,
  VERSION_ALT_ANNOTATION_PREFIX,
  VERSION_ANNOTATION_PREFIX,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../api/names.ts";
import { celText, celTexts } from "../../go/json/cel-literal.ts";
import { allOperations, hasFeature, type Policy } from "./fence-objects.ts";

// Finds the containers of a pod to which the reconciler may give another image or other resources.

/** CEL: the containers in `list` whose member has changed. */
function changed(list: string, member: string): string {
  return `request.operation != "UPDATE" ? [] : object.spec.?${list}.orValue([]).filter(c, !oldObject.spec.?${list}.orValue([]).exists(o, o.name == c.name && o.?${member} == c.?${member}))`;
}

/** CEL: container `c`, stored before as `o`, had the variable with this value. */
function hasEnv(name: string, value: string): string {
  return `o.?env.orValue([]).exists(e, e.name == ${celText(name)} && e.?value.orValue("") == ${value})`;
}

const IS_INJECTED = hasEnv(IS_INJECTED_ENV, celText("true"));

/** CEL: `body` evaluated on the image without its digest, named `named`. */
const ofNamed = (image: string, body: string) => `[${image}.split("@")[0]].map(named, ${body})[0]`;

/** CEL: a colon before the last slash belongs to a registry's port. */
const HAS_TAG = `named.lastIndexOf(":") > named.lastIndexOf("/")`;

function tagOf(image: string): string {
  return ofNamed(image, `${HAS_TAG} ? named.substring(named.lastIndexOf(":") + 1) : "latest"`);
}

/** CEL: the repository without Docker's registry, as runtimes complete a short name. */
function repositoryOf(image: string): string {
  const bare = ofNamed(image, `${HAS_TAG} ? named.substring(0, named.lastIndexOf(":")) : named`);
  const short = `[${bare}].map(full, full.startsWith("docker.io/") ? full.substring(10) : full)[0]`;
  return `[${short}].map(full, full.startsWith("library/") ? full.substring(8) : full)[0]`;
}

function digestOf(image: string): string {
  return `(${image}.contains("@") ? ${image}.split("@")[1] : "")`;
}

/** CEL: the image of `c` is another name of `o`'s image, or of the running one (shared/core/pod/image-alias.ts). */
const IS_ALIAS = [
  `${repositoryOf("c.image")} == ${repositoryOf("o.image")}`,
  `((${digestOf("c.image")} != "" && ${digestOf("c.image")} == ${digestOf("o.image")}) || (${tagOf("c.image")} == ${tagOf("o.image")} && (${digestOf("c.image")} == "" || oldObject.status.?containerStatuses.orValue([]).exists(s, s.name == c.name && s.?imageID.orValue("").endsWith("@" + ${digestOf("c.image")})))))`,
].join(" && ");

const IS_ENDING = hasEnv(TERMINATE_SIDECAR_WITH_IMAGE_ENV, "c.image");

/** CEL: each container has a counterpart that may change in this way. */
function each(containers: string, list: string, condition: string): string {
  return `variables.${containers}.all(c, oldObject.spec.?${list}.orValue([]).exists(o, o.name == c.name && (${condition})))`;
}

const IMAGE_VARIABLES = {
  newImages: changed("containers", "image"),
  newInitImages: changed("initContainers", "image"),
  newResources: changed("containers", "resources"),
  newInitResources: changed("initContainers", "resources"),
} as const;

const IMAGE_RULES: Policy["validations"] = [
  {
    expression: each(
      "newImages",
      "containers",
      `variables.isOfSet || ${IS_INJECTED} || (${IS_ENDING} && variables.terminates) || (${IS_ALIAS} && variables.recreates)`,
    ),
    message:
      "the reconciler changes the image of no container that was not injected (environment variable IS_INJECTED); infra/rbac/optional/container-recreate.yaml and sidecar-terminator.yaml permit what those features write",
  },
  {
    expression: `${each("newInitImages", "initContainers", `variables.isOfSet || ${IS_INJECTED}`)} && (size(variables.newInitImages) == 0 || variables.isOfSet || ${hasFeature("native-sidecars")})`,
    message:
      "the reconciler changes the image of no init container but a native sidecar that was injected, with infra/rbac/optional/native-sidecars.yaml",
  },
  {
    expression: `request.operation != "UPDATE" || (size(object.spec.containers) == size(oldObject.spec.containers) && size(object.spec.?initContainers.orValue([])) == size(oldObject.spec.?initContainers.orValue([])))`,
    message: "the reconciler adds no containers to a pod, and takes none away",
  },
  {
    expression: `size(variables.newInitResources) == 0 && ${each("newResources", "containers", `variables.isOfSet || ${IS_INJECTED}`)} && (size(variables.newResources) == 0 || (variables.subresource == "resize" && (variables.isOfSet || ${hasFeature("resize")})))`,
    message:
      "the reconciler changes the resources of no container that was not injected, and of those with infra/rbac/optional/resize.yaml",
  },
];

const ANNOTATIONS = celTexts([
  DRAINED_BY_ANNOTATION,
  FENCE_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  RESIZE_ANNOTATION,
  WORKING_HOT_UPGRADE_ANNOTATION,
]);

/** CEL: the member of an object, or `absent`. */
const of = (object: string, path: string, absent: string) => `${object}.${path}.orValue(${absent})`;

/** CEL: a condition for updates only. */
const updated = (expression: string) => `request.operation != "UPDATE" || (${expression})`;

/** CEL: these members are unchanged. */
const same = (part: string, members: readonly string[]) =>
  members.map((member) => `object.${part}.?${member} == oldObject.${part}.?${member}`).join(" && ");

/** CEL: the members of `list` that `other` lacks. */
const without = (list: string, other: string) => `${list}.filter(one, !(one in ${other}))`;

const VARIABLES = {
  subresource: `has(request.subResource) ? request.subResource : ""`,
  // For Advanced StatefulSets. A created pod names its own owner; for another pod the stored owner counts.
  isOfSet: `(request.operation == "CREATE" ? object : oldObject).metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && o.kind == "StatefulSet" && o.apiVersion.startsWith("apps.kruise.io/")) && ${hasFeature("ordered-sets")}`,
  isPull: `[request.operation == "DELETE" ? oldObject : object].all(pod, request.namespace == ${celText(KRUISE_NAMESPACE)} && ${celText(PRE_PULL_LABEL)} in pod.metadata.?labels.orValue({}) && pod.metadata.?ownerReferences.orValue([]).exists(o, o.kind == "SidecarSet" && o.apiVersion.startsWith("apps.kruise.io/"))) && ${hasFeature("pre-pull")}`,
  recreates: hasFeature("container-recreate"),
  terminates: hasFeature("sidecar-terminator"),
  owners: of("object", "metadata.?ownerReferences", "[]"),
  ownersBefore: of("oldObject", "metadata.?ownerReferences", "[]"),
  changedOwners: `${without("variables.owners", "variables.ownersBefore")} + ${without("variables.ownersBefore", "variables.owners")}`,
  annotations: of("object", "metadata.?annotations", "{}"),
  annotationsBefore: of("oldObject", "metadata.?annotations", "{}"),
  changedAnnotations:
    "variables.annotations.filter(key, !(key in variables.annotationsBefore) || variables.annotationsBefore[key] != variables.annotations[key]) + variables.annotationsBefore.filter(key, !(key in variables.annotations))",
  ownAnnotations: `${ANNOTATIONS} + (variables.recreates ? [${celText(RECREATED_CONTAINERS_ANNOTATION)}] : []) + (${hasFeature("launch-order")} ? [${celText(LAUNCH_COMPLETED_ANNOTATION)}] : [])`,
  labels: of("object", "metadata.?labels", "{}"),
  labelsBefore: of("oldObject", "metadata.?labels", "{}"),
  changedLabels:
    "variables.labels.filter(key, !(key in variables.labelsBefore) || variables.labelsBefore[key] != variables.labels[key]) + variables.labelsBefore.filter(key, !(key in variables.labels))",
  tolerations: of("object", "spec.?tolerations", "[]"),
  tolerationsBefore: of("oldObject", "spec.?tolerations", "[]"),
  conditions: of("object", "status.?conditions", "[]"),
  conditionsBefore: of("oldObject", "status.?conditions", "[]"),
  changedConditions: `(${without("variables.conditions", "variables.conditionsBefore")} + ${without("variables.conditionsBefore", "variables.conditions")}).map(one, one.type)`,
  ownConditions: `${celTexts([UPGRADABLE_CONDITION, FENCE_CONDITION])} + (variables.recreates ? ${celTexts([POD_READY_CONDITION, "Ready"])} : []) + (variables.terminates ? [${celText(SIDECAR_TERMINATED_CONDITION)}] : []) + (variables.isOfSet ? ${celTexts([POD_READY_CONDITION, IN_PLACE_READY_CONDITION, "Ready"])} : [])`,
  ...IMAGE_VARIABLES,
} as const;

/** CEL: the label `key` says whether the pod takes traffic, before and after. */
const IS_DRAIN = `key == ${celText(TRAFFIC_LABEL)} && [variables.labels, variables.labelsBefore].all(labels, key in labels && labels[key] in ${celTexts([SERVING, DRAINED])})`;

/** Members of a container and its settings that could run or reach more, or override the pod. */
const MORE = ["args", "env", "envFrom", "lifecycle", "livenessProbe", "ports", "readinessProbe", "startupProbe"];
const WEAKER = ["appArmorProfile", "procMount", "runAsUser", "seLinuxOptions", "seccompProfile", "windowsOptions"];
const lacks = (part: string, members: readonly string[]) => members.map((one) => `!has(${part}.${one})`).join(" && ");

/** CEL: the pod pulls, runs `true` without privileges on one node, and ends. It displaces no other pod. */
const IS_HARMLESS = [
  `has(object.spec.nodeName) && object.spec.restartPolicy == "Never" && object.spec.?activeDeadlineSeconds.orValue(86400) <= 600`,
  `!object.spec.?automountServiceAccountToken.orValue(true) && object.spec.?serviceAccountName.orValue("default") == "default"`,
  `size(object.spec.?volumes.orValue([])) == 0 && size(object.spec.?initContainers.orValue([])) == 0 && size(object.spec.?resourceClaims.orValue([])) == 0`,
  `!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false)`,
  `!object.spec.?priorityClassName.orValue("").startsWith("system-")`,
  `object.spec.?securityContext.?runAsNonRoot.orValue(false) && object.spec.?securityContext.?seccompProfile.?type.orValue("") == "RuntimeDefault"`,
  `object.spec.containers.all(c, c.?command.orValue([]) == ["true"] && ${lacks("c", MORE)} && has(c.securityContext) && ${lacks("c.securityContext", WEAKER)})`,
  `object.spec.containers.all(c, !c.?securityContext.?privileged.orValue(false) && !c.?securityContext.?allowPrivilegeEscalation.orValue(true) && c.?securityContext.?runAsNonRoot.orValue(true) && c.?securityContext.?capabilities.?drop.orValue([]) == ["ALL"] && size(c.?securityContext.?capabilities.?add.orValue([])) == 0)`,
].join(" && ");

const RULES: Policy["validations"] = [
  {
    expression: `request.operation == "UPDATE" ? variables.subresource in ["", "status", "resize"] : (variables.subresource == "" || (variables.subresource == "eviction" && request.operation == "CREATE" && ${hasFeature("eviction")}))`,
    message:
      "of pods, the reconciler writes the pod, its status and its resources, and evicts with infra/rbac/optional/eviction.yaml",
  },
  {
    expression: `request.operation == "UPDATE" || variables.subresource != "" || variables.isOfSet || variables.isPull`,
    message:
      "the reconciler creates and deletes no pods but those of an ordered set, with infra/rbac/optional/ordered-sets.yaml, and those that pull images, with pre-pull.yaml",
  },
  {
    // A set may have no pods in the reconciler's own namespace, because the creator of such a pod could use any of its
    // accounts.
    expression: `request.operation != "CREATE" || variables.subresource != "" || (variables.isOfSet && request.namespace != ${celText(KRUISE_NAMESPACE)}) || (${IS_HARMLESS})`,
    message: "the reconciler creates no pod to pull images that could do anything else",
  },
  {
    expression: updated(
      `variables.isOfSet || (variables.changedLabels.all(key, ${IS_DRAIN}) && ${of("object", "metadata.?finalizers", "[]")} == ${of("oldObject", "metadata.?finalizers", "[]")})`,
    ),
    message: `the reconciler changes no finalizers of pods, and no labels but ${TRAFFIC_LABEL}, of pods that have it`,
  },
  {
    expression: updated(
      `variables.changedOwners.all(o, o.kind == "StatefulSet" && o.apiVersion.startsWith("apps.kruise.io/")) && (size(variables.changedOwners) == 0 || ${hasFeature("ordered-sets")})`,
    ),
    message: "the reconciler changes no owners of pods but ordered sets, with infra/rbac/optional/ordered-sets.yaml",
  },
  {
    expression: updated(
      `variables.changedAnnotations.all(key, variables.isOfSet || key in variables.ownAnnotations || key.startsWith(${celText(VERSION_ANNOTATION_PREFIX)}) || key.startsWith(${celText(VERSION_ALT_ANNOTATION_PREFIX)}) || key.startsWith(${celText(VALUES_ANNOTATION_PREFIX)}) || key.contains(${celText(`${VALUE_ANNOTATION_SUFFIX}/`)}) || variables.listedAnnotations.exists(one, one == key || (one.endsWith("/") && key.startsWith(one))))`,
    ),
    message:
      "the reconciler changes no annotations of pods but its own, and those that this policy lists for SidecarSets that patch annotations (docs/install.md)",
  },
  ...IMAGE_RULES,
  {
    expression: updated(
      same("spec", [
        "activeDeadlineSeconds",
        "affinity",
        "ephemeralContainers",
        "nodeName",
        "nodeSelector",
        "resources",
        "schedulingGates",
        "serviceAccountName",
        "terminationGracePeriodSeconds",
        "volumes",
      ]),
    ),
    message:
      "the reconciler changes nothing of a pod's spec but images, and resources with infra/rbac/optional/resize.yaml",
  },
  {
    // An API server itself adds these two to a pod that was made without them, at any update.
    expression: updated(
      `variables.tolerationsBefore.all(t, t in variables.tolerations) && variables.tolerations.all(t, t in variables.tolerationsBefore || (t.?key.orValue("") in ${celTexts(["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"])} && t.?effect.orValue("") == "NoExecute" && has(t.tolerationSeconds)))`,
    ),
    message: "the reconciler changes no tolerations of pods",
  },
  {
    expression: `variables.subresource != "status" || (${same("status", [
      "containerStatuses",
      "ephemeralContainerStatuses",
      "hostIP",
      "hostIPs",
      "initContainerStatuses",
      "message",
      "nominatedNodeName",
      "podIP",
      "podIPs",
      "qosClass",
      "reason",
      "resize",
      "resourceClaimStatuses",
      "startTime",
    ])})`,
    message: "of a pod's status the reconciler writes its own conditions",
  },
  {
    expression: `variables.subresource != "status" || object.status.?phase == oldObject.status.?phase || (variables.terminates && object.status.phase in ["Succeeded", "Failed"] && oldObject.status.phase == "Running" && oldObject.spec.restartPolicy != "Always" && oldObject.spec.containers.exists(c, c.?env.orValue([]).exists(e, e.name == ${celText(TERMINATE_SIDECAR_ENV)})))`,
    message:
      "the reconciler ends no pod but that of a job whose sidecars are to end with it, with infra/rbac/optional/sidecar-terminator.yaml",
  },
  {
    expression: `variables.subresource != "status" || variables.changedConditions.all(type, type in variables.ownConditions)`,
    message: `the reconciler writes no condition of a pod but ${UPGRADABLE_CONDITION}, and those of features that have a role`,
  },
];

/** `listed`: annotations, or prefixes with a slash at the end, that SidecarSets may patch into running pods. */
export function podPolicy(listed: readonly string[]): Policy {
  return {
    name: "pods",
    rules: [allOperations("", "pods", "pods/*")],
    variables: { listedAnnotations: celTexts(listed), ...VARIABLES },
    validations: RULES,
  };
}
