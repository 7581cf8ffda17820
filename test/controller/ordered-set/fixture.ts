/** Creates ordered sets, their pods and their histories on the embedded cluster. */

import { type LocalCluster, startLocalCluster } from "../../../infra/local/cluster.ts";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet, StatefulSetSpec } from "../../../shared/api/stateful-set.ts";
import { systemClock, timestamp } from "../../../shared/controller/loop/clock.ts";
import { runSetPass, type SetPassOptions } from "../../../shared/controller/statefulset/pass.ts";
import type { SetPassReport, SetReport } from "../../../shared/controller/statefulset/report.ts";
import { parsePodName } from "../../../shared/core/pod/workload.ts";
import { defaultSet } from "../../../shared/core/statefulset/mutate.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import { decodeGo } from "../../../shared/go/types/decode-go.ts";
import { STATEFUL_SET } from "../../../shared/go/types/stateful-set.ts";
import { statefulSetCrd } from "../../../shared/install/crd/stateful-set-crd.ts";
import { connectCluster } from "../../../shared/kube/client.ts";
import { type Cluster, NAMESPACES, PODS, type Resource, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { running } from "../bare-rollout.ts";

export const NAMESPACE = "shop";
const KRUISE_NAMESPACE = "kruise-system";
const DEFINITIONS: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};

export interface SetCluster {
  readonly cluster: Cluster;
  readonly local: LocalCluster;
}

/** Starts a cluster without webhooks; the fixtures have the form that webhooks store. */
export async function startSetCluster(kubelet = { startDelayMs: 5, readyDelayMs: 5 }): Promise<SetCluster> {
  const local = await startLocalCluster(kubelet);
  const { url: server, caCertificate: certificateAuthority, token } = local;
  const cluster = connectCluster({ server, certificateAuthority, token: async () => token });
  await cluster.create(DEFINITIONS, statefulSetCrd());
  for (const name of [KRUISE_NAMESPACE, NAMESPACE]) await cluster.create(NAMESPACES, { metadata: { name } });
  return { cluster, local };
}

export function template(name: string, image = "app:1") {
  return { metadata: { labels: { app: name } }, spec: { containers: [{ name: "main", image }] } };
}

/** Returns a set with the webhook's defaults. */
function orderedSet(name: string, spec: StatefulSetSpec): StatefulSet {
  const given = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "StatefulSet",
    metadata: { name, namespace: NAMESPACE },
    spec: { selector: { matchLabels: { app: name } }, serviceName: name, template: template(name), ...spec },
  };
  const decoded = decodeGo(STATEFUL_SET, given);
  if (decoded.kind === "DecodeError") throw new Error(decoded.message);
  const { status: _, ...set } = defaultSet(decoded.value as StatefulSet, DEFAULT_STATEFUL_SET_FEATURE_GATES, true);
  return set as StatefulSet;
}

export async function createSet(cluster: Cluster, name: string, spec: StatefulSetSpec): Promise<void> {
  await cluster.create(STATEFUL_SETS, orderedSet(name, spec));
}

export const keyOf = (name: string) => ({ namespace: NAMESPACE, name });

export async function patchSpec(cluster: Cluster, name: string, spec: object): Promise<void> {
  await cluster.patch(STATEFUL_SETS, keyOf(name), { type: "merge", body: { spec } });
}

export const readSet = (cluster: Cluster, name: string) => cluster.get<StatefulSet>(STATEFUL_SETS, keyOf(name));

/** Returns pods by ascending ordinal. */
export async function readPods(cluster: Cluster, name: string): Promise<readonly Pod[]> {
  const { items } = await cluster.list<Pod>(PODS, { namespace: NAMESPACE, labelSelector: `app=${name}` });
  return items.toSorted((a, b) => ordinal(a) - ordinal(b));
}

/** Does a kubelet's work: containers run their images, and pods with open gates become ready. */
export async function haveThemRun(cluster: Cluster, name: string): Promise<readonly Pod[]> {
  for (const pod of await readPods(cluster, name)) {
    const { conditions = [] } = pod.status ?? {};
    const isReady = (pod.spec.readinessGates ?? []).every(({ conditionType }) =>
      conditions.some(({ type, status }) => type === conditionType && status === "True"),
    );
    const { status } = running(pod, isReady);
    const at = timestamp(systemClock);
    const reported = status?.conditions?.map((condition) => ({ ...condition, lastTransitionTime: at }));
    const body = { status: { ...status, conditions: reported } };
    await cluster.patch(PODS, keyOf(pod.metadata?.name ?? ""), { type: "strategic", body }, { subresource: "status" });
  }
  return await readPods(cluster, name);
}

export function ordinal({ metadata }: KubernetesObject): number {
  return parsePodName(metadata?.name ?? "").ordinal;
}

export function images(pods: readonly Pod[]): readonly string[] {
  return pods.map(({ spec }) => spec.containers[0]?.image ?? "none");
}

export function pass(cluster: Cluster, options: Partial<SetPassOptions> = {}): Promise<SetPassReport> {
  return runSetPass(cluster, {
    deadlineMs: 30_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    gates: DEFAULT_STATEFUL_SET_FEATURE_GATES,
    follow: true,
    over: new Set(),
    ...options,
  });
}

/** Runs a pass that follows one set, to its end. */
export async function settle(
  cluster: Cluster,
  name: string,
  options: Partial<SetPassOptions> = {},
): Promise<SetReport> {
  const { sets, problems } = await pass(cluster, { set: keyOf(name), ...options });
  const [report] = sets;
  if (!report || problems.length > 0) throw new Error(`no report on ${name}: ${problems}`);
  return report;
}
