/** Decides whether the revision that a SidecarSet wants to be injected exists. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, SIDECARSET_NAME_LABEL } from "../../../api/names.ts";
import type { InjectionStrategy, SidecarSet } from "../../../api/sidecarset.ts";
import { type FieldError, invalid } from "../../../go/field-error.ts";

type InjectRevision = NonNullable<InjectionStrategy["revision"]>;

/** What the check sees of the cluster. */
export interface RevisionView {
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
export function validateInjectionStrategy(sidecarSet: SidecarSet, view: RevisionView): readonly FieldError[] {
  const revision = sidecarSet.spec.injectionStrategy?.revision;
  if (revision == null) return [];
  const { policy = "" } = revision;
  const detail = `Invalid policy ${policy}, supported: [Always, Partial]`;
  return [
    ...validateChoice(revision, sidecarSet.metadata?.name ?? "", view),
    ...(POLICIES.has(policy) ? [] : [invalid("revision.policy", revision, detail)]),
  ];
}
