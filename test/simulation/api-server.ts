/**
 * The API server of the world. Reads, creates, deletes and watches are the embedded cluster's; patches take a faster
 * way.
 */

import { listQuery } from "../../infra/local/http/query.ts";
import type { Kind } from "../../infra/local/kinds/kind.ts";
import { BUILT_IN_KINDS, createRegistry } from "../../infra/local/kinds/registry.ts";
import { patchObject } from "../../infra/local/patch/patch.ts";
import { type Api, type Call, type Caller, component, internalCall } from "../../infra/local/storage/api.ts";
import { type ApiObject, storageKey } from "../../infra/local/storage/json.ts";
import {
  getObject,
  listObjects,
  type WatchSession,
  type WatchSink,
  watchObjects,
} from "../../infra/local/storage/read.ts";
import { StatusError, unknownResource } from "../../infra/local/storage/status-error.ts";
import { type RecordedWrite, Store } from "../../infra/local/storage/store.ts";
import { commit, commitRemoval, createObject, deleteObject } from "../../infra/local/storage/write.ts";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { errorOfStatus } from "../../shared/kube/failure.ts";
import {
  CONTAINER_RECREATE_REQUESTS,
  DAEMON_SETS,
  type DeleteOptions,
  type ListOptions,
  type ObjectKey,
  type ObjectList,
  type Patch,
  type PatchOptions,
  PODS,
  type Resource,
  SIDECARSETS,
  STATEFUL_SETS,
  type WatchOptions,
} from "../../shared/kube/port.ts";
import { patchStored, type Refuse } from "./api-patch.ts";
import type { Timeline } from "./scheduler.ts";

export type Write = Omit<RecordedWrite, "sequence" | "time">;

export interface ApiServerOptions {
  readonly scheduler: Timeline;
  /** a random number in [0, 1) */
  readonly random: () => number;
  /** Called within each write; the writer is its `userAgent`. */
  readonly onWrite: (write: Write) => void;
  /** the most objects of a page; a client may ask for more */
  readonly pageSize: number;
  /** the first resourceVersion */
  readonly firstVersion?: number;
  /** true if a PodDisruptionBudget forbids the pod's eviction now; absent: no budget */
  readonly isKept?: (pod: Pod) => boolean;
  /** true for pods that only full lists show; absent: none */
  readonly isAside?: ((pod: Pod) => boolean) | undefined;
  /** errors for further fields of a pod that may not change; absent: none */
  readonly refuse?: Refuse;
}

/** The body of a POST to pods/eviction. */
export interface Eviction extends KubernetesObject {
  readonly deleteOptions?: { readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string } };
}

const CUSTOM_KINDS: readonly Kind[] = [
  customKind(SIDECARSETS, "SidecarSet"),
  customKind(CONTAINER_RECREATE_REQUESTS, "ContainerRecreateRequest"),
  customKind(STATEFUL_SETS, "StatefulSet"),
  customKind(DAEMON_SETS, "DaemonSet"),
];
const KINDS = new Map([...BUILT_IN_KINDS, ...CUSTOM_KINDS].map((kind) => [resourceKey(kind), kind]));
const MEDIA_TYPES = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
} as const;
const KEPT = {
  kind: "Status",
  status: "Failure",
  code: 429,
  reason: "TooManyRequests",
  message: "Cannot evict pod as it would violate the pod's disruption budget.",
} as const;
const BOOKMARK_MS = 60_000;
const HISTORY = 20_000;

/** Calls answer with the state at the time of the call, and reject with a KubeError. */
export class ApiServer {
  readonly #api: Api;
  readonly #pageSize: number;
  readonly #isKept: (pod: Pod) => boolean;
  readonly #isAside: ApiServerOptions["isAside"];
  readonly #refuse: ApiServerOptions["refuse"];

  /** each resourceVersion, and the time since which it was the newest */
  readonly #versions: { readonly atMs: number; readonly version: number }[] = [];

  constructor({
    scheduler,
    random,
    onWrite,
    pageSize,
    firstVersion,
    isAside,
    refuse,
    isKept = () => false,
  }: ApiServerOptions) {
    const store = new Store(HISTORY, firstVersion);
    const clock = {
      now: () => scheduler.nowMs,
      after: (delayMs: number, run: () => void) => scheduler.after(delayMs, run),
      close: () => undefined,
    };
    const write = (one: Write) => {
      this.#versions.push({ atMs: scheduler.nowMs, version: Number(one.object.metadata.resourceVersion) });
      onWrite(one);
    };
    const history = { ...NO_HISTORY, write };
    this.#api = { store, registry: createRegistry(store), history, clock, random };
    this.#pageSize = pageSize;
    this.#isKept = isKept;
    this.#isAside = isAside;
    this.#refuse = refuse;
  }

  get resourceVersion(): string {
    return String(this.#api.store.resourceVersion);
  }

  /** Returns the newest remembered version at that time. */
  versionAt(ms: number): string {
    const at = this.#versions.findLast(({ atMs }) => atMs <= ms)?.version ?? 0;
    return String(Math.max(at, this.#api.store.oldestKnown + 1));
  }

  /** Returns the stored object; undefined: there is none. */
  peek<T extends KubernetesObject>(resource: Resource, key: ObjectKey): T | undefined {
    return this.#api.store.get(kindOf(resource).collection, storedKey(key)) as T | undefined;
  }

  all<T extends KubernetesObject>(resource: Resource): readonly T[] {
    const isAside = this.#isAside;
    const objects = this.every<T>(resource);
    return isAside && resource === PODS ? objects.filter((one) => !isAside(one as unknown as Pod)) : objects;
  }

  every<T extends KubernetesObject>(resource: Resource): readonly T[] {
    return this.#api.store.list(kindOf(resource).collection) as readonly unknown[] as readonly T[];
  }

  /** Stores an object unchanged, for parts of the world whose writes never conflict. */
  put(writer: string, resource: Resource, object: KubernetesObject): void {
    commit(this.#api, callOf(writer, resource, object.metadata), "update", object as ApiObject);
  }

  remove(writer: string, resource: Resource, object: KubernetesObject): void {
    commitRemoval(this.#api, callOf(writer, resource, object.metadata), "delete", object as ApiObject);
  }

  /** Forgets old versions. Page tokens and watches of such versions expire. */
  compact(): void {
    this.#api.store.compact();
  }

  get<T>(writer: string, resource: Resource, key: ObjectKey): Promise<T> {
    return answered(() => getObject(this.#api, callOf(writer, resource, key)));
  }

  list<T>(writer: string, resource: Resource, options: ListOptions): Promise<ObjectList<T>> {
    const { namespace, limit, ...rest } = options;
    const parameters = new URLSearchParams(
      Object.entries(rest).filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
    if (limit !== undefined) parameters.set("limit", String(Math.min(limit, this.#pageSize)));
    return answered(() => {
      const call = callOf(writer, resource, { name: "", ...(namespace === undefined ? {} : { namespace }) });
      return listObjects(this.#api, call, listQuery(call, parameters));
    });
  }

  create<T>(writer: string, resource: Resource, object: KubernetesObject, isDryRun = false): Promise<T> {
    const { namespace } = object.metadata ?? {};
    const call = callOf(writer, resource, { name: "", ...(namespace === undefined ? {} : { namespace }) });
    return answered(() => createObject(this.#api, { ...call, dryRun: isDryRun }, object));
  }

  patch<T>(call: Call, patch: Patch, answer: PatchOptions["answer"]): Promise<T> {
    return answered(async () => {
      const object = await this.#patched(call, patch);
      return answer === "metadata" ? { metadata: object.metadata } : object;
    });
  }

  /** The faster way handles only objects and their status. */
  async #patched(call: Call, patch: Patch): Promise<ApiObject> {
    const refuse = call.kind.collection === "/pods" ? this.#refuse : undefined;
    if (call.subresource !== "resize") return patchStored(this.#api, call, patch, refuse);
    return patchObject(this.#api, call, MEDIA_TYPES[patch.type], patch.type === "json" ? patch.operations : patch.body);
  }

  async delete(writer: string, resource: Resource, key: ObjectKey, options: DeleteOptions): Promise<void> {
    const { dryRun = false, ...preconditions } = options;
    const call = { ...callOf(writer, resource, key), dryRun };
    await answered(() => deleteObject(this.#api, call, { preconditions }));
  }

  /** Deletes with preconditions, unless a PodDisruptionBudget forbids it. */
  evict(writer: string, { metadata, deleteOptions = {} }: Eviction): Promise<unknown> {
    const { namespace = "", name = "" } = metadata ?? {};
    return answered(() => {
      const pod = this.peek<Pod>(PODS, { namespace, name });
      if (pod && this.#isKept(pod)) throw errorOfStatus(KEPT, KEPT.code);
      return deleteObject(this.#api, callOf(writer, PODS, { namespace, name }), { ...deleteOptions });
    });
  }

  watch(writer: string, resource: Resource, options: WatchOptions, sink: WatchSink): WatchSession {
    const { namespace = "", labelSelector = "", fieldSelector = "", resourceVersion, timeoutSeconds } = options;
    const call = callOf(writer, resource, { namespace, name: "" });
    const { matches } = listQuery(call, new URLSearchParams({ labelSelector, fieldSelector }));
    const query = { matches, resourceVersion, timeoutSeconds, allowBookmarks: true, sendInitialEvents: false };
    return watchObjects(this.#api, call, { query, bookmarkIntervalMs: BOOKMARK_MS }, sink);
  }
}

export function callOf(writer: string, resource: Resource, key: Partial<ObjectKey> = {}, subresource = ""): Call {
  const { namespace = "", name = "" } = key;
  return internalCall(callerOf(writer), kindOf(resource), { namespace, name }, subresource);
}

const callers = new Map<string, Caller>();

function callerOf(writer: string): Caller {
  const known = callers.get(writer);
  if (known) return known;
  const caller = component(writer);
  callers.set(writer, caller);
  return caller;
}

async function answered<T>(work: () => unknown): Promise<T> {
  try {
    return (await work()) as T;
  } catch (error) {
    if (error instanceof StatusError) throw errorOfStatus(error.body, error.code);
    throw error;
  }
}

const kinds = new WeakMap<Resource, Kind>();

function kindOf(resource: Resource): Kind {
  const known = kinds.get(resource);
  if (known) return known;
  const kind = KINDS.get(resourceKey(resource));
  if (!kind) throw unknownResource();
  kinds.set(resource, kind);
  return kind;
}

function resourceKey({ group, version, plural }: Pick<Resource, "group" | "version" | "plural">): string {
  return `${group}/${version}/${plural}`;
}

function storedKey({ namespace = "", name }: ObjectKey): string {
  return storageKey({ namespace, name });
}

function customKind({ group, version, plural, namespaced }: Resource, kind: string): Kind {
  const names = { kind, singular: kind.toLowerCase(), shortNames: [], categories: [] };
  const features = { namespaced, hasStatus: true, hasScale: false, hasGeneration: true };
  const storage = { collection: `${group}/${plural}`, storedAs: `${group}/${version}` };
  return { group, version, plural, ...names, ...features, ...storage };
}

const NO_HISTORY: Api["history"] = {
  write: () => undefined,
  admission: () => undefined,
  call: () => undefined,
  writes: () => [],
  admissions: () => [],
  calls: () => ({}),
};
