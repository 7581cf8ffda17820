/** A cluster with one SidecarSet and any number of ready pods. It reports the calls that it got. */

import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { mapLimited } from "../../../shared/controller/loop/concurrency-limit.ts";
import { listAll } from "../../../shared/controller/rollout/observe-pods.ts";
import { withSpecImages } from "../../../shared/core/pod/image-alias.ts";
import { mutateSidecarSet } from "../../../shared/core/sidecarset/mutate.ts";
import { sidecarSetCrd } from "../../../shared/install/crd/sidecarset-crd.ts";
import { PODS, SIDECARSETS } from "../../../shared/kube/port.ts";
import { until } from "../../e2e/support/until.ts";
import { rolloutPod, sidecarSetRequest } from "../fixture.ts";
import { answerCalls } from "../process/answer-calls.ts";
import { type Calls, type ClusterAddress, embeddedGround, type Ground, type TightLevel } from "./ground.ts";
import { realGround } from "./real-ground.ts";

/** The number of calls of one user agent. */
export interface Asked {
  readonly calls: Calls;
  /** number of writes of the SidecarSet's status */
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
const POLL_MS = 200;

let ground: Ground;
let pods = 0;

/** Returns the SidecarSet with the webhook's defaults. */
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

async function start(where: "embedded" | "real"): Promise<ClusterAddress> {
  ground = await (where === "real" ? realGround() : embeddedGround());
  const { client, address } = ground;
  const definition = sidecarSetCrd({ url: "https://webhooks.invalid", caBundle: "" });
  await client.create(DEFINITIONS, { ...definition, spec: { ...definition.spec, conversion: { strategy: "None" } } });
  await until("SidecarSets are known", async () => Boolean(await client.list(SIDECARSETS, {})));
  await client.create(SIDECARSETS, sidecarSetOf("fluent/fluent-bit:4.0.0"));
  return address;
}

async function readSet(): Promise<SidecarSet> {
  return await ground.client.get<SidecarSet>(SIDECARSETS, { name: SIDECARSET });
}

/** Returns a pod with the SidecarSet's present sidecars. */
function podOf(index: number, set: SidecarSet): Pod {
  const { metadata, spec } = rolloutPod(index, set);
  const { uid: _, resourceVersion: __, creationTimestamp: ___, generateName: ____, ...given } = metadata ?? {};
  const hash = set.metadata?.annotations?.["kruise.io/sidecarset-hash"] ?? "";
  const record = metadata?.annotations?.["kruise.io/sidecarset-hash"]?.replace("another", hash) ?? "";
  const image = set.spec.containers?.[0]?.image ?? "";
  const mountless = spec.containers.map((container) => ground.containerOf({ ...container, volumeMounts: [] }));
  const nodeName = ground.nodes[index % ground.nodes.length];
  const containers = mountless.map((container, at) => (at === 1 ? { ...container, image } : container));
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...given, annotations: { ...given.annotations, "kruise.io/sidecarset-hash": record } },
    spec: { containers, ...(nodeName === undefined ? {} : { nodeName }) },
  } as unknown as Pod;
}

/** Counts the pods for which `see` returns true. */
async function look(see: (pod: Pod) => boolean): Promise<number> {
  const { items } = await listAll<Pod, boolean>(ground.client, PODS, { namespace: "shop" }, see);
  return items.filter(Boolean).length;
}

/** True if the pod runs the images of its spec. */
function isSettled(pod: Pod): boolean {
  const { spec, status } = withSpecImages(pod);
  const images = new Map(status?.containerStatuses?.map(({ name, image }) => [name, image]));
  const isReady = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") === true;
  return isReady && spec.containers.every(({ name, image }) => images.get(name) === image);
}

/** Adds pods, and resolves when `wanted` pods are ready. */
async function grow(wanted: number): Promise<void> {
  const set = await readSet();
  const missing = Array.from({ length: wanted - pods }, (_, index) => pods + index);
  await mapLimited(missing, CREATED_AT_ONCE, (index) => ground.client.create(PODS, podOf(index, set)));
  pods = wanted;
  await settle();
}

async function settle(): Promise<void> {
  while ((await look(isSettled)) < pods) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

/** Writes a new image, as our webhook stores a user's edit. */
async function change(image: string): Promise<void> {
  const { metadata, spec } = sidecarSetOf(image);
  const body = { metadata: { annotations: metadata?.annotations }, spec };
  await ground.client.patch(SIDECARSETS, { name: SIDECARSET }, { type: "merge", body });
}

async function asked(userAgent: string): Promise<Asked> {
  const calls = await ground.callsOf(userAgent);
  const image = (await readSet()).spec.containers?.[0]?.image;
  const updated = await look(({ spec }) => spec.containers.some((container) => container.image === image));
  return { calls, statusWrites: calls["PATCH sidecarsets/status"] ?? 0, updated };
}

const tighten = (level: TightLevel) => ground.tighten(level);
const close = () => ground.close();

answerCalls({ start, grow, settle, change, asked, tighten, close });
