/** Tells whether a SidecarSet may be stored, with a list of all errors. */
import type { ConfigMap, ControllerRevision, LabelSelector } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, IN_PLACE_ANNOTATION, SIDECARSET_NAME_LABEL } from "../../../api/names.ts";
import type { InjectionStrategy, SidecarSet, SidecarSetSpec } from "../../../api/sidecarset.ts";
import { type FieldError, invalid, required } from "../../../go/field-error.ts";
import { jsonProblem } from "../../../go/json/json-problem.ts";
import { byteLength, patternError } from "../../../go/label-name.ts";
import { selectorMatches } from "../../../go/label-selector.ts";
import { compileRegularExpression } from "../../../go/regular-expression.ts";
import { validateObjectMeta } from "../../admission/object-meta.ts";
import { validateSelector } from "../../admission/selector.ts";
import { replacesNotUpgradable } from "../../pod/replaced.ts";
import { isHotUpgrade } from "../../pod/sidecar-containers.ts";
import { validatePod } from "../../pod/validate/pod.ts";
import { valuesInPlace, valuesLength } from "../../pod/values-in-place.ts";
import { validateCanary, validateConflicts } from "./conflict.ts";
import { validateSidecarContainers } from "./sidecar-container.ts";
import { validateUpdateStrategy } from "./update-strategy.ts";

/** The cluster state and configuration for the validation. */
export interface ValidationView {
  readonly sidecarSets: readonly SidecarSet[];
  readonly controllerRevisions: readonly ControllerRevision[];
  readonly configMaps: readonly ConfigMap[];
  /** namespace of the ControllerRevisions and of the whitelist */
  readonly kruiseNamespace: string;
  /** feature gate SidecarSetPatchPodMetadataDefaultsAllowed */
  readonly isAllowedByDefault: boolean;
  /** feature gate NativeSidecarInPlaceUpdate */
  readonly areNativesUpdated?: boolean;
}

/** With the gate only hot-upgrade pairs are refused: nothing flips init containers. */
function validateNativeSidecars(
  { initContainers, updateStrategy }: SidecarSetSpec,
  areUpdated: boolean,
): readonly FieldError[] {
  if (updateStrategy?.type !== "RollingUpdate") return [];
  const natives = (initContainers ?? []).filter(
    (one) => one.restartPolicy === "Always" && !(areUpdated && !isHotUpgrade(one)),
  );
  const detail = "The initContainer in-place upgrade is not currently supported.";
  return natives.map(() => required("spec.updateStrategy", detail));
}

function validateSelectors({ selector, namespaceSelector }: SidecarSetSpec): readonly FieldError[] {
  return [
    ...(selector == null
      ? [required("spec.selector", "no selector defined for SidecarSet")]
      : validateSelector(selector, "spec.selector")),
    ...(namespaceSelector == null ? [] : validateSelector(namespaceSelector, "spec.namespaceSelector")),
  ];
}

function validateContainers(spec: SidecarSetSpec): readonly FieldError[] {
  if (!spec.containers?.length && !spec.initContainers?.length) {
    return [required("spec", "no initContainer or container defined for SidecarSet")];
  }
  return [...validateSidecarContainers(spec), ...validatePod(spec)];
}

function validateSpec(sidecarSet: SidecarSet, view: ValidationView): readonly FieldError[] {
  const { spec } = sidecarSet;
  return [
    ...validateNativeSidecars(spec, view.areNativesUpdated === true),
    ...validateSelectors(spec),
    ...validateInjectionStrategy(sidecarSet, view),
    ...validateUpdateStrategy(spec, "spec.updateStrategy"),
    ...validateContainers(spec),
    ...validatePatchPodMetadata(sidecarSet, "spec.patchPodMetadata", view),
    ...validateValues(sidecarSet),
  ];
}

/** Two such SidecarSets leave a pod half of its annotations, and passes skip pods with larger records. */
const MOST_VALUE_BYTES = 32 * 1024;

function validateValues(sidecarSet: SidecarSet): readonly FieldError[] {
  if (sidecarSet.metadata?.annotations?.[IN_PLACE_ANNOTATION] === undefined) return [];
  const values = valuesInPlace(sidecarSet);
  const bytes = values === undefined ? 0 : valuesLength(values);
  if (bytes <= MOST_VALUE_BYTES) return [];
  const detail = `the values that change in place have ${bytes} bytes with the names of their annotations, and may have ${MOST_VALUE_BYTES}: leave the annotation ${IN_PLACE_ANNOTATION} out, or keep large ones in a ConfigMap`;
  return [invalid("spec.containers", values?.digest, detail)];
}

/**
 * The errors; empty: the SidecarSet is valid. Both objects are v1beta1 with members of the right types; `older` on
 * UPDATE only. Conflicts with other SidecarSets are searched only if it is valid by itself. Source: OpenKruise's
 * validating webhook for SidecarSets.
 */
export function sidecarSetErrors(
  sidecarSet: SidecarSet,
  older: SidecarSet | undefined,
  view: ValidationView,
): readonly FieldError[] {
  const errors = [
    ...validateObjectMeta(sidecarSet.metadata, "metadata", sidecarSetNameErrors),
    ...validateCanary(sidecarSet, older, view.sidecarSets),
    ...validateSpec(sidecarSet, view),
    ...(older === undefined ? [] : validateContainerUpdate(sidecarSet, older)),
  ];
  return errors.length > 0 ? errors : validateConflicts(sidecarSet, view.sidecarSets);
}

// Tells whether the containers of a SidecarSet may be changed as they are.

/**
 * Containers may be removed, but not added; initContainers are free. If pods are replaced a container may be added: a
 * pod without it is replaced, not forgotten.
 */
function validateContainerUpdate(sidecarSet: SidecarSet, older: SidecarSet): readonly FieldError[] {
  const mayCome = replacesNotUpgradable(sidecarSet);
  const upgradeTypes = new Map(
    older.spec.containers?.map(({ name, upgradeStrategy }) => [name, upgradeStrategy?.upgradeType ?? ""]),
  );
  return (sidecarSet.spec.containers ?? []).flatMap(({ name, upgradeStrategy }) => {
    const upgradeType = upgradeTypes.get(name);
    if (upgradeType === undefined && mayCome) return [];
    if (upgradeType === undefined) return [invalid("spec.containers.name", name, `container ${name} is not found`)];
    if (upgradeType === "" || upgradeType === (upgradeStrategy?.upgradeType ?? "")) return [];
    const detail = `container ${name} upgradeType is immutable`;
    return [invalid("spec.containers.upgradeStrategy.upgradeType", name, detail)];
  });
}

// Tells whether the revision that a SidecarSet wants to be injected exists.

type InjectRevision = NonNullable<InjectionStrategy["revision"]>;

/** The cluster state for the check. */
interface RevisionView {
  readonly controllerRevisions: readonly ControllerRevision[];
  /** namespace of the ControllerRevisions */
  readonly kruiseNamespace: string;
}

const POLICIES: ReadonlySet<string> = new Set(["", "Always", "Partial"]);

function missingByName(name: string, revisions: readonly ControllerRevision[]): string | undefined {
  const isThere = revisions.some(({ metadata }) => metadata?.name === name);
  return isThere ? undefined : `controllerrevisions.apps "${name}" not found`;
}

function missingByVersion(
  version: string | undefined,
  sidecarSetName: string,
  revisions: readonly ControllerRevision[],
): string | undefined {
  const isThere = revisions.some(
    ({ metadata }) =>
      metadata?.labels?.[SIDECARSET_NAME_LABEL] === sidecarSetName && metadata.labels[CUSTOM_VERSION_LABEL] === version,
  );
  return isThere ? undefined : `ControllerRevision.apps "${sidecarSetName}" not found`;
}

function validateChoice(revision: InjectRevision, sidecarSetName: string, view: RevisionView): readonly FieldError[] {
  const { revisionName, customVersion } = revision;
  if (revisionName == null && customVersion == null) {
    return [invalid("revision", revision, "revisionName and customVersion cannot be empty simultaneously")];
  }
  const revisions = view.controllerRevisions.filter(({ metadata }) => metadata?.namespace === view.kruiseNamespace);
  const missing =
    revisionName == null
      ? missingByVersion(customVersion, sidecarSetName, revisions)
      : missingByName(revisionName, revisions);
  return missing === undefined
    ? []
    : [invalid("revision", null, `Cannot find specific ControllerRevision, err: ${missing}`)];
}

/** Compat: the revision may belong to another SidecarSet (webhook.md 8). Errors name OpenKruise's field paths. */
function validateInjectionStrategy(sidecarSet: SidecarSet, view: RevisionView): readonly FieldError[] {
  const revision = sidecarSet.spec.injectionStrategy?.revision;
  if (revision == null) return [];
  const { policy = "" } = revision;
  const detail = `Invalid policy ${policy}, supported: [Always, Partial]`;
  return [
    ...validateChoice(revision, sidecarSet.metadata?.name ?? "", view),
    ...(POLICIES.has(policy) ? [] : [invalid("revision.policy", revision, detail)]),
  ];
}

/** Tells whether a SidecarSet may write its pod annotations. */
const CONFIG_MAP = "kruise-configuration";
const CONFIG_KEY = "SidecarSet_PatchPodMetadata_WhiteList";

interface WhitelistRule {
  readonly selector?: LabelSelector | null;
  readonly allowedAnnotationKeyExprs?: readonly string[] | null;
}

interface Whitelist {
  readonly rules?: readonly WhitelistRule[] | null;
}

/** The cluster state and configuration for the check. */
interface WhitelistView {
  readonly configMaps: readonly ConfigMap[];
  readonly kruiseNamespace: string;
  /** feature gate SidecarSetPatchPodMetadataDefaultsAllowed: without a whitelist everything is allowed */
  readonly isAllowedByDefault: boolean;
}

type Test = (key: string) => boolean;
/** a sentence about the fault */
type Problem = string;

function findWhitelist({ configMaps, kruiseNamespace }: WhitelistView): Whitelist | Problem | undefined {
  const configMap = configMaps.find(
    ({ metadata }) => metadata?.name === CONFIG_MAP && metadata.namespace === kruiseNamespace,
  );
  const text = configMap?.data?.[CONFIG_KEY];
  if (text === undefined) return undefined;
  const problem = jsonProblem(text);
  if (problem !== undefined) return problem;
  return readWhitelist(JSON.parse(text));
}

/** Checks the shape of the whitelist: any other one would let annotations pass, or throw, later. */
function readWhitelist(value: unknown): Whitelist | Problem {
  const malformed = `${CONFIG_KEY} in ConfigMap ${CONFIG_MAP} is not {"rules":[{"selector":…,"allowedAnnotationKeyExprs":[…]}]}`;
  if (value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) return malformed;
  const { rules = [] } = value as Whitelist;
  const isWhole = rules === null || (Array.isArray(rules) && rules.every(isRule));
  return isWhole ? { rules } : malformed;
}

function isRule(rule: unknown): boolean {
  if (typeof rule !== "object" || rule === null) return false;
  const { selector = null, allowedAnnotationKeyExprs: patterns = null } = rule as WhitelistRule;
  const hasPatterns =
    patterns === null || (Array.isArray(patterns) && patterns.every((pattern) => typeof pattern === "string"));
  return typeof selector === "object" && hasPatterns;
}

/** The tests of one rule, none where its selector does not select the SidecarSet. */
function testsOfRule(rule: WhitelistRule, sidecarSet: SidecarSet): readonly Test[] | Problem {
  if (rule.selector != null) {
    const matches = selectorMatches(rule.selector, sidecarSet.metadata?.labels);
    if (typeof matches === "object") return matches.message;
    if (!matches) return [];
  }
  const compiled = (rule.allowedAnnotationKeyExprs ?? []).map(compileRegularExpression);
  const malformed = compiled.find((expression) => expression.kind === "malformed");
  if (malformed !== undefined) return malformed.message;
  return compiled.flatMap((expression) => (expression.kind === "compiled" ? [expression.matches] : []));
}

function testsOf(whitelist: Whitelist, sidecarSet: SidecarSet): readonly Test[] | Problem {
  const tests: Test[] = [];
  for (const rule of whitelist.rules ?? []) {
    const added = testsOfRule(rule, sidecarSet);
    if (typeof added === "string") return added;
    tests.push(...added);
  }
  return tests;
}

/** Compat: patterns match anywhere in the key (vector metadata-whitelist-unanchored-substring). */
function whitelistProblem(sidecarSet: SidecarSet, view: WhitelistView): Problem | undefined {
  const whitelist = findWhitelist(view);
  if (typeof whitelist === "string") return whitelist;
  if (whitelist === undefined) {
    return view.isAllowedByDefault ? undefined : "SidecarSet patch metadata whitelist not found";
  }
  const tests = testsOf(whitelist, sidecarSet);
  if (typeof tests === "string") return tests;
  if (tests.length === 0) {
    return view.isAllowedByDefault ? undefined : "sidecarSet patch metadata annotation is not allowed";
  }
  const keys = (sidecarSet.spec.patchPodMetadata ?? []).flatMap(({ annotations }) => Object.keys(annotations ?? {}));
  const denied = keys.find((key) => !tests.some((allows) => allows(key)));
  return denied === undefined ? undefined : `sidecarSet patch metadata annotation(${denied}) is not allowed`;
}

function validatePatches(sidecarSet: SidecarSet, field: string): readonly FieldError[] {
  const seen = new Set<string>();
  return (sidecarSet.spec.patchPodMetadata ?? []).flatMap(({ annotations, patchPolicy = "" }) => {
    const keys = Object.keys(annotations ?? {});
    const repeated = keys.filter((key) => seen.has(key));
    for (const key of keys) seen.add(key);
    const metadata = { name: "fake-name", annotations: annotations ?? {} };
    return [
      ...(keys.length === 0
        ? [required(field, "no annotations defined for SidecarSet")]
        : validateObjectMeta(metadata, "patchPodMetadata", sidecarSetNameErrors)),
      ...(patchPolicy === "" ? [required(field, "no patchPolicy defined for patchPodMetadata")] : []),
      ...repeated.map((key) => required(field, `patch annotation[${key}] already exist`)),
    ];
  });
}

/** Requires a policy, but does not validate it (vector metadata-policy-unknown-not-validated). */
function validatePatchPodMetadata(sidecarSet: SidecarSet, field: string, view: WhitelistView): readonly FieldError[] {
  if ((sidecarSet.spec.patchPodMetadata ?? []).length === 0) return [];
  const problem = whitelistProblem(sidecarSet, view);
  return [...(problem === undefined ? [] : [required(field, problem)]), ...validatePatches(sidecarSet, field)];
}

/** Tells whether a text can be the name of a SidecarSet. */
const PATTERN = "^[a-zA-Z0-9\\-]+$";
const NAME = new RegExp(PATTERN);
const LIMIT = 63;
const NAME_ERROR = patternError(
  "sidecarset name must consist of alphanumeric characters or '-'",
  PATTERN,
  "example-com",
);

function sidecarSetNameErrors(name: string): readonly string[] {
  const length = byteLength(name) > LIMIT ? [`must be no more than ${LIMIT} characters`] : [];
  return NAME.test(name) ? length : [NAME_ERROR, ...length];
}
