/** Two sets with the same spec, one for the built-in controller and one for the product, and their pods' histories. */
import type { ApiObject } from "../../../infra/local/storage/json.ts";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet, StatefulSetSpec } from "../../../shared/api/stateful-set.ts";
import {
  CLAIMS,
  type Cluster,
  CONTROLLER_REVISIONS,
  NAMESPACES,
  PODS,
  type Resource,
  STATEFUL_SETS,
} from "../../../shared/kube/port.ts";
import { type RawTarget, sendRaw } from "../../contract/raw.ts";
import { clusterOf } from "./clients.ts";
import { type PodHistory, recordPods } from "./pod-history.ts";
import { eventually } from "./until.ts";

const BUILT_IN: Resource = { group: "apps", version: "v1", plural: "statefulsets", namespaced: true };
const SIDES = ["theirs", "ours"] as const;
type Side = (typeof SIDES)[number];

const SET = "db";
const LABELS = { app: SET };

export function template(image: string) {
  return {
    metadata: { labels: LABELS },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ name: "main", image }] },
  };
}

/** The spec for both sides, in the built-in API's form. */
export type Spec = Omit<StatefulSetSpec, "template"> & {
  readonly template?: object;
  readonly minReadySeconds?: number;
};

/** The present state of one side. */
export interface SideView {
  /** the pods by ordinal, such as "db-0 app:1 ready" */
  readonly pods: readonly string[];
  readonly claims: readonly string[];
  readonly revisions: number;
  readonly status: Readonly<Record<string, number | boolean>>;
}

export class SideBySide {
  readonly #cluster: Cluster;
  readonly #target: RawTarget;
  readonly #name: string;
  readonly #histories = new Map<Side, PodHistory>();

  constructor(target: RawTarget, name: string) {
    this.#cluster = clusterOf(target);
    this.#target = target;
    this.#name = name;
  }

  async create(spec: Spec): Promise<void> {
    for (const side of SIDES) {
      const namespace = this.#namespace(side);
      await this.#cluster.create(NAMESPACES, { metadata: { name: namespace } });
      this.#histories.set(side, recordPods(this.#cluster, namespace));
    }
    await this.#each((side) => this.#cluster.create(resourceOf(side), this.#object(side, spec)));
  }

  async patchSpec(spec: Spec): Promise<void> {
    await this.#each((side) =>
      this.#cluster.patch(resourceOf(side), this.#key(side), { type: "merge", body: { spec: specOf(side, spec) } }),
    );
  }

  /** Scales through the subresource, as kubectl does. */
  async scale(replicas: number): Promise<void> {
    await this.#each(async (side) => {
      const { group, version } = resourceOf(side);
      const path = `/apis/${group}/${version}/namespaces/${this.#namespace(side)}/statefulsets/${SET}/scale`;
      const headers = { "content-type": "application/merge-patch+json" };
      const answer = await sendRaw(this.#target, { method: "PATCH", path, headers, body: { spec: { replicas } } });
      if (answer.code !== 200) throw new Error(answer.text);
    });
  }

  /** Changes a pod on both sides, as another client would. */
  async eachPod(name: string, act: (cluster: Cluster, key: { namespace: string; name: string }) => Promise<unknown>) {
    await this.#each((side) => act(this.#cluster, { namespace: this.#namespace(side), name }));
  }

  async deleteSets(): Promise<void> {
    await this.#each((side) => this.#cluster.delete(resourceOf(side), this.#key(side)));
  }

  /** Waits until `check` accepts both sides, and then compares them. */
  async until(check: (view: SideView) => void): Promise<void> {
    await this.#each((side) => eventually(() => this.view(side), check));
  }

  async view(side: Side): Promise<SideView> {
    const where = { namespace: this.#namespace(side) };
    const set = await this.#cluster.get<StatefulSet>(resourceOf(side), this.#key(side)).catch(() => undefined);
    const [pods, claims, revisions] = await Promise.all([
      this.#cluster.list<Pod>(PODS, where),
      this.#cluster.list<KubernetesObject>(CLAIMS, where),
      this.#cluster.list<KubernetesObject>(CONTROLLER_REVISIONS, where),
    ]);
    const named = (objects: readonly KubernetesObject[]) => objects.map(({ metadata }) => metadata?.name ?? "");
    return {
      pods: pods.items.map(textOf).toSorted(),
      claims: named(claims.items).toSorted(),
      revisions: revisions.items.length,
      status: statusOf(set),
    };
  }

  /** Returns in order the pods that were created, marked for deletion, and gone. */
  async sequence(side: Side): Promise<readonly string[]> {
    const states = new Map<string, { isDeleted: boolean }>();
    const lines: string[] = [];
    for (const { object, isRemoved } of (await this.#histories.get(side)?.versions()) ?? []) {
      const { uid = "", name = "", deletionTimestamp } = object.metadata;
      const state = states.get(uid);
      if (!state) lines.push(`create ${name} ${imageOf(object)}`);
      const next = state ?? { isDeleted: false };
      states.set(uid, next);
      const isNew = (deletionTimestamp !== undefined || isRemoved) && !next.isDeleted;
      if (isNew) lines.push(`delete ${name}`);
      next.isDeleted ||= isNew;
    }
    return lines;
  }

  async close(): Promise<void> {
    for (const history of this.#histories.values()) await history.close();
    await this.deleteSets().catch(() => undefined);
    await this.#each((side) =>
      this.#cluster.delete(NAMESPACES, { name: this.#namespace(side) }).catch(() => undefined),
    );
  }

  #each(act: (side: Side) => Promise<unknown>): Promise<unknown> {
    return Promise.all(SIDES.map(act));
  }

  #namespace(side: Side): string {
    return `${this.#name}-${side}`;
  }

  #key(side: Side) {
    return { namespace: this.#namespace(side), name: SET };
  }

  #object(side: Side, spec: Spec): KubernetesObject {
    const whole = { serviceName: SET, selector: { matchLabels: LABELS }, template: template("app:1"), ...spec };
    const apiVersion = side === "theirs" ? "apps/v1" : "apps.kruise.io/v1beta1";
    return { apiVersion, kind: "StatefulSet", metadata: this.#key(side), ...{ spec: specOf(side, whole) } };
  }
}

function resourceOf(side: Side): Resource {
  return side === "theirs" ? BUILT_IN : STATEFUL_SETS;
}

/** The two APIs differ only in the place of minReadySeconds. */
function specOf(side: Side, { minReadySeconds, ...spec }: Spec): object {
  if (minReadySeconds === undefined) return spec;
  if (side === "theirs") return { ...spec, minReadySeconds };
  const rollingUpdate = { ...spec.updateStrategy?.rollingUpdate, minReadySeconds };
  return { ...spec, updateStrategy: { type: "RollingUpdate", ...spec.updateStrategy, rollingUpdate } };
}

function imageOf(pod: ApiObject | Pod): string {
  const { spec } = pod as unknown as Pod;
  return spec.containers[0]?.image ?? "";
}

function textOf(pod: Pod): string {
  const isReady = pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
  const state = pod.metadata?.deletionTimestamp ? "going" : isReady ? "ready" : "not ready";
  return `${pod.metadata?.name} ${imageOf(pod)} ${state}`;
}

const COUNTS = ["replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas"] as const;

function statusOf(set: StatefulSet | undefined): SideView["status"] {
  if (!set) return {};
  const { status, metadata } = set;
  return {
    ...Object.fromEntries(COUNTS.map((count) => [count, status?.[count] ?? 0])),
    collisionCount: status?.collisionCount ?? 0,
    isObserved: status?.observedGeneration === metadata?.generation,
    isCurrent: status?.currentRevision === status?.updateRevision,
  };
}
