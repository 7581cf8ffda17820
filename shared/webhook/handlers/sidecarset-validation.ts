/** The validating webhook for SidecarSets: reads of the cluster what this one is to be held against. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { validateSidecarSet } from "../../core/rollout/validate-sidecarset.ts";
import { wantedRevision } from "../../core/sidecarset/revision/wanted-revision.ts";
import type { FeatureGates } from "../../settings/feature-gates.ts";
import { warnOfSharing } from "../review/admission-warnings.ts";
import type { Admit } from "../review/app.ts";
import type { ClusterView } from "../view/cluster-view.ts";
import { Staleness } from "../view/fresh.ts";

export interface ValidationOptions {
  readonly view: ClusterView;
  readonly kruiseNamespace: string;
  readonly featureGates: FeatureGates;
}

const WHITELIST = "kruise-configuration";

/** Rejects with KubeError when the cluster cannot be read and the known state is too old. */
export function sidecarSetValidation({ view, kruiseNamespace, featureGates }: ValidationOptions): Admit {
  return async (request) => {
    const staleness = new Staleness();
    const [listed, controllerRevisions, configMap] = await Promise.all([
      view.listSidecarSets(),
      readRevisions(request, view, staleness),
      readWhitelist(request, view, staleness),
    ]);
    const { sidecarSets } = staleness.note("SidecarSets", listed);
    const configMaps = configMap === undefined ? [] : [configMap];
    const facts = { sidecarSets, controllerRevisions, configMaps, kruiseNamespace, featureGates };
    return staleness.warn(warnOfSharing(request, validateSidecarSet(request, facts)));
  };
}

/** The unchecked spec: any value that the request has there. */
function specOf({ object }: AdmissionRequest): Readonly<Partial<SidecarSet["spec"]>> {
  const spec: unknown = (object as Partial<SidecarSet> | null | undefined)?.spec;
  return typeof spec === "object" && spec !== null ? spec : {};
}

async function readRevisions(request: AdmissionRequest, view: ClusterView, staleness: Staleness) {
  const { injectionStrategy } = specOf(request);
  const wanted =
    typeof injectionStrategy === "object" && injectionStrategy !== null
      ? wantedRevision({ metadata: { name: request.object?.metadata?.name ?? "" }, spec: { injectionStrategy } })
      : undefined;
  return wanted === undefined ? [] : staleness.note("ControllerRevisions", await view.findRevisions(wanted));
}

async function readWhitelist(request: AdmissionRequest, view: ClusterView, staleness: Staleness) {
  if (specOf(request).patchPodMetadata === undefined) return undefined;
  return staleness.note(`the ConfigMap ${WHITELIST}`, await view.getConfigMap(WHITELIST));
}
