/** Validating webhooks: SidecarSets, beside those of the cluster, then Advanced StatefulSets and ContainerRecreateRequests. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { KubernetesObject, Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { StatefulSet, StorageClass } from "../../api/stateful-set.ts";
import type { Admission } from "../../core/admission/admission.ts";
import { admitContainerRecreateRequest, podWanted } from "../../core/container-recreate/admit.ts";
import { validateSidecarSet } from "../../core/rollout/validate-sidecarset.ts";
import { wantedRevision } from "../../core/sidecarset/revision/wanted-revision.ts";
import { whyLeftAlone } from "../../core/statefulset/pods/ordinals.ts";
import { validateStatefulSet } from "../../core/statefulset/validate.ts";
import { ifThere } from "../../kube/error.ts";
import { type Cluster, NODES, PODS, STORAGE_CLASSES } from "../../kube/port.ts";
import type { FeatureGates } from "../../settings/feature-gates.ts";
import { warnOfSharing, withWarnings } from "../review/admission-warnings.ts";
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

// The validating webhook for Advanced StatefulSets: reads StorageClasses where claims may grow, and else nothing.

export interface StatefulSetValidationOptions {
  readonly connect: () => Promise<Cluster>;
  readonly featureGates: FeatureGates;
}

/** Rejects with KubeError when StorageClasses are needed and cannot be read. */
export function statefulSetValidation({ connect, featureGates: gates }: StatefulSetValidationOptions): Admit {
  return async (request) => {
    const isNeeded = gates.StatefulSetAutoResizePVCGate && isUpdate(request);
    const storageClasses = isNeeded ? (await (await connect()).list<StorageClass>(STORAGE_CLASSES)).items : [];
    return warnOfTooLarge(request, validateStatefulSet(request, { gates, storageClasses }), gates);
  };
}

function warnOfTooLarge({ object }: AdmissionRequest, admission: Admission, gates: FeatureGates): Admission {
  if (admission.kind === "denied" || !object) return admission;
  // An allowed set could be decoded.
  const problem = whyLeftAlone((object as StatefulSet).spec, gates.StatefulSetStartOrdinal);
  return withWarnings(admission, problem === undefined ? [] : [problem]);
}

function isUpdate({ operation }: AdmissionRequest): boolean {
  return operation === "UPDATE";
}

// The webhook of ContainerRecreateRequests: reads the pod that a new one names, and that pod's node, as they are now.

interface RecreateAdmissionOptions {
  readonly connect: () => Promise<Cluster>;
  readonly featureGates: FeatureGates;
}

/** Rejects with KubeError when the cluster cannot be read. */
export function containerRecreateAdmission({ connect, featureGates: gates }: RecreateAdmissionOptions): Admit {
  return async (request) => {
    const wanted = gates.KruiseDaemon ? podWanted(request) : undefined;
    if (!wanted) return admitContainerRecreateRequest(request, { gates });
    const cluster = await connect();
    const pod = await ifThere(cluster.get<Pod>(PODS, wanted));
    const name = pod?.spec.nodeName;
    const node = name ? await ifThere(cluster.get<KubernetesObject>(NODES, { name })) : undefined;
    return admitContainerRecreateRequest(request, { pod, node, gates });
  };
}
