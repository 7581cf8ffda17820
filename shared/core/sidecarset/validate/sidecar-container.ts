/** Decides whether what SidecarSets add to a container (policies, transferred variables) is as it may be. */
import type { SidecarContainer, SidecarSetSpec } from "../../../api/sidecarset.ts";
import { type FieldError, invalid } from "../../../go/field-error.ts";
import { validateInitResourcesPolicy, validateResourcesPolicy } from "./resources-policy.ts";
import { validateTransferEnv } from "./transfer-env.ts";

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
