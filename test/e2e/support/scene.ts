/** A scenario: a namespace, a SidecarSet that selects its pods, workloads, and what became of them. */
import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import { type RolloutRecord, replay } from "../../../infra/demo/summary.ts";
import { fullName } from "../../../infra/local/kubelet/kubelet-settings.ts";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import type { SidecarSetReport } from "../../../shared/controller/rollout/report.ts";
import { parseUpgradeRecords } from "../../../shared/core/pod/pod-records.ts";
import {
  type Cluster,
  type JsonPatchOperation,
  NAMESPACES,
  PODS,
  type Resource,
  SIDECARSETS,
} from "../../../shared/kube/port.ts";
import { listedPod } from "../../support/objects.ts";
import { apiServer, controlPlane } from "./access.ts";
import { readAudit } from "./audit.ts";
import { clusterOf } from "./clients.ts";
import type { Functions } from "./functions.ts";
import { type PodHistory, recordPods } from "./pod-history.ts";
import { eventually } from "./until.ts";

export const OLDER_SIDECARSETS: Resource = { ...SIDECARSETS, version: "v1alpha1" };

const DEPLOYMENTS: Resource = { group: "apps", version: "v1", plural: "deployments", namespaced: true };

/** The controller manager creates a default account in every namespace, and pods wait for it. */
const SERVICE_ACCOUNTS: Resource = { group: "", version: "v1", plural: "serviceaccounts", namespaced: true };

export const APP = { name: "main", image: "nginx:1.29" };
export const SIDECAR: SidecarContainer = { name: "agent", image: "agent:v1" };

interface Moment {
  /** the resourceVersion */
  readonly version: number;
  readonly podPatches: number;
}

export class Scene {
  readonly cluster: Cluster;
  readonly name: string;
  readonly #functions: Functions;
  readonly #history: PodHistory;
  readonly #sets = new Set<string>();
  readonly #namespaces = new Set<string>();

  constructor(functions: Functions) {
    this.cluster = clusterOf(apiServer());
    this.name = `scene-${randomBytes(3).toString("hex")}`;
    this.#functions = functions;
    this.#history = recordPods(this.cluster, this.name);
  }

  /** Creates the namespace and the SidecarSet; both have the scene's name. */
  async open(spec: Partial<SidecarSetSpec> = {}): Promise<SidecarSet> {
    await this.createNamespace(this.name);
    return this.createSet(this.name, spec);
  }

  async createNamespace(name: string, labels: object = {}): Promise<void> {
    this.#namespaces.add(name);
    await this.cluster.create(NAMESPACES, { metadata: { name, labels } } as KubernetesObject);
    const account = { namespace: name, name: "default" };
    await eventually(
      () => this.cluster.get(SERVICE_ACCOUNTS, account),
      () => undefined,
    );
  }

  createSet(name: string, spec: Partial<SidecarSetSpec>, metadata: object = {}): Promise<SidecarSet> {
    this.#sets.add(name);
    return this.cluster.create<SidecarSet>(SIDECARSETS, {
      apiVersion: "apps.kruise.io/v1beta1",
      kind: "SidecarSet",
      metadata: { name, ...metadata },
      spec: { selector: { matchLabels: this.labels }, containers: [SIDECAR], ...spec },
    });
  }

  /** Creates a SidecarSet of v1alpha1. */
  createOlderSet(name: string, spec: object): Promise<KubernetesObject> {
    this.#sets.add(name);
    const kind = { apiVersion: "apps.kruise.io/v1alpha1", kind: "SidecarSet" };
    return this.cluster.create(OLDER_SIDECARSETS, { ...kind, metadata: { name }, spec } as KubernetesObject);
  }

  deleteSet(name: string): Promise<void> {
    return this.cluster.delete(SIDECARSETS, { name });
  }

  createPod(name: string, spec: object = {}, metadata: object = {}): Promise<Pod> {
    return this.cluster.create<Pod>(
      PODS,
      listedPod({ name, namespace: this.name, labels: this.labels, ...metadata }, { containers: [APP], ...spec }),
    );
  }

  patchPod(name: string, body: object): Promise<Pod> {
    return this.cluster.patch<Pod>(PODS, { namespace: this.name, name }, { type: "merge", body });
  }

  /** Labels of the scene's pods. */
  get labels(): Readonly<Record<string, string>> {
    return { scene: this.name };
  }

  async deploy(replicas: number, spec: object = {}): Promise<readonly Pod[]> {
    const { labels } = this;
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

  async pods(namespace = this.name): Promise<readonly Pod[]> {
    return (await this.cluster.list<Pod>(PODS, { namespace })).items;
  }

  /** Resolves with all pods after `count` of them are ready. */
  untilReady(count: number, namespace = this.name): Promise<readonly Pod[]> {
    return eventually(
      () => this.pods(namespace),
      (pods) => expect(pods.filter(isReady)).toHaveLength(count),
    );
  }

  patchSet(...operations: readonly JsonPatchOperation[]): Promise<SidecarSet> {
    return this.patchOther(this.name, ...operations);
  }

  patchOther(name: string, ...operations: readonly JsonPatchOperation[]): Promise<SidecarSet> {
    return this.cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "json", operations });
  }

  set(name = this.name): Promise<SidecarSet> {
    return this.cluster.get<SidecarSet>(SIDECARSETS, { name });
  }

  /** Returns the functions' last report about the SidecarSet's present generation. */
  async report(name = this.name): Promise<SidecarSetReport | undefined> {
    const { metadata } = await this.set(name);
    const all = this.#functions.reports.flatMap(({ sidecarSets }) => sidecarSets);
    return all.findLast((one) => one.name === name && one.generation === metadata?.generation);
  }

  /** Resolves with this generation's first report that says that all work is done for now. */
  untilSettled(name = this.name): Promise<SidecarSetReport> {
    return this.#untilReported(name, ({ stop }) => expect(stop).toBe("settled"));
  }

  /** Resolves with a report of this generation that gives this reason. */
  untilToldThat(why: RegExp): Promise<SidecarSetReport> {
    return this.#untilReported(this.name, (report) => expect(report.why).toMatch(why));
  }

  #untilReported(name: string, check: (report: SidecarSetReport) => void): Promise<SidecarSetReport> {
    const read = async () => {
      const report = await this.report(name);
      if (report === undefined) throw new Error(`there is no report on ${name} as it is now`);
      return report;
    };
    return eventually(read, check);
  }

  async updated(name = this.name, namespace = this.name): Promise<readonly Pod[]> {
    const { metadata } = await this.set(name);
    const wanted = metadata?.annotations?.[HASH_ANNOTATION];
    const hashOf = ({ metadata: { annotations } = {} }: Pod) =>
      parseUpgradeRecords(annotations?.[HASH_ANNOTATION]).records[name]?.hash;
    return (await this.pods(namespace)).filter((pod) => hashOf(pod) === wanted);
  }

  /** Resolves with the updated pods after `count` of them are updated, run their images, and are ready. */
  untilUpdated(count: number, name = this.name, namespace = this.name): Promise<readonly Pod[]> {
    return eventually(
      () => this.updated(name, namespace),
      (pods) => expect(pods.filter((pod) => isReady(pod) && runsItsImages(pod))).toHaveLength(count),
    );
  }

  /** Resolves after `count` pods are updated, ready or not. */
  untilTouched(count: number, name = this.name): Promise<readonly Pod[]> {
    return eventually(
      () => this.updated(name),
      (pods) => expect(pods).toHaveLength(count),
    );
  }

  /** Returns the moment at which a record starts. */
  async now(): Promise<Moment> {
    return { version: (await this.#history.versions()).at(-1)?.sequence ?? 0, podPatches: this.#podPatches() };
  }

  /** Returns the pods' history since that moment. */
  async record(since: Moment): Promise<RolloutRecord & { readonly podPatches: number }> {
    const rollout = replay(await this.#history.versions(), since.version, await this.#all());
    return { ...rollout, podPatches: this.#podPatches() - since.podPatches };
  }

  /** Returns how often the reconciler patched pods, without subresources. */
  #podPatches(): number {
    return readAudit(controlPlane().auditLog).filter(
      ({ verb, objectRef, user, responseStatus }) =>
        verb === "patch" &&
        objectRef?.resource === "pods" &&
        objectRef.subresource === undefined &&
        objectRef.namespace === this.name &&
        user.username.endsWith(":sidecarset-reconciler") &&
        responseStatus?.code === 200,
    ).length;
  }

  /** Returns the scene's existing SidecarSets. */
  async #all(): Promise<readonly SidecarSet[]> {
    const { items } = await this.cluster.list<SidecarSet>(SIDECARSETS, {});
    return items.filter(({ metadata }) => this.#sets.has(metadata?.name ?? ""));
  }

  async close(): Promise<void> {
    await this.#history.close();
    for (const { metadata } of await this.#all()) await this.deleteSet(metadata?.name ?? "");
    for (const name of this.#namespaces) await this.cluster.delete(NAMESPACES, { name });
  }
}

export function isReady(pod: Pod): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
}

/** A pod stays ready until its kubelet has seen the new image. */
function runsItsImages({ spec, status }: Pod): boolean {
  const running = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const imageOfRunning = new Map(running.map(({ name, image }) => [name, fullName(image ?? "")]));
  return [...(spec.initContainers ?? []), ...spec.containers].every(
    ({ name, image }) => imageOfRunning.get(name) === fullName(image ?? ""),
  );
}

/** Returns the image of a container, by name. */
export function imageOf(pod: Pod, container: string): string | undefined {
  return pod.spec.containers.find(({ name }) => name === container)?.image;
}

/**
 * Expects at least one pod down and at most `limit` at once. On a slow machine one pod may be ready before the next
 * goes down.
 */
export function atMost(limit: number): number {
  return expect.toSatisfy((count) => count > 0 && count <= limit);
}

export function setImage(image: string, index = 0): JsonPatchOperation {
  return { op: "replace", path: `/spec/containers/${index}/image`, value: image };
}
