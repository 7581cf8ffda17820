/** Decides whether a SidecarSet may write the annotations of pods that it wants to write. */
import type { ConfigMap, LabelSelector } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { type FieldError, required } from "../../../go/field-error.ts";
import { jsonProblem } from "../../../go/json/json-problem.ts";
import { byteLength, patternError } from "../../../go/label-name.ts";
import { selectorMatches } from "../../../go/label-selector.ts";
import { compileRegularExpression } from "../../../go/regular-expression.ts";
import { validateObjectMeta } from "../../admission/object-meta.ts";

const CONFIG_MAP = "kruise-configuration";
const CONFIG_KEY = "SidecarSet_PatchPodMetadata_WhiteList";

interface WhitelistRule {
  readonly selector?: LabelSelector | null;
  readonly allowedAnnotationKeyExprs?: readonly string[] | null;
}

interface Whitelist {
  readonly rules?: readonly WhitelistRule[] | null;
}

/** What the check sees of the cluster and the configuration. */
export interface WhitelistView {
  readonly configMaps: readonly ConfigMap[];
  readonly kruiseNamespace: string;
  /** feature gate SidecarSetPatchPodMetadataDefaultsAllowed: without a whitelist everything is allowed */
  readonly isAllowedByDefault: boolean;
}

type Test = (key: string) => boolean;
/** a sentence on what is wrong */
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

/** Anything of another shape than the whitelist's would let annotations pass, or throw, later. */
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

/** Policies are not looked at, beyond that there is one (vector metadata-policy-unknown-not-validated). */
export function validatePatchPodMetadata(
  sidecarSet: SidecarSet,
  field: string,
  view: WhitelistView,
): readonly FieldError[] {
  if ((sidecarSet.spec.patchPodMetadata ?? []).length === 0) return [];
  const problem = whitelistProblem(sidecarSet, view);
  return [...(problem === undefined ? [] : [required(field, problem)]), ...validatePatches(sidecarSet, field)];
}

/** Decides whether a text can be the name of a SidecarSet. */
const PATTERN = "^[a-zA-Z0-9\\-]+$";
const NAME = new RegExp(PATTERN);
const LIMIT = 63;
const NAME_ERROR = patternError(
  "sidecarset name must consist of alphanumeric characters or '-'",
  PATTERN,
  "example-com",
);

export function sidecarSetNameErrors(name: string): readonly string[] {
  const length = byteLength(name) > LIMIT ? [`must be no more than ${LIMIT} characters`] : [];
  return NAME.test(name) ? length : [NAME_ERROR, ...length];
}
