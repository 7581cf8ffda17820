/** Decides whether a SidecarSet may be written into a cluster, and lists everything that speaks against it. */
import type { ConfigMap, ControllerRevision } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, SIDECARSET_NAME_LABEL } from "../../../api/names.ts";
import type { InjectionStrategy, SidecarSet, SidecarSetSpec } from "../../../api/sidecarset.ts";
import { type FieldError, invalid, required } from "../../../go/field-error.ts";
import { validateObjectMeta } from "../../admission/object-meta.ts";
import { validateSelector } from "../../admission/selector.ts";
import { replacesNotUpgradable } from "../../pod/replaced.ts";
import { isHotUpgrade } from "../../pod/sidecar-containers.ts";
import { validatePod } from "../../pod/validate/pod.ts";
import { validateCanary } from "./canary.ts";
import { validateConflicts } from "./conflict.ts";
import { sidecarSetNameErrors, validatePatchPodMetadata } from "./patch-pod-metadata.ts";
import { validateSidecarContainers } from "./sidecar-container.ts";
import { validateUpdateStrategy } from "./update-strategy.ts";

/** What validation sees of the cluster and the configuration. */
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

/** With the gate only pairs of a hot upgrade are left: nothing flips init containers. */
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
  ];
}

/**
 * Both objects are v1beta1 with members of the right types; `older` on UPDATE only. Empty: nothing speaks against it.
 * Conflicts with other SidecarSets are looked for only in one that is valid by itself.
 * Source: OpenKruise's validating webhook for SidecarSets.
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

// Whether the containers of a SidecarSet may be changed as they are.

/**
 * Containers may go, but not come; initContainers are free. Where pods are replaced a container may come too: a pod without
 * it is not forgotten then, but replaced.
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

// Whether the revision that a SidecarSet wants to be injected exists.

type InjectRevision = NonNullable<InjectionStrategy["revision"]>;

/** What the check sees of the cluster. */
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

/** Compat: another SidecarSet's revision may be named (webhook.md 8). The field paths are OpenKruise's. */
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
