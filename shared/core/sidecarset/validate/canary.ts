/** Tells whether a SidecarSet may be the canary of another. */
import { BASE_ANNOTATION, CANARY_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { type FieldError, invalid } from "../../../go/field-error.ts";

function baseNameOf(sidecarSet: SidecarSet): string {
  return sidecarSet.metadata?.annotations?.[BASE_ANNOTATION] ?? "";
}

function isCanary(sidecarSet: SidecarSet): boolean {
  return sidecarSet.metadata?.annotations?.[CANARY_ANNOTATION] === "true" && baseNameOf(sidecarSet) !== "";
}

/** True for the base that `sidecarSet` is a canary of. */
export function isBaseOf(base: SidecarSet, sidecarSet: SidecarSet): boolean {
  return isCanary(sidecarSet) && base.metadata?.name === baseNameOf(sidecarSet);
}

function baseProblem(base: SidecarSet | undefined, baseName: string): string | undefined {
  if (base === undefined) {
    return `fetch base sidecarSet[${baseName}] failed: sidecarsets.apps.kruise.io "${baseName}" not found`;
  }
  return isCanary(base) ? "base sidecarSet cannot be canary" : undefined;
}

/** `older` on UPDATE only; `others` are all SidecarSets of the cluster. */
export function validateCanary(
  sidecarSet: SidecarSet,
  older: SidecarSet | undefined,
  others: readonly SidecarSet[],
): readonly FieldError[] {
  if (!isCanary(sidecarSet)) return [];
  const baseName = baseNameOf(sidecarSet);
  const base = others.find((other) => other.metadata?.name === baseName);
  const isMoved = older !== undefined && baseNameOf(older) !== baseName;
  const problems = [
    baseName === sidecarSet.metadata?.name ? "base sidecarSet cannot be itself" : undefined,
    isMoved ? `annotations[${BASE_ANNOTATION}] is immutable` : undefined,
    baseProblem(base, baseName),
    sidecarSet.spec.updateStrategy?.type === "NotUpdate"
      ? undefined
      : "RollingUpdate is not supported for canary sidecarSet",
  ];
  return problems
    .filter((problem) => problem !== undefined)
    .map((problem) => invalid("metadata", sidecarSet.metadata?.annotations, problem));
}
