/** The library: faults of SidecarSets that their files show. Objects in, values out, no I/O. */
import type { ConfigMap, KubernetesObject } from "../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE, SIDECARSET_KIND, SIDECARSET_V1ALPHA1, SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { droppedFields } from "../../shared/core/admission/dropped-fields.ts";
import type { RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";
import { validateSidecarSet, warningsOf } from "../../shared/core/rollout/validate-sidecarset.ts";
import { powerfulSharing } from "../../shared/core/sidecarset/validate/doubts.ts";
import { fieldsBeyond, minorVersion } from "../../shared/core/sidecarset/validate/newer-fields.ts";
import { printFieldErrors } from "../../shared/go/field-error.ts";
import { SIDECAR_SET, SIDECAR_SET_V1ALPHA1 } from "../../shared/go/types/sidecarset.ts";
import { gates, MANIFESTS, readArguments, VERSION } from "./arguments.ts";
import { storedSidecarSet } from "./pass-input.ts";

export interface LintInput {
  /** SidecarSets of v1beta1 or v1alpha1; other kinds are skipped, except the ConfigMap kruise-configuration */
  readonly objects: readonly KubernetesObject[];
  /** FEATURE_GATES of the webhooks; an absent gate is off */
  readonly featureGates?: Partial<RolloutSettings> & { readonly SidecarSetPatchPodMetadataDefaultsAllowed?: boolean };
  /** version of the API server, such as "1.34"; absent: a field that only some versions support is no finding */
  readonly kubernetesVersion?: string;
}

export interface LintFinding {
  /** the object's index in `objects` */
  readonly index: number;
  /** name of the SidecarSet; "" if it has none */
  readonly name: string;
  /** "error": the webhook refuses the SidecarSet */
  readonly severity: "error" | "warning";
  /** the finding in one sentence */
  readonly message: string;
  /** a warning that only a cluster can confirm or clear */
  readonly needsCluster?: true;
}

const WHITELIST = "kruise-configuration";
type Said = Omit<LintFinding, "index" | "name">;
const error = (message: string): Said => ({ severity: "error", message });
const warning = (message: string): Said => ({ severity: "warning", message });

const ARGUMENTS = {
  objects: MANIFESTS,
  featureGates: gates("SidecarSetPatchPodMetadataDefaultsAllowed"),
  kubernetesVersion: VERSION,
};

/** Findings in the order of the objects. @throws TypeError that says in one sentence which argument is wrong */
export function lint(given: LintInput): readonly LintFinding[] {
  const input = readArguments("lint", given, ARGUMENTS);
  const { objects, featureGates = {}, kubernetesVersion = "" } = input;
  const minor = minorVersion(kubernetesVersion);
  const stored = objects.map((object) => (isSidecarSet(object) ? storedOrProblem(object) : undefined));
  const sidecarSets = stored.filter((one): one is SidecarSet => typeof one === "object");
  const world = { sidecarSets, configMaps: objects.filter(isWhitelist), featureGates };
  return objects.flatMap((object, index) => {
    const one = stored[index];
    if (one === undefined) return [];
    const name = object.metadata?.name ?? "";
    const isTwice = objects.slice(0, index).some((other) => isSidecarSet(other) && other.metadata?.name === name);
    const said = [
      ...(isTwice ? [error(`SidecarSet ${name} is given twice; leave one out`)] : []),
      ...(typeof one === "string" ? [error(one)] : problemsOf(one, world)),
      ...(typeof one === "string" || minor === undefined ? [] : fieldsBeyond(one, minor).map(warning)),
      ...namespaceOf(object),
      ...typosOf(object),
    ];
    return said
      .filter(({ message }, at) => said.findIndex((other) => other.message === message) === at)
      .map((problem) => ({ index, name, ...problem }));
  });
}

function isSidecarSet({ kind, apiVersion }: KubernetesObject): boolean {
  return kind === SIDECARSET_KIND && (apiVersion === SIDECARSET_V1BETA1 || apiVersion === SIDECARSET_V1ALPHA1);
}

function isWhitelist({ kind, metadata }: KubernetesObject): boolean {
  return kind === "ConfigMap" && metadata?.name === WHITELIST;
}

/** The stored form of the object, or one sentence that says why it cannot be read. */
function storedOrProblem(object: KubernetesObject): SidecarSet | string {
  try {
    return storedSidecarSet(object);
  } catch (cause) {
    if (cause instanceof TypeError) return cause.message;
    throw cause;
  }
}

interface World {
  readonly sidecarSets: readonly SidecarSet[];
  readonly configMaps: readonly ConfigMap[];
  readonly featureGates: NonNullable<LintInput["featureGates"]>;
}

function problemsOf(sidecarSet: SidecarSet, { sidecarSets, configMaps, featureGates }: World): readonly Said[] {
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  const gates = { SidecarSetPatchPodMetadataDefaultsAllowed: false, ...featureGates };
  const admission = validateSidecarSet(
    { uid: "lint", resource, operation: "CREATE", object: sidecarSet },
    {
      sidecarSets,
      controllerRevisions: [],
      configMaps: configMaps.map((one) => ({
        ...one,
        metadata: { ...one.metadata, namespace: one.metadata?.namespace ?? KRUISE_NAMESPACE },
      })),
      kruiseNamespace: KRUISE_NAMESPACE,
      featureGates: gates,
    },
  );
  const sharing = powerfulSharing(sidecarSet.spec).map((container) =>
    warning(`the container ${container} has more privileges than others and shares the volumes of pods`),
  );
  const warnings = [...warningsOf(sidecarSet, sidecarSets).map(warning), ...sharing];
  if (admission.kind === "allowed") return warnings;
  if (admission.errors === undefined) return [error(admission.message)];
  const errors = admission.errors.map((one) => {
    const message = `${printFieldErrors([one]).replace(/\.$/, "")}${nextStep(one)}`;
    const why = needsCluster(one, configMaps.length > 0);
    return why === undefined ? error(message) : { ...warning(`${message}: ${why}`), needsCluster: true as const };
  });
  return [...errors, ...warnings];
}

/** Explanations for fields that OpenKruise requires and an API server would fill in: docs/compatibility.md. */
const LINES: readonly (readonly [RegExp, string])[] = [
  [/\.startupProbe\.successThreshold$/, "successThreshold: 1"],
  [/\.startupProbe\.(?:\w+\.)?scheme$/, "scheme: HTTP"],
  [/\.image\.pullPolicy$/, "pullPolicy: IfNotPresent"],
];

interface Problem {
  readonly field: string;
  readonly detail: string;
  readonly badValue?: unknown;
}

function nextStep({ field, detail, badValue }: Problem): string {
  if (detail.startsWith("The initContainer in-place upgrade"))
    return "; write updateStrategy: {type: NotUpdate}, or have FEATURE_GATES say NativeSidecarInPlaceUpdate=true";
  const line = LINES.find(([pattern]) => pattern.test(field))?.[1];
  return line === undefined || (badValue !== undefined && badValue !== 0 && badValue !== "")
    ? ""
    : `; add the line ${line}`;
}

/** The reason why only a cluster can decide; undefined: the field is wrong in every cluster. */
function needsCluster({ field, detail }: Problem, hasWhitelist: boolean): string | undefined {
  if (field === "revision" && detail.startsWith("Cannot find specific"))
    return "whether there is such a revision only a cluster can tell";
  if (!hasWhitelist && /^sidecarSet patch metadata (annotation\(|whitelist not found)/i.test(detail))
    return `unless the ConfigMap ${WHITELIST} of the cluster allows it; add it with -f`;
  return undefined;
}

function typosOf(object: KubernetesObject): readonly Said[] {
  const type = object.apiVersion === SIDECARSET_V1ALPHA1 ? SIDECAR_SET_V1ALPHA1 : SIDECAR_SET;
  return droppedFields("SidecarSets", type, object).map(warning);
}

function namespaceOf({ metadata }: KubernetesObject): readonly Said[] {
  if (!metadata?.namespace) return [];
  return [warning("metadata.namespace: SidecarSets are of the whole cluster; it has no effect")];
}
