/** The pod webhook: what the decision needs of the cluster, and no more of it than this pod needs. */
import type { AdmissionRequest } from "../api/admission.ts";
import type { FeatureGates } from "../config.ts";
import { admitPod, revisionsWanted } from "../core/admit-pod.ts";
import type { Admit } from "./app.ts";
import type { ClusterView } from "./cluster-view.ts";
import { Staleness } from "./staleness.ts";

export interface PodAdmissionOptions {
  readonly view: ClusterView;
  readonly kruiseNamespace: string;
  readonly featureGates: FeatureGates;
}

/** Rejects with KubeError when the cluster cannot be read and what is known of it is too old. */
export function podAdmission({ view, kruiseNamespace, featureGates: gates }: PodAdmissionOptions): Admit {
  return async (request) => {
    const staleness = new Staleness();
    const [{ index }, namespace] = await Promise.all([
      view.listSidecarSets().then((list) => staleness.note("SidecarSets", list)),
      view.getNamespace(namespaceOf(request)).then((found) => staleness.note("the Namespace", found)),
    ]);
    const found = await Promise.all(
      revisionsWanted(request, index, namespace).map(async (wanted) =>
        staleness.note("ControllerRevisions", await view.findRevisions(wanted)),
      ),
    );
    const now = new Date().toISOString();
    const context = { now, random: Math.random, kruiseNamespace, gates };
    return staleness.warn(admitPod(request, { index, namespace, revisions: found.flat() }, context));
  };
}

function namespaceOf({ object, namespace }: AdmissionRequest): string {
  const own: unknown = object?.metadata?.namespace;
  return typeof own === "string" && own !== "" ? own : namespace || "default";
}
