/** Warnings about the effects of a SidecarSet that OpenKruise does not mention. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { Container, Pod } from "../../api/kubernetes.ts";
import { IS_INJECTED_ENV } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { Admission } from "../../core/admission/admission.ts";
import { powerfulSharing } from "../../core/sidecarset/validate/doubts.ts";

const LISTS = ["initContainers", "containers"] as const;

/** A pod's own container goes where a sidecar has its name. */
export function warnOfReplaced({ object }: AdmissionRequest, admission: Admission): Admission {
  if (admission.kind === "denied" || admission.object === undefined) return admission;
  const after = admission.object as Pod;
  const replaced = LISTS.flatMap((list) => {
    const injected = new Set(after.spec?.[list]?.filter(isInjected).map(({ name }) => name));
    const before: readonly Container[] = (object as Pod | null)?.spec?.[list] ?? [];
    return before.filter((one) => injected.has(one.name) && !isInjected(one));
  });
  return withWarnings(
    admission,
    replaced.map(({ name }) => `the container ${name} of the pod is replaced by the sidecar of that name`),
  );
}

/** Warns of sharing, because a pod can control a sidecar through shared parts. */
export function warnOfSharing({ object }: AdmissionRequest, admission: Admission): Admission {
  if (admission.kind === "denied") return admission;
  const { spec } = (object as SidecarSet | null) ?? {};
  const sharing = spec ? powerfulSharing(spec) : [];
  return withWarnings(
    admission,
    sharing.map(
      (name) =>
        `the container ${name} has more privileges than others and shares the volumes of pods: anyone who creates a pod can put files and variables there that it goes by`,
    ),
  );
}

export function withWarnings(admission: Admission & { readonly kind: "allowed" }, more: readonly string[]): Admission {
  return more.length === 0 ? admission : { ...admission, warnings: [...(admission.warnings ?? []), ...more] };
}

function isInjected({ env }: Container): boolean {
  return env?.some(({ name, value }) => name === IS_INJECTED_ENV && value === "true") === true;
}
