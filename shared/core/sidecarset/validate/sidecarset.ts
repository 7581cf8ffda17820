/** Decides whether a SidecarSet may be written into a cluster, and lists everything that speaks against it. */
import type { ConfigMap, ControllerRevision } from "../../../api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../api/sidecarset.ts";
import { type FieldError, required } from "../../../go/field-error.ts";
import { validateObjectMeta } from "../../admission/object-meta.ts";
import { validateSelector } from "../../admission/selector.ts";
import { isHotUpgrade } from "../../pod/sidecar-containers.ts";
import { validatePod } from "../../pod/validate/pod.ts";
import { validateCanary } from "./canary.ts";
import { validateConflicts } from "./conflict.ts";
import { validateContainerUpdate } from "./container-update.ts";
import { validateInjectionStrategy } from "./injection-strategy.ts";
import { validatePatchPodMetadata } from "./patch-pod-metadata.ts";
import { validateSidecarContainers } from "./sidecar-container.ts";
import { sidecarSetNameErrors } from "./sidecarset-name.ts";
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
