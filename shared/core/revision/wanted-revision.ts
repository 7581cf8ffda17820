/** Decides whether new pods get a revision of a SidecarSet other than the current one, and which. */
import type { SidecarSet } from "../../api/sidecarset.ts";

/** A ControllerRevision to fetch: by its name, or else by the labels of its SidecarSet and custom version. */
export interface RevisionWanted {
  readonly sidecarSet: string;
  readonly revisionName?: string;
  readonly customVersion?: string;
  /**
   * As long as it is the same, so are the SidecarSet's revisions. Absent while a pass has yet to register those of its
   * last change.
   */
  readonly standing?: string;
}

/** Undefined: new pods get the current one. A name goes before a custom version. */
export function wantedRevision(sidecarSet: SidecarSet): RevisionWanted | undefined {
  const { revisionName, customVersion } = sidecarSet.spec.injectionStrategy?.revision ?? {};
  const common = { sidecarSet: sidecarSet.metadata?.name ?? "", ...standingOf(sidecarSet) };
  if (typeof revisionName === "string") return { ...common, revisionName };
  return typeof customVersion === "string" ? { ...common, customVersion } : undefined;
}

/** Revisions are made, numbered and labelled before the status says that the generation was seen. */
function standingOf({ metadata, status }: SidecarSet): Pick<RevisionWanted, "standing"> {
  const { uid, generation } = metadata ?? {};
  const { observedGeneration, latestRevision } = status ?? {};
  const isSettled = uid !== undefined && generation !== undefined && generation === observedGeneration;
  return isSettled && latestRevision ? { standing: `${uid}/${generation}/${latestRevision}` } : {};
}
