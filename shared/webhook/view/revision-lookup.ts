/** Finds the ControllerRevision that a SidecarSet's injectionStrategy names. */
import type { ControllerRevision } from "../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, SIDECARSET_NAME_LABEL } from "../../api/names.ts";
import type { RevisionWanted } from "../../core/sidecarset/revision/wanted-revision.ts";
import { isKubeError } from "../../kube/error.ts";
import { type Cluster, CONTROLLER_REVISIONS } from "../../kube/port.ts";

/** The revision; empty if no revision has the name or version. */
export async function lookUpRevision(
  cluster: Cluster,
  namespace: string,
  { sidecarSet, revisionName, customVersion }: RevisionWanted,
): Promise<readonly ControllerRevision[]> {
  if (revisionName !== undefined) return getByName(cluster, namespace, revisionName);
  if (customVersion === undefined || !isLabelValue(sidecarSet) || !isLabelValue(customVersion)) return [];
  const labelSelector = `${SIDECARSET_NAME_LABEL}=${sidecarSet},${CUSTOM_VERSION_LABEL}=${customVersion}`;
  return (await cluster.list<ControllerRevision>(CONTROLLER_REVISIONS, { namespace, labelSelector })).items;
}

async function getByName(cluster: Cluster, namespace: string, name: string): Promise<readonly ControllerRevision[]> {
  if (name === "") return [];
  try {
    return [await cluster.get<ControllerRevision>(CONTROLLER_REVISIONS, { namespace, name })];
  } catch (error) {
    if (isKubeError(error, 404)) return [];
    throw error;
  }
}

/** True for the value of a label: other text from a user would change the selector's meaning. */
function isLabelValue(text: string): boolean {
  return text.length <= 63 && /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/.test(text);
}
