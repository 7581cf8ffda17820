/** Reads an Advanced StatefulSet's facts, as a pass does. */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { systemClock } from "../../../shared/controller/loop/clock.ts";
import { SET_LEASE } from "../../../shared/controller/loop/lease.ts";
import { listAll } from "../../../shared/controller/rollout/observe-pods.ts";
import {
  observationOf,
  observeSet,
  type SetContext,
  type SetKey,
  type SetSnapshot,
  seeReserved,
  setSubject,
} from "../../../shared/controller/statefulset/observe.ts";
import { newSetTally } from "../../../shared/controller/statefulset/report.ts";
import { reconcileLedger } from "../../../shared/core/ledger.ts";
import type { SetExplanationFacts } from "../../../shared/core/statefulset/explain/trace-pod.ts";
import { planSet } from "../../../shared/core/statefulset/plan/simulated-world.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, type Resource, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { readConfig } from "../../../shared/settings/config.ts";
import { CliError } from "../../terminal/screen.ts";
import { readLastPass, SET_KIND, type SetTarget } from "../input/read-set.ts";
import type { Session } from "../session.ts";

const BUILT_IN: Resource = { group: "apps", version: "v1", plural: "statefulsets", namespaced: true };

export interface AdvancedStatefulSet extends SetExplanationFacts {
  readonly key: SetKey;
  readonly set: StatefulSet;
  readonly snapshot: SetSnapshot;
}

export async function keyOf(session: Session, { name, namespace }: SetTarget): Promise<SetKey> {
  return { namespace: namespace ?? (await session.namespace()), name };
}

/** The facts of the set with this name. @throws CliError if there is none; the error names the existing sets */
export async function readSetNamed(cluster: Cluster, key: SetKey): Promise<StatefulSet> {
  try {
    return await cluster.get<StatefulSet>(STATEFUL_SETS, key);
  } catch (error) {
    if (!isKubeError(error, 404)) throw error;
    throw await missing(cluster, key);
  }
}

async function missing(cluster: Cluster, { namespace, name }: SetKey): Promise<CliError> {
  const there = await listStatefulSets(cluster, namespace);
  const what = `there is no ${SET_KIND} ${name} in the namespace ${namespace}`;
  if (await isBuiltIn(cluster, { namespace, name }))
    return new CliError(
      `${what}, but a StatefulSet of apps/v1: its own controller runs it, and kubectl rollout is for it`,
    );
  const names = there.map(({ metadata }) => metadata?.name ?? "").slice(0, 5);
  const others = names.length === 0 ? "there is none" : `there are ${names.join(", ")}`;
  return new CliError(`${what}, ${others}; choose another namespace with -n`);
}

/** True if apps/v1 has a StatefulSet with this key. Without the right to read it the answer is false. */
async function isBuiltIn(cluster: Cluster, key: SetKey): Promise<boolean> {
  try {
    await cluster.get<KubernetesObject>(BUILT_IN, key);
    return true;
  } catch (error) {
    if (isKubeError(error, 403, 404)) return false;
    throw error;
  }
}

/** Lists the Advanced StatefulSets. @throws CliError if the cluster has no such kind */
export async function listStatefulSets(cluster: Cluster, namespace: string): Promise<readonly StatefulSet[]> {
  try {
    const { items } = await listAll<StatefulSet, StatefulSet>(cluster, STATEFUL_SETS, { namespace }, (one) => one);
    return items;
  } catch (error) {
    if (!isKubeError(error, 404)) throw error;
    throw new CliError(
      `the cluster knows no StatefulSets of apps.kruise.io; kubectl apply -f infra/crd/statefulsets.yaml makes it`,
    );
  }
}

/** Reads an Advanced StatefulSet. @throws CliError if it does not exist */
export async function readStatefulSet(
  session: Session,
  cluster: Cluster,
  target: SetTarget,
): Promise<AdvancedStatefulSet> {
  const key = await keyOf(session, target);
  await readSetNamed(cluster, key);
  const found = await findStatefulSet(session, cluster, key);
  if (found) return found;
  throw new CliError(`${SET_KIND} ${key.name} has just been deleted; look again`);
}

/** The Advanced StatefulSet; undefined: it does not exist. */
export async function findStatefulSet(
  session: Session,
  cluster: Cluster,
  key: SetKey,
): Promise<AdvancedStatefulSet | undefined> {
  const { featureGates: gates } = readConfig();
  const context: SetContext = { cluster, clock: systemClock, gates, key, tally: newSetTally(), recorded: new Set() };
  const snapshot = await observeSet(context, true);
  if (!snapshot) return undefined;
  const reserved = await seeReserved(context, snapshot);
  const kept = reconcileLedger(snapshot.stored.ledger, reserved, setSubject(snapshot.set))?.kept ?? [];
  const seen = observationOf(context, snapshot, new Set(kept.map(({ uid }) => uid)));
  const lastPass = await readLastPass(cluster, session.kruiseNamespace, SET_LEASE);
  return { key, set: snapshot.set, snapshot, seen, plan: planSet(seen, snapshot), lastPass };
}
