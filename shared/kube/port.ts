/** The calls we make to an API server, in Kubernetes' words. Implemented by client.ts; the contract suite holds every cluster to it. */
import type { KubernetesObject, ObjectMeta } from "../api/kubernetes.ts";
import { KubeError } from "./error.ts";
import { refusal, unreadableAnswer } from "./failure.ts";
import { type ClusterAccess, openTransport, readBody } from "./transport.ts";

/** A kind of object, as its URL names it: /api/v1/pods, /apis/apps.kruise.io/v1beta1/sidecarsets. */
export interface Resource {
  /** "" for core */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

/** The version of Kubernetes' own kinds. */
const version = "v1";
export const PODS: Resource = { group: "", version: "v1", plural: "pods", namespaced: true };
export const NAMESPACES: Resource = { group: "", version: "v1", plural: "namespaces", namespaced: false };
export const CONFIG_MAPS: Resource = { group: "", version: "v1", plural: "configmaps", namespaced: true };
export const EVENTS: Resource = { group: "", version: "v1", plural: "events", namespaced: true };
export const CONTROLLER_REVISIONS: Resource = {
  group: "apps",
  version: "v1",
  plural: "controllerrevisions",
  namespaced: true,
};
export const DEPLOYMENTS: Resource = { group: "apps", version: "v1", plural: "deployments", namespaced: true };
export const REPLICA_SETS: Resource = { group: "apps", version: "v1", plural: "replicasets", namespaced: true };
export const BUILT_IN_STATEFUL_SETS: Resource = { group: "apps", version, plural: "statefulsets", namespaced: true };
export const DAEMON_SETS: Resource = { group: "apps", version: "v1", plural: "daemonsets", namespaced: true };
export const LEASES: Resource = { group: "coordination.k8s.io", version: "v1", plural: "leases", namespaced: true };
export const MUTATING_WEBHOOK_CONFIGURATIONS: Resource = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  plural: "mutatingwebhookconfigurations",
  namespaced: false,
};
export const VALIDATING_WEBHOOK_CONFIGURATIONS: Resource = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  plural: "validatingwebhookconfigurations",
  namespaced: false,
};
export const NODES: Resource = { group: "", version: "v1", plural: "nodes", namespaced: false };
export const CONTAINER_RECREATE_REQUESTS: Resource = {
  group: "apps.kruise.io",
  version: "v1beta1",
  plural: "containerrecreaterequests",
  namespaced: true,
};
/** Advanced StatefulSets: not the built-in ones of apps/v1. */
export const STATEFUL_SETS: Resource = {
  group: "apps.kruise.io",
  version: "v1beta1",
  plural: "statefulsets",
  namespaced: true,
};
export const DISRUPTION_BUDGETS: Resource = {
  group: "policy",
  version: "v1",
  plural: "poddisruptionbudgets",
  namespaced: true,
};
/** OpenKruise's. */
export const UNAVAILABLE_BUDGETS: Resource = {
  group: "policy.kruise.io",
  version: "v1alpha1",
  plural: "podunavailablebudgets",
  namespaced: true,
};
export const CLAIMS: Resource = { group: "", version: "v1", plural: "persistentvolumeclaims", namespaced: true };
export const STORAGE_CLASSES: Resource = {
  group: "storage.k8s.io",
  version: "v1",
  plural: "storageclasses",
  namespaced: false,
};
export const SIDECARSETS: Resource = {
  group: "apps.kruise.io",
  version: "v1beta1",
  plural: "sidecarsets",
  namespaced: false,
};

export interface ObjectKey {
  /** absent for cluster-scoped kinds */
  readonly namespace?: string;
  readonly name: string;
}

/** Metadata that an API server gives to each object of a namespace. */
type ServedMeta = ObjectMeta & Readonly<Record<"namespace" | "name" | "uid" | "resourceVersion", string>>;

/** The metadata of an object that an API server has sent. */
export const storedMeta = ({ metadata }: KubernetesObject): ServedMeta => metadata as ServedMeta;

export interface ListOptions {
  /** absent: all namespaces */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: "Exact" | "NotOlderThan";
  /**
   * Receives each item as it arrives, so that no whole page is in memory. An implementation that supports it returns
   * the results as `kept`, except undefined ones, and no items.
   */
  readonly keep?: (item: KubernetesObject) => unknown;
}

export interface ObjectList<T> {
  readonly metadata: {
    readonly resourceVersion: string;
    readonly continue?: string;
    readonly remainingItemCount?: number;
  };
  readonly items: readonly T[];
  /** results of `keep` */
  readonly kept?: readonly unknown[];
}

interface WriteOptions {
  readonly dryRun?: boolean;
}

interface AnsweredOptions extends WriteOptions {
  /** "metadata" asks for PartialObjectMetadata, which is enough for a rollout. */
  readonly answer?: "object" | "metadata";
}

export interface CreateOptions extends AnsweredOptions {
  /** eviction of the named pod: the API server decides about it */
  readonly subresource?: "eviction";
}

export interface PatchOptions extends AnsweredOptions {
  readonly subresource?: "status" | "resize";
}

/** RFC 6902 operation. A `test` is the precondition of a conditional write. */
export type JsonPatchOperation =
  | { readonly op: "add" | "replace" | "test"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string };

export type Patch =
  | { readonly type: "json"; readonly operations: readonly JsonPatchOperation[] }
  | { readonly type: "merge"; readonly body: unknown }
  | { readonly type: "strategic"; readonly body: unknown };

export interface DeleteOptions extends WriteOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
}

export interface WatchOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly resourceVersion: string;
  readonly timeoutSeconds: number;
  readonly signal?: AbortSignal;
  /** called when the server has accepted the watch, before the first event */
  readonly onOpen?: () => void;
}

/** An ERROR event (410 Gone for one) is not yielded: the iteration throws it as a KubeError. */
export interface WatchEvent<T> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: T;
}

/** The result of a patch with `answer: "metadata"`. */
export interface PartialObject {
  readonly metadata: ObjectMeta;
}

/**
 * Every method rejects only with KubeError. Objects are raw JSON: unknown fields survive. One call is one HTTP request;
 * nothing here retries a write.
 */
export interface Cluster {
  get<T extends KubernetesObject>(resource: Resource, key: ObjectKey): Promise<T>;
  /** Reads one page. Follow `metadata.continue` for the rest; a 410 there means: start again. */
  list<T extends KubernetesObject>(resource: Resource, options?: ListOptions): Promise<ObjectList<T>>;
  create<T extends KubernetesObject>(resource: Resource, object: T, options?: CreateOptions): Promise<T>;
  patch<T extends KubernetesObject>(
    resource: Resource,
    key: ObjectKey,
    patch: Patch,
    options?: PatchOptions,
  ): Promise<T>;
  delete(resource: Resource, key: ObjectKey, options?: DeleteOptions): Promise<void>;
  watch<T extends KubernetesObject>(resource: Resource, options: WatchOptions): AsyncIterable<WatchEvent<T>>;
  /**
   * Epoch milliseconds by the API server's clock, from its last answer; undefined: no answer had a time. Absent: no
   * clock.
   */
  readonly serverTimeMs?: (() => number | undefined) | undefined;
}

// A cluster port that cannot write: a dry run uses it.

/** Reads go through. A write rejects with KubeError, unless it is one that the API server itself does not store. */
export function readOnlyCluster(cluster: Cluster): Cluster {
  const refuse = (what: string, name = "") => {
    const message = `${what} ${name}: this process makes dry runs only, and writes nothing`;
    return Promise.reject(new KubeError(message, { code: 0, reason: "ReadOnly", isOutcomeKnown: true }));
  };
  return {
    ...cluster,
    create: (resource, object, options) =>
      options?.dryRun
        ? cluster.create(resource, object, options)
        : refuse(`create ${resource.plural}`, object.metadata?.name),
    patch: (resource, key, patch, options) =>
      options?.dryRun ? cluster.patch(resource, key, patch, options) : refuse(`patch ${resource.plural}`, key.name),
    delete: (resource, key, options) =>
      options?.dryRun ? cluster.delete(resource, key, options) : refuse(`delete ${resource.plural}`, key.name),
  };
}

// The facts about an API server: its version and its time.

interface ServerFacts {
  readonly version: { readonly major: string; readonly minor: string; readonly gitVersion: string };
  /**
   * seconds by which its clock is ahead of the local one, as precisely as header and network allow; undefined: unknown
   */
  readonly skewSeconds: number | undefined;
}

const TIMEOUT_MS = 10_000;

/** @throws KubeError */
export async function readServerFacts(access: ClusterAccess, now: () => number): Promise<ServerFacts> {
  const begin = now();
  const timeoutMs = access.requestTimeoutMs ?? TIMEOUT_MS;
  const answer = await openTransport(access)({ method: "GET", path: "/version", timeoutMs });
  const middle = begin + (now() - begin) / 2;
  const body = await readBody(answer);
  if (answer.code >= 300) throw refusal(answer.attempt, answer.code, body, answer.retryAfter);
  // The header has whole seconds: on average half of one is cut off.
  const skew = Date.parse(answer.date ?? "") + 500 - middle;
  return {
    version: parse(body, () => unreadableAnswer(answer.attempt, answer.code, "is not JSON: is this an API server?")),
    skewSeconds: Number.isNaN(skew) ? undefined : Math.trunc(skew / 1000),
  };
}

function parse(body: string, failure: () => Error): ServerFacts["version"] {
  try {
    const { major = "", minor = "", gitVersion = "" } = JSON.parse(body) as Partial<ServerFacts["version"]>;
    return { major, minor, gitVersion };
  } catch {
    throw failure();
  }
}
