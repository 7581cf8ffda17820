/** The revision of a SidecarSet that a new pod gets. */
import type { ControllerRevision, Labels } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, SIDECARSET_NAME_LABEL } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { quote } from "../../../go/field-error.ts";
import { selectorMatches } from "../../../go/label-selector.ts";
import { Refusal } from "../../admission/admission.ts";
import { compareRevisions } from "./compare-revisions.ts";
import { restoreRevision } from "./restore-revision.ts";
import { type RevisionWanted, wantedRevision } from "./wanted-revision.ts";

export interface RevisionChoice {
  readonly podLabels: Labels | undefined;
  /** at least the wanted revisions, from any namespace */
  readonly revisions: readonly ControllerRevision[];
  readonly kruiseNamespace: string;
  /** a number from 0 up to but not including 1 */
  readonly random: () => number;
}

const FLOAT = /^[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

function isLabelled({ metadata }: ControllerRevision, { sidecarSet, customVersion }: RevisionWanted): boolean {
  const labels = metadata?.labels;
  return labels?.[SIDECARSET_NAME_LABEL] === sidecarSet && labels[CUSTOM_VERSION_LABEL] === customVersion;
}

/** Compat: a name is taken at its word, whosever revision that is (vector rev-of-other-sidecarset-by-name). */
function findRevision(
  wanted: RevisionWanted,
  { revisions, kruiseNamespace }: RevisionChoice,
): ControllerRevision | Refusal {
  const { sidecarSet, revisionName } = wanted;
  const here = revisions.filter(({ metadata }) => metadata?.namespace === kruiseNamespace);
  if (revisionName !== undefined) {
    const named = here.find(({ metadata }) => metadata?.name === revisionName);
    return named ?? new Refusal(`controllerrevisions.apps ${quote(revisionName)} not found`);
  }
  const newest = here
    .filter((revision) => isLabelled(revision, wanted))
    .toSorted(compareRevisions)
    .at(-1);
  return newest ?? new Refusal(`ControllerRevision.apps ${quote(sidecarSet)} not found`);
}

/** The share of new pods that get the specified revision, from 0 to 1. A count says nothing about a single pod. */
function specifiedShare({ spec }: SidecarSet): number | Refusal {
  const partition = spec.updateStrategy?.partition;
  if (typeof partition !== "string") return 0;
  if (!partition.endsWith("%")) return new Refusal("invalid type: string is not a percentage");
  const percent = partition.slice(0, -1);
  if (FLOAT.test(percent)) return Number(percent) / 100;
  return new Refusal(
    `invalid value ${quote(partition)}: strconv.ParseFloat: parsing ${quote(percent)}: invalid syntax`,
  );
}

/** Policy Partial: true for a pod beyond the current progress of the rollout. */
function getsSpecified(sidecarSet: SidecarSet, { podLabels, random }: RevisionChoice): boolean | Refusal {
  const { selector } = sidecarSet.spec.updateStrategy ?? {};
  if (selector) {
    const matched = selectorMatches(selector, podLabels);
    if (typeof matched !== "boolean") return new Refusal(matched.message);
    if (!matched) return true;
  }
  const share = specifiedShare(sidecarSet);
  return share instanceof Refusal ? share : random() < share;
}

/** The SidecarSet to inject: the current one, or one of its revisions. */
export function chooseRevision(sidecarSet: SidecarSet, choice: RevisionChoice): SidecarSet | Refusal {
  const wanted = wantedRevision(sidecarSet);
  if (wanted === undefined) return sidecarSet;
  const revision = findRevision(wanted, choice);
  if (revision instanceof Refusal) return revision;
  const specified = restoreRevision(sidecarSet, revision);
  if (specified.kind === "DecodeError") return new Refusal(specified.message);
  const { injectionStrategy, updateStrategy } = sidecarSet.spec;
  if (updateStrategy?.paused || injectionStrategy?.revision?.policy !== "Partial") return specified.value;
  const isSpecified = getsSpecified(sidecarSet, choice);
  if (isSpecified instanceof Refusal) return isSpecified;
  return isSpecified ? specified.value : sidecarSet;
}
