/** An Advanced StatefulSet out of a file, as the webhook would have it stored: with defaults, and valid. */
import type { AdmissionRequest } from "../../../shared/api/admission.ts";
import { SIDECARSET_V1BETA1, STATEFUL_SET_KIND } from "../../../shared/api/names.ts";
import type { StatefulSet, StorageClass } from "../../../shared/api/stateful-set.ts";
import { listAll } from "../../../shared/controller/rollout/observe-pods.ts";
import { mutateStatefulSet } from "../../../shared/core/statefulset/mutate.ts";
import { validateStatefulSet } from "../../../shared/core/statefulset/validate.ts";
import { type Cluster, STORAGE_CLASSES } from "../../../shared/kube/port.ts";
import { readConfig } from "../../../shared/settings/config.ts";
import { CliError } from "../../terminal/error.ts";
import { type ReadObject, readObjects } from "../../terminal/read-objects.ts";
import { SET_KIND } from "../input/target.ts";

/** As it would be stored in the place of `before`; undefined: no file was given. @throws CliError */
export async function readGivenStatefulSet(
  files: readonly string[],
  before: StatefulSet,
  cluster: Cluster,
): Promise<StatefulSet | undefined> {
  if (files.length === 0) return undefined;
  const { name, namespace } = before.metadata ?? {};
  const found = (await readObjects(files)).filter(({ object: { kind } }) => kind === STATEFUL_SET_KIND);
  const [only, second] = found.filter(({ object: { metadata } }) => metadata?.name === name);
  if (only === undefined) {
    const others = found.map(({ object }) => object.metadata?.name ?? "(no name)").join(", ");
    throw new CliError(`${files.join(", ")}: no ${SET_KIND} ${name} in there${others ? `, but ${others}` : ""}`);
  }
  const { object, place } = only;
  if (second !== undefined) throw new CliError(`${second.place}: StatefulSet ${name} is given twice; leave one out`);
  if (object.apiVersion !== SIDECARSET_V1BETA1)
    throw new CliError(
      `${place}: it is a StatefulSet of ${object.apiVersion}; write apiVersion: ${SIDECARSET_V1BETA1}`,
    );
  if ((object.metadata?.namespace ?? namespace) !== namespace)
    throw new CliError(
      `${place}: it is for the namespace ${object.metadata?.namespace}, not ${namespace}; choose with -n`,
    );
  return await stored(only, before, cluster);
}

async function stored({ object, place }: ReadObject, before: StatefulSet, cluster: Cluster): Promise<StatefulSet> {
  const { featureGates: gates } = readConfig();
  // What an API server fills in on an update.
  const { uid, name, namespace, creationTimestamp, generation, resourceVersion } = before.metadata ?? {};
  const own = { uid, name, namespace, creationTimestamp, generation, resourceVersion };
  const metadata = { ...object.metadata, ...own };
  const mutated = mutateStatefulSet(requestOf({ ...object, metadata } as StatefulSet, before), gates);
  if (mutated.kind === "denied") throw new CliError(`${place}: ${mutated.message}; correct it there`);
  const set = (mutated.object ?? { ...object, metadata }) as StatefulSet;
  const storageClasses = gates.StatefulSetAutoResizePVCGate ? await listClasses(cluster) : [];
  const validated = validateStatefulSet(requestOf(set, before), { gates, storageClasses });
  if (validated.kind === "denied") throw new CliError(`${place}: ${validated.message}; correct it there`);
  return set;
}

function requestOf(object: StatefulSet, oldObject: StatefulSet): AdmissionRequest {
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "statefulsets" };
  return { uid: "plan", resource, operation: "UPDATE", object, oldObject };
}

async function listClasses(cluster: Cluster): Promise<readonly StorageClass[]> {
  return (await listAll<StorageClass, StorageClass>(cluster, STORAGE_CLASSES, {}, (one) => one)).items;
}
