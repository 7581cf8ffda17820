/** An embedded cluster with one SidecarSet and as many ready pods as are asked for, which tells what was asked of it. */

import { sidecarSetCrd } from "../../../infra/crd/sidecarset-crd.ts";
import { type LocalCluster, startLocalCluster } from "../../../infra/local/cluster.ts";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { mapLimited } from "../../../shared/controller/concurrency.ts";
import { mutateSidecarSet } from "../../../shared/core/admit-sidecarset.ts";
import { connectCluster } from "../../../shared/kube/client.ts";
import { type Cluster, NAMESPACES, PODS, SIDECARSETS } from "../../../shared/kube/port.ts";
import { rolloutPod, sidecarSetRequest } from "../fixture.ts";
import { answerCalls } from "../process/answer-calls.ts";

export interface ClusterAddress {
  readonly server: string;
  /** PEM */
  readonly certificateAuthority: string;
  readonly bearerToken: string;
}

/** What was done to the cluster by one user agent. */
export interface Asked {
  /** "PATCH pods": 12 */
  readonly calls: Readonly<Record<string, number>>;
  /** of the SidecarSet's status */
  readonly statusWrites: number;
  readonly updated: number;
}

export const SIDECARSET = "log-agent";
const DEFINITIONS = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};
const CREATED_AT_ONCE = 16;
const POLL_MS = 50;

let local: LocalCluster;
let client: Cluster;
let pods = 0;

/** As the webhook would leave it. */
function sidecarSetOf(image: string): SidecarSet {
  const request = sidecarSetRequest(SIDECARSET, "web");
  const { spec } = request.object as SidecarSet;
  const containers = (spec.containers ?? []).map((container) => ({ ...container, image }));
  const updateStrategy = { maxUnavailable: "100%" };
  const object = { ...request.object, spec: { ...spec, containers, updateStrategy } } as KubernetesObject;
  const admission = mutateSidecarSet({ ...request, object });
  if (admission.kind === "allowed" && admission.object !== undefined) return admission.object as SidecarSet;
  throw new Error("the SidecarSet is refused");
}

async function start(): Promise<ClusterAddress> {
  local = await startLocalCluster({ startDelayMs: 20, readyDelayMs: 20, historyLimit: 200_000 });
  const { url: server, caCertificate: certificateAuthority, token: bearerToken } = local;
  client = connectCluster({ server, certificateAuthority, token: async () => bearerToken, userAgent: "stage" });
  const definition = sidecarSetCrd({ url: "https://webhooks.invalid", caBundle: "" });
  await client.create(DEFINITIONS, { ...definition, spec: { ...definition.spec, conversion: { strategy: "None" } } });
  for (const name of ["kruise-system", "shop"]) await client.create(NAMESPACES, { metadata: { name } });
  await client.create(SIDECARSETS, sidecarSetOf("fluent/fluent-bit:4.0.0"));
  return { server, certificateAuthority, bearerToken };
}

async function readSet(): Promise<SidecarSet> {
  return await client.get<SidecarSet>(SIDECARSETS, { name: SIDECARSET });
}

/** Injected with what the SidecarSet says now. */
function podOf(index: number, set: SidecarSet): Pod {
  const { metadata, spec } = rolloutPod(index, set);
  const { uid: _, resourceVersion: __, creationTimestamp: ___, generateName: ____, ...given } = metadata ?? {};
  const hash = set.metadata?.annotations?.["kruise.io/sidecarset-hash"] ?? "";
  const record = metadata?.annotations?.["kruise.io/sidecarset-hash"]?.replace("another", hash) ?? "";
  const [app, agent] = spec.containers;
  const image = set.spec.containers?.[0]?.image ?? "";
  const mountless = [app, agent].map((container) => ({ ...container, volumeMounts: [], image: container?.image }));
  const containers = mountless.map((container, at) => (at === 1 ? { ...container, image } : container));
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...given, annotations: { ...given.annotations, "kruise.io/sidecarset-hash": record } },
    spec: { containers },
  } as unknown as Pod;
}

async function readyPods(): Promise<number> {
  const { items } = await client.list<Pod>(PODS, { namespace: "shop" });
  return items.filter(({ status }) =>
    status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True"),
  ).length;
}

/** Resolves when all of them are ready. */
async function grow(wanted: number): Promise<void> {
  const set = await readSet();
  const missing = Array.from({ length: wanted - pods }, (_, index) => pods + index);
  await mapLimited(missing, CREATED_AT_ONCE, (index) => client.create(PODS, podOf(index, set)));
  pods = wanted;
  await settle();
}

async function settle(): Promise<void> {
  while ((await readyPods()) < pods) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

/** A new image, as a user's edit leaves it behind our webhook. */
async function change(image: string): Promise<void> {
  const { metadata, spec } = sidecarSetOf(image);
  const body = { metadata: { annotations: metadata?.annotations }, spec };
  await client.patch(SIDECARSETS, { name: SIDECARSET }, { type: "merge", body });
}

async function asked(userAgent: string): Promise<Asked> {
  const calls = local.apiCalls(userAgent);
  const image = (await readSet()).spec.containers?.[0]?.image;
  const { items } = await client.list<Pod>(PODS, { namespace: "shop" });
  const updated = items.filter(({ spec }) => spec.containers.some((container) => container.image === image)).length;
  return { calls, statusWrites: calls["PATCH sidecarsets/status"] ?? 0, updated };
}

answerCalls({ start, grow, settle, change, asked });
