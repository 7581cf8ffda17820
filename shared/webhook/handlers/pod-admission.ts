/** The pod webhook: what the decision needs of the cluster, and no more of it than this pod needs. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { ControllerRevision } from "../../api/kubernetes.ts";
import { NAMESPACE_NAME_LABEL } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { admitPod, revisionsWanted } from "../../core/injection/admit-pod.ts";
import { asCreated, type CreatedPod } from "../../core/injection/as-created.ts";
import { namespaceLabelsWanted } from "../../core/injection/match/namespace-labels.ts";
import type { SidecarSetIndex } from "../../core/injection/match/sidecarset-index.ts";
import { isControlledBy } from "../../core/sidecarset/revision/is-controlled-by.ts";
import type { RevisionWanted } from "../../core/sidecarset/revision/wanted-revision.ts";
import type { FeatureGates } from "../../settings/feature-gates.ts";
import { secondText } from "../../time-text.ts";
import { warnOfReplaced } from "../review/admission-warnings.ts";
import type { Admit } from "../review/app.ts";
import type { ClusterView } from "../view/cluster-view.ts";
import { Staleness } from "../view/staleness.ts";

export interface PodAdmissionOptions {
  readonly view: ClusterView;
  readonly kruiseNamespace: string;
  readonly featureGates: FeatureGates;
}

type Listed = Awaited<ReturnType<ClusterView["listSidecarSets"]>>;
type Found = Awaited<ReturnType<ClusterView["getNamespace"]>>;

const NONE: readonly ControllerRevision[] = [];

/** Where no SidecarSet looks at namespaces: a first request then needs one connection, and later ones one call less. */
const NOT_NEEDED: Found = { value: undefined };

/**
 * Decides at once where nothing has to be read, which is what most pods find. Rejects with KubeError when the cluster
 * cannot be read and what is known of it is too old.
 */
export function podAdmission({ view, kruiseNamespace, featureGates: gates }: PodAdmissionOptions): Admit {
  const decide = ({ request, admissionOf }: CreatedPod, listed: Listed, found: Found) => {
    const staleness = new Staleness();
    const { index } = staleness.note("SidecarSets", listed);
    const namespace = staleness.note("the Namespace", found);
    const admit = (revisionsOf: (sidecarSet: string) => readonly ControllerRevision[]) => {
      const context = { now: secondText(Date.now()), random: Math.random, kruiseNamespace, gates };
      const decided = admitPod(request, { index, namespace, revisions: NONE, revisionsOf }, context);
      return staleness.warn(admissionOf(warnOfReplaced(request, decided)));
    };
    const wanted = revisionsWanted(request, index, namespace);
    if (wanted.length === 0) return admit(() => NONE);
    return Promise.all(wanted.map(view.findRevisions)).then((all) => {
      const { sidecarSets } = listed.value;
      const found = all.map((revisions) => staleness.note("ControllerRevisions", revisions));
      // What one has found is nobody else's: two may name the same, which is the revision of one of them.
      const own = new Map(
        wanted.map((one, at) => [one.sidecarSet, revisionsOf(one, sidecarSets, found[at] ?? NONE)] as const),
      );
      return admit((sidecarSet) => own.get(sidecarSet) ?? NONE);
    });
  };
  const decideOn = (created: CreatedPod, listed: Listed) => {
    const found = namespaceWanted(created.request, listed.value.index, view);
    if (found instanceof Promise) return found.then((read) => decide(created, listed, read));
    return decide(created, listed, found);
  };
  return (request) => {
    const created = asCreated(request);
    const listed = view.listSidecarSets();
    return listed instanceof Promise ? listed.then((read) => decideOn(created, read)) : decideOn(created, listed);
  };
}

/** Whoever may write ControllerRevisions, but no SidecarSets, has no say about what pods get. */
function revisionsOf(
  wanted: RevisionWanted | undefined,
  sidecarSets: readonly SidecarSet[],
  revisions: readonly ControllerRevision[],
): readonly ControllerRevision[] {
  const owner = sidecarSets.find(({ metadata }) => metadata?.name === wanted?.sidecarSet);
  return owner === undefined ? [] : revisions.filter((revision) => isControlledBy(revision, owner));
}

/**
 * Where SidecarSets that may match look at labels of the pod's Namespace it is read, and what they see is never older
 * than the pod. Its name is all that most of them look at.
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
