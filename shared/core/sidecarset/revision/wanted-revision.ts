/** Tells whether new pods get a revision other than the current one, and which. */
import type { SidecarSet } from "../../../api/sidecarset.ts";

/** A ControllerRevision to fetch: by its name, or else by the labels of its SidecarSet and custom version. */
export interface RevisionWanted {
  readonly sidecarSet: string;
  readonly revisionName?: string;
  readonly customVersion?: string;
}

/** Undefined: new pods get the current one. A name goes before a custom version. */
export function wantedRevision(sidecarSet: SidecarSet): RevisionWanted | undefined {
  const { revisionName, customVersion } = sidecarSet.spec.injectionStrategy?.revision ?? {};
  const name = sidecarSet.metadata?.name ?? "";
  if (typeof revisionName === "string") return { sidecarSet: name, revisionName };
  return typeof customVersion === "string" ? { sidecarSet: name, customVersion } : undefined;
}
