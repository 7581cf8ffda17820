/** The admission policy that injects the same as a SidecarSet, without a webhook. */
import type {
  ControllerRevision,
  KubernetesObject,
  LocalObjectReference,
  OwnerReference,
  Volume,
} from "../../../api/kubernetes.ts";
import {
  CONTAINER_LAUNCH_PRIORITY_ANNOTATION,
  CONTAINER_PRIORITY_ENV,
  HASH_ANNOTATION,
  INJECT_KEY,
  SIDECARSET_KIND,
  SIDECARSET_NAME_LABEL,
  SIDECARSET_V1BETA1,
} from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { celLiteral, celText, celTexts } from "../../../go/json/cel-literal.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { pointerStep } from "../../../go/json/json-text.ts";
import { isEmptySelector, selectorMatches } from "../../../go/label-selector.ts";
import { utcSeconds } from "../../../go/rfc3339.ts";
import { Refusal } from "../../admission/admission.ts";
import { hotSidecars } from "../../pod/sidecar-containers.ts";
import { withValuesInPlace } from "../../pod/values-in-place.ts";
import { chooseRevision } from "../../sidecarset/revision/choose-revision.ts";
import { type InjectedParts, type InjectionOptions, volumesOf } from "../inject-sidecar-sets.ts";
import { NAMESPACE_LABELS, POD_LABELS, selectorTerms } from "../match/call-condition.ts";
import { EXEMPT_NAMESPACES, isCanaryOf, type MatchCondition, NO_MIRROR_PODS, outsideOf } from "../match/matches.ts";
import {
  type AnnotationExpressions,
  annotation,
  type CompiledContainer,
  compileContainer,
  copyOf,
  hotAnnotations,
  type ListName,
  POD_VARIABLES,
  patchedAnnotations,
  READABLE,
  recordedAnnotations,
  type Variable,
} from "./expressions.ts";
import { fatal, type NotExpressible, notExpressible } from "./not-expressible.ts";

/** `now` is the recorded time of every injection. The compiler asks for a new option of the injection here too. */
export interface CompileOptions extends Omit<InjectionOptions, "namespace"> {
  readonly kruiseNamespace: string;
  /** the policy's effect on a pod that it cannot evaluate */
  readonly failurePolicy: "Ignore" | "Fail";
  /** gate PodOptOut */
  readonly mayDecline: boolean;
  /** at least the revisions of this SidecarSet */
  readonly revisions: readonly ControllerRevision[];
  /** all SidecarSets: a canary among them may replace this one */
  readonly others: readonly SidecarSet[];
}

export interface CompiledSidecarSet {
  /** MutatingAdmissionPolicy and its binding; none where no policy would be right */
  readonly objects: readonly KubernetesObject[];
  readonly notExpressible: readonly NotExpressible[];
}

const ADMISSION = "admissionregistration.k8s.io/v1";
/** The longest expression that CEL parses. */
const LONGEST_EXPRESSION = 100_000;

function refused(field: string, reason: string): CompiledSidecarSet {
  return { objects: [], notExpressible: [fatal(field, reason)] };
}

/** Why there is nothing to inject. */
function nothingToInject({ spec }: SidecarSet): CompiledSidecarSet | undefined {
  const { selector, injectionStrategy, containers = [], initContainers = [] } = spec;
  if (injectionStrategy?.paused) return refused("spec.injectionStrategy.paused", "it injects into no pod while paused");
  if (!selector || isEmptySelector(selector)) return refused("spec.selector", "without a selector it matches no pod");
  if (containers.length + initContainers.length === 0) return refused("spec", "it has no containers to inject");
  return undefined;
}

interface Compiled {
  readonly variables: readonly Variable[];
  readonly lists: Readonly<Record<ListName, readonly CompiledContainer[]>>;
}

/** Adds the variables about the pod if another variable reads one. */
function withPodVariables(variables: readonly Variable[]): readonly Variable[] {
  const isRead = ({ name }: Variable) => variables.some(({ expression }) => expression.includes(`variables.${name}`));
  return POD_VARIABLES.some(isRead) ? [...POD_VARIABLES, ...variables] : variables;
}

function compileContainers({ spec }: SidecarSet, sortContainersByName: boolean): Compiled {
  const annotations = patchedAnnotations(spec.patchPodMetadata ?? []);
  const compiled = (list: ListName) =>
    (spec[list] ?? []).map((sidecar, index) => compileContainer(sidecar, list, { id: `${list}${index}`, annotations }));
  const [initContainers, containers] = [compiled("initContainers"), compiled("containers")];
  const inOrder = (all: readonly { readonly containers: readonly CompiledContainer[] }[], isSorted: boolean) => {
    const flat = all.flatMap((one) => one.containers);
    return isSorted ? flat.toSorted((one, other) => compareUtf8(one.name, other.name)) : flat;
  };
  return {
    variables: withPodVariables([...initContainers, ...containers].flatMap(({ variables }) => variables)),
    lists: { initContainers: inOrder(initContainers, true), containers: inOrder(containers, sortContainersByName) },
  };
}

/** The operations for each part of an injection, in this order. The compiler asks for the row of a new part. */
function operationsOf(
  sidecarSet: SidecarSet,
  { initContainers, containers }: Compiled["lists"],
  now: string,
): Readonly<Record<keyof InjectedParts, readonly Operations[]>> {
  const annotations = new Map([
    ...patchedAnnotations(sidecarSet.spec.patchPodMetadata ?? []),
    ...hotAnnotations(hotSidecars(sidecarSet)),
    ...recordedAnnotations(sidecarSet, now),
  ]);
  return {
    hot: annotationOperations(annotations),
    initContainers: containerOperations("initContainers", initContainers),
    containers: containerOperations("containers", containers),
    volumes: volumeOperations(volumesOf(sidecarSet)),
    imagePullSecrets: secretOperations(sidecarSet.spec.imagePullSecrets ?? []),
  };
}

/** The metadata of both objects. Kubernetes deletes them together with the SidecarSet. */
function metadataOf({ metadata }: SidecarSet) {
  const { name = "", uid, annotations } = metadata ?? {};
  const owner: OwnerReference = { apiVersion: SIDECARSET_V1BETA1, kind: SIDECARSET_KIND, name, uid: uid ?? "" };
  return {
    name: `sidecarset-${name}`,
    labels: { [SIDECARSET_NAME_LABEL]: name },
    annotations: { [HASH_ANNOTATION]: annotations?.[HASH_ANNOTATION] ?? "" },
    ...(uid ? { ownerReferences: [owner] } : {}),
  };
}

/** `chosen`: the injected version, which is the SidecarSet itself or one of its revisions. */
function objectsOf(sidecarSet: SidecarSet, chosen: SidecarSet, options: CompileOptions): readonly KubernetesObject[] {
  const { variables, lists } = compileContainers(chosen, options.sortContainersByName);
  const { selector, namespaceSelector } = sidecarSet.spec;
  const metadata = metadataOf(sidecarSet);
  const operations = operationsOf(chosen, lists, utcSeconds(options.now) ?? options.now);
  const namespaces = {
    ...namespaceSelector,
    matchExpressions: [...outsideOf(EXEMPT_NAMESPACES), ...(namespaceSelector?.matchExpressions ?? [])],
  };
  const spec = {
    failurePolicy: options.failurePolicy,
    reinvocationPolicy: "Never",
    matchConstraints: {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
      namespaceSelector: namespaces,
      objectSelector: selector,
    },
    matchConditions: policyConditions(sidecarSet, options, lists),
    variables,
    mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: Object.values(operations).flat().join(" +\n") } }],
  };
  return [
    { apiVersion: ADMISSION, kind: "MutatingAdmissionPolicy", metadata, ...{ spec } },
    {
      apiVersion: ADMISSION,
      kind: "MutatingAdmissionPolicyBinding",
      metadata,
      ...{ spec: { policyName: metadata.name } },
    },
  ];
}

function longest(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  return Math.max(0, ...Object.values(value).map(longest));
}

/**
 * The policy for a stored SidecarSet, with defaults and hashes. Its pods equal those of the webhook except for the
 * effects in `notExpressible` and the time in their records. It is a copy: compile again after each change.
 */
export function compileSidecarSet(sidecarSet: SidecarSet, options: CompileOptions): CompiledSidecarSet {
  const nothing = nothingToInject(sidecarSet);
  if (nothing !== undefined) return nothing;
  const { revisions, kruiseNamespace } = options;
  const choice = { podLabels: undefined, revisions, kruiseNamespace, random: () => 0 };
  const recorded = chooseRevision(sidecarSet, choice);
  if (recorded instanceof Refusal) return refused("spec.injectionStrategy.revision", recorded.message);
  const chosen = withValuesInPlace(recorded);
  const missing = notExpressible({ ...chosen, spec: { ...sidecarSet.spec, ...chosen.spec } });
  if (missing.some(({ isFatal }) => isFatal)) return { objects: [], notExpressible: missing };
  const objects = objectsOf(sidecarSet, chosen, options);
  if (longest(objects) > LONGEST_EXPRESSION) return refused("spec", "an expression would be longer than CEL reads");
  return { objects, notExpressible: missing };
}

// Tells which JSON Patch operations put containers, volumes, secrets and annotations into a pod.

/** An expression of a list of JSONPatch. */
type Operations = string;

function add(path: string, value: string): string {
  return `JSONPatch{op: "add", path: ${celText(path)}, value: ${value}}`;
}

function onlyIf(condition: string, one: string): Operations {
  return `(${condition} ? [${one}] : [])`;
}

/** A list or map that later operations add to. */
function unlessThere(path: string, empty: "[]" | "{}"): Operations {
  const field = `object${path.replaceAll("/", ".")}`;
  return `(has(${field}) ? [] : [${add(path, empty)}])`;
}

/** Inserts containers before or after the pod's own; no pod container has the name of an injected one. */
function containerOperations(list: ListName, containers: readonly CompiledContainer[]): readonly Operations[] {
  if (containers.length === 0) return [];
  const path = `/spec/${list}`;
  const addedAt = (end: string) => (one: CompiledContainer) => add(`${path}/${end}`, `variables.${one.variable}`);
  const after = containers.filter(({ isBeforeApps }) => !isBeforeApps).map(addedAt("-"));
  const before = containers.filter(({ isBeforeApps }) => isBeforeApps).map(addedAt("0"));
  return [unlessThere(path, "[]"), `[${[...after, ...before.reverse()].join(",\n ")}]`];
}

/** The first of a name wins, and the pod's own before any. */
function volumeOperations(volumes: readonly Volume[]): readonly Operations[] {
  if (volumes.length === 0) return [];
  const first = volumes.filter(({ name }, index) => volumes.findIndex((other) => other.name === name) === index);
  const added = first.map((volume) => {
    const isThere = `object.spec.?volumes.orValue([]).exists(v, v.name == ${celText(volume.name)})`;
    return onlyIf(`!${isThere}`, add("/spec/volumes/-", celLiteral(volume)));
  });
  return [unlessThere("/spec/volumes", "[]"), ...added];
}

/** The pod's own are deduplicated as well. */
function secretOperations(secrets: readonly LocalObjectReference[]): readonly Operations[] {
  const own = `object.spec.?imagePullSecrets.orValue([]).map(s, ${copyOf("s", { name: true })})`;
  const all = `(${own}${secrets.length > 0 ? ` + ${celLiteral(secrets)}` : ""})`;
  const firsts = `${all}.transformList(i, x, ${all}.map(y, y.?name.orValue("")).indexOf(x.?name.orValue("")) == i, x)`;
  return [onlyIf(`size(${all}) > 0`, add("/spec/imagePullSecrets", firsts))];
}

function annotationOperations(annotations: AnnotationExpressions): readonly Operations[] {
  const added = [...annotations].map(([key, value]) => add(`/metadata/annotations/${pointerStep(key)}`, value));
  return added.length === 0 ? [] : [unlessThere("/metadata/annotations", "{}"), `[${added.join(",\n ")}]`];
}

// Which of the pods that a SidecarSet selects its policy covers.

/** Barriers carry the pod's name, which most pods have not got yet. */
const NO_LAUNCH_ORDER: MatchCondition = {
  name: "no-launch-order",
  expression: `${annotation(CONTAINER_LAUNCH_PRIORITY_ANNOTATION)} != "Ordered" && !object.spec.containers.exists(c, c.?env.orValue([]).exists(e, e.name == ${celText(CONTAINER_PRIORITY_ENV)}))`,
};

/** The webhook refuses the others, or reads what an expression cannot. */
const READABLE_RECORDS: MatchCondition = {
  name: "readable-records",
  expression: [...READABLE].map(([key, form]) => `${annotation(key)}.matches(${celText(form)})`).join(" && "),
};

const NOT_DECLINED: MatchCondition = {
  name: "declines-no-sidecars",
  expression: `object.metadata.?labels[?${celText(INJECT_KEY)}].orValue("") != "false" && ${annotation(INJECT_KEY)} != "false"`,
};

/** The webhook would find the sidecar in the place of the pod's own container, and copy from it. */
function noSuchContainer(lists: Compiled["lists"]): MatchCondition {
  const terms = Object.entries(lists)
    .filter(([, own]) => own.length > 0)
    .map(([list, own]) => [list, celTexts(own.map(({ name }) => name))])
    .map(([list, names]) => `!object.spec.?${list}.orValue([]).exists(c, c.name in ${names})`);
  return { name: "no-container-of-that-name", expression: terms.join(" && ") };
}

/** Undefined: it matches no pod. */
function matchCondition({ spec }: SidecarSet): string | undefined {
  const { selector, namespaceSelector, injectionStrategy } = spec;
  if (injectionStrategy?.paused || !selector || isEmptySelector(selector)) return undefined;
  if (typeof selectorMatches(selector, {}) !== "boolean") return undefined;
  if (namespaceSelector && typeof selectorMatches(namespaceSelector, {}) !== "boolean") return undefined;
  const terms = [
    ...selectorTerms(selector, POD_LABELS),
    ...(namespaceSelector ? selectorTerms(namespaceSelector, NAMESPACE_LABELS) : []),
  ];
  return terms.join(" && ");
}

function policyConditions(
  sidecarSet: SidecarSet,
  { others, mayDecline }: CompileOptions,
  lists: Compiled["lists"],
): readonly MatchCondition[] {
  const declined = mayDecline ? [NOT_DECLINED] : [];
  const canaries = others
    .filter((other) => isCanaryOf(other, sidecarSet))
    .flatMap((canary) => matchCondition(canary) ?? [])
    .map((expression, index) => ({ name: `not-for-canary-${index}`, expression: `!(${expression})` }));
  return [NO_MIRROR_PODS, NO_LAUNCH_ORDER, READABLE_RECORDS, noSuchContainer(lists), ...declined, ...canaries];
}
