/** One scenario: a namespace, a SidecarSet that selects its pods, workloads, and what came of them. */
import { randomBytes } from "node:crypto";
import { expect, inject } from "vitest";
import { type RolloutRecord, replay } from "../../../infra/demo/summary.ts";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import type { SidecarSetReport } from "../../../shared/controller/report.ts";
import { parseUpgradeRecords } from "../../../shared/core/hash/pod-records.ts";
import {
  type Cluster,
  type JsonPatchOperation,
  NAMESPACES,
  PODS,
  type Resource,
  SIDECARSETS,
} from "../../../shared/kube/port.ts";
import { readAudit } from "./audit.ts";
import { clusterOf } from "./clients.ts";
import type { Functions } from "./functions.ts";
import { type PodHistory, recordPods } from "./pod-history.ts";

const DEPLOYMENTS: Resource = { group: "apps", version: "v1", plural: "deployments", namespaced: true };

/** Pods wait for the one that the controller manager gives every namespace. */
const SERVICE_ACCOUNTS: Resource = { group: "", version: "v1", plural: "serviceaccounts", namespaced: true };

export const APP = { name: "main", image: "nginx:1.29" };
export const SIDECAR: SidecarContainer = { name: "agent", image: "agent:v1" };

const PATIENCE = { timeout: 30_000, interval: 100 };

interface Moment {
  /** resourceVersion */
  readonly version: number;
  readonly podPatches: number;
}

export class Scene {
  readonly cluster: Cluster;
  readonly name: string;
  readonly #functions: Functions;
  readonly #history: PodHistory;

  constructor(functions: Functions) {
    this.cluster = clusterOf(inject("controlPlane"));
    this.name = `scene-${randomBytes(3).toString("hex")}`;
    this.#functions = functions;
    this.#history = recordPods(this.cluster, this.name);
  }

  /** Creates the namespace and the SidecarSet; both are called like the scene. */
  async open(spec: Partial<SidecarSetSpec> = {}): Promise<SidecarSet> {
    await this.cluster.create(NAMESPACES, { metadata: { name: this.name } });
    const account = { namespace: this.name, name: "default" };
    await expect.poll(() => this.cluster.get(SERVICE_ACCOUNTS, account).catch(() => undefined), PATIENCE).toBeDefined();
    return this.createSet(this.name, spec);
  }

  createSet(name: string, spec: Partial<SidecarSetSpec>, metadata: object = {}): Promise<SidecarSet> {
    return this.cluster.create<SidecarSet>(SIDECARSETS, {
      apiVersion: "apps.kruise.io/v1beta1",
      kind: "SidecarSet",
      metadata: { name, ...metadata },
      spec: { selector: { matchLabels: { scene: this.name } }, containers: [SIDECAR], ...spec },
    });
  }

  /** Of v1alpha1. */
  createOlderSet(name: string, spec: object): Promise<KubernetesObject> {
    const resource = { ...SIDECARSETS, version: "v1alpha1" };
    const kind = { apiVersion: "apps.kruise.io/v1alpha1", kind: "SidecarSet" };
    return this.cluster.create(resource, { ...kind, metadata: { name }, spec } as KubernetesObject);
  }

  deleteSet(name: string): Promise<void> {
    return this.cluster.delete(SIDECARSETS, { name });
  }

  createPod(name: string, spec: object = {}, labels: object = {}): Promise<Pod> {
    return this.cluster.create<Pod>(PODS, {
      metadata: { name, namespace: this.name, labels: { scene: this.name, ...labels } },
      spec: { containers: [APP], ...spec },
    } as Pod);
  }

  async deploy(replicas: number, spec: object = {}): Promise<readonly Pod[]> {
    const labels = { scene: this.name };
    await this.cluster.create(DEPLOYMENTS, {
      metadata: { name: "app", namespace: this.name },
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [APP], ...spec } },
      },
    } as KubernetesObject);
    return this.untilReady(replicas);
  }

  async pods(): Promise<readonly Pod[]> {
    return (await this.cluster.list<Pod>(PODS, { namespace: this.name })).items;
  }

  async untilReady(count: number): Promise<readonly Pod[]> {
    await expect.poll(async () => (await this.pods()).filter(isReady).length, PATIENCE).toBe(count);
    return this.pods();
  }

  patchSet(...operations: readonly JsonPatchOperation[]): Promise<SidecarSet> {
    return this.cluster.patch<SidecarSet>(SIDECARSETS, { name: this.name }, { type: "json", operations });
  }

  set(): Promise<SidecarSet> {
    return this.cluster.get<SidecarSet>(SIDECARSETS, { name: this.name });
  }

  /** What the functions said last about the SidecarSet as it is now. */
  async report(): Promise<SidecarSetReport | undefined> {
    const { metadata } = await this.set();
    const all = this.#functions.reports.flatMap(({ sidecarSets }) => sidecarSets);
    return all.findLast(({ name, generation }) => name === this.name && generation === metadata?.generation);
  }

  /** Resolves to the first report of this generation that says there is nothing left to do for now. */
  async untilSettled(): Promise<SidecarSetReport> {
    await expect.poll(async () => (await this.report())?.stop, PATIENCE).toBe("settled");
    return (await this.report()) as SidecarSetReport;
  }

  async updated(): Promise<readonly Pod[]> {
    const { metadata } = await this.set();
    const wanted = metadata?.annotations?.[HASH_ANNOTATION];
    const hashOf = ({ metadata: { annotations } = {} }: Pod) =>
      parseUpgradeRecords(annotations?.[HASH_ANNOTATION]).records[this.name]?.hash;
    return (await this.pods()).filter((pod) => hashOf(pod) === wanted);
  }

  async untilUpdated(count: number): Promise<readonly Pod[]> {
    await expect.poll(async () => (await this.updated()).filter(isReady).length, PATIENCE).toBe(count);
    return this.updated();
  }

  /** The moment that a record begins at. */
  async now(): Promise<Moment> {
    return { version: (await this.#history.versions()).at(-1)?.sequence ?? 0, podPatches: this.#podPatches() };
  }

  /** What happened to the pods since then. */
  async record(since: Moment): Promise<RolloutRecord & { readonly podPatches: number }> {
    const rollout = replay(await this.#history.versions(), since.version, [await this.set()]);
    return { ...rollout, podPatches: this.#podPatches() - since.podPatches };
  }

  /** By the reconciler, of pods themselves. */
  #podPatches(): number {
    return readAudit(inject("controlPlane").auditLog).filter(
      ({ objectRef, user, responseStatus }) =>
        objectRef?.resource === "pods" &&
        objectRef.subresource === undefined &&
        objectRef.namespace === this.name &&
        user.username.endsWith(":sidecarset-reconciler") &&
        responseStatus?.code === 200,
    ).length;
  }

  async close(): Promise<void> {
    await this.#history.close();
    await this.cluster.delete(SIDECARSETS, { name: this.name });
    await this.cluster.delete(NAMESPACES, { name: this.name });
  }
}

export function isReady(pod: Pod): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
}

/** Image of a container, by name. */
export function imageOf(pod: Pod, container: string): string | undefined {
  return pod.spec.containers.find(({ name }) => name === container)?.image;
}

export function setImage(image: string, index = 0): JsonPatchOperation {
  return { op: "replace", path: `/spec/containers/${index}/image`, value: image };
}
