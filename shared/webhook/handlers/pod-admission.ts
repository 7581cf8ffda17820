/** The pod webhook: what the decision needs of the cluster, and no more of it than this pod needs. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { ControllerRevision } from "../../api/kubernetes.ts";
import { NAMESPACE_NAME_LABEL } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import {
  admitPod,
  asCreated,
  type CreatedPod,
  namespaceLabelsWanted,
  revisionsWanted,
} from "../../core/injection/admit-pod.ts";
import type { SidecarSetIndex } from "../../core/injection/match/sidecarset-index.ts";
import { isControlledBy, type RevisionWanted } from "../../core/sidecarset/revision/wanted-revision.ts";
import type { FeatureGates } from "../../settings/feature-gates.ts";
import { secondText } from "../../time-text.ts";
import { warnOfReplaced } from "../review/admission-warnings.ts";
import type { Admit } from "../review/app.ts";
import type { ClusterView } from "../view/cluster-view.ts";
import { Staleness } from "../view/fresh.ts";

export interface PodAdmissionOptions {
  readonly view: ClusterView;
  readonly kruiseNamespace: string;
  readonly featureGates: FeatureGates;
}

type Listed = Awaited<ReturnType<ClusterView["listSidecarSets"]>>;
type Found = Awaited<ReturnType<ClusterView["getNamespace"]>>;
type FoundRevisions = Awaited<ReturnType<ClusterView["findRevisions"]>>;
type Decided = ReturnType<Admit>;

const NONE: readonly ControllerRevision[] = [];

/**
 * The namespace when no SidecarSet reads its labels: the first request then needs one connection, and later ones one
 * call less.
 */
const NOT_NEEDED: Found = { value: undefined };

/**
 * Answers synchronously when nothing has to be read, which is the usual case. Rejects with KubeError when the cluster
 * cannot be read and the known state is too old.
 */
export function podAdmission({ view, kruiseNamespace, featureGates: gates }: PodAdmissionOptions): Admit {
  /** Makes the decision, or first reads what is missing. */
  const decide = (created: CreatedPod, listed: Listed, found?: Found, read?: readonly FoundRevisions[]): Decided => {
    const { request, admissionOf } = created;
    const near = found ?? namespaceWanted(request, listed.value.index, view);
    if (near instanceof Promise) return near.then((namespace) => decide(created, listed, namespace));
    const staleness = new Staleness();
    const { index, sidecarSets } = staleness.note("SidecarSets", listed);
    const namespace = staleness.note("the Namespace", near);
    const wanted = revisionsWanted(request, index, namespace);
    if (read === undefined && wanted.length > 0)
      return Promise.all(wanted.map(view.findRevisions)).then((all) => decide(created, listed, near, all));
    // One pod's revision is not shared with others: two pods may name the same revision for different SidecarSets.
    const own = new Map(
      read?.map((one, at) => [
        wanted[at]?.sidecarSet,
        ownRevisions(wanted[at], sidecarSets, staleness.note("ControllerRevisions", one)),
      ]),
    );
    const context = { now: secondText(Date.now()), random: Math.random, kruiseNamespace, gates };
    const revisionsOf = (sidecarSet: string) => own.get(sidecarSet) ?? NONE;
    const decided = admitPod(request, { index, namespace, revisions: NONE, revisionsOf }, context);
    return staleness.warn(admissionOf(warnOfReplaced(request, decided)));
  };
  return (request) => {
    const created = asCreated(request);
    const listed = view.listSidecarSets();
    return listed instanceof Promise ? listed.then((read) => decide(created, read)) : decide(created, listed);
  };
}

/** Filters revisions by owner: the right to write ControllerRevisions alone must not decide what pods get. */
function ownRevisions(
  wanted: RevisionWanted | undefined,
  sidecarSets: readonly SidecarSet[],
  revisions: readonly ControllerRevision[],
): readonly ControllerRevision[] {
  const owner = sidecarSets.find(({ metadata }) => metadata?.name === wanted?.sidecarSet);
  return owner === undefined ? [] : revisions.filter((revision) => isControlledBy(revision, owner));
}

/**
 * Reads the pod's Namespace if SidecarSets that may match read its labels; the result is never older than the pod. Most
 * of them need only its name.
 */
function namespaceWanted(request: AdmissionRequest, index: SidecarSetIndex, { getNamespace }: ClusterView) {
  const name = namespaceOf(request);
  switch (namespaceLabelsWanted(index, name, request.object?.metadata?.labels)) {
    case "none":
      return NOT_NEEDED;
    case "name":
      return { value: { metadata: { name, labels: { [NAMESPACE_NAME_LABEL]: name } } } };
    case "all":
      return getNamespace(name);
  }
}

function namespaceOf({ object, namespace }: AdmissionRequest): string {
  const own: unknown = object?.metadata?.namespace;
  return typeof own === "string" && own !== "" ? own : namespace || "default";
}
