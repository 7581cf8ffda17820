/** The store of an API server, with every state of every object. It also has the states that users know. */
import jsonPatch from "fast-json-patch";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import type { JsonPatchOperation } from "../../../shared/kube/port.ts";
import type { Scheduler } from "../scheduler.ts";

export interface Place {
  readonly plural: string;
  readonly namespace?: string;
  readonly name: string;
}

export interface State {
  readonly version: number;
  /** start of the state in milliseconds */
  readonly atMs: number;
  /** the object; undefined: it does not exist */
  readonly object: KubernetesObject | undefined;
}

/** key → number of the object's states that users know */
export type Told = ReadonlyMap<string, number>;

const NOTHING: State = { version: 0, atMs: 0, object: undefined };
const keyOf = ({ plural, namespace = "", name }: Place) => `${plural}/${namespace}/${name}`;

export class ObjectStates {
  readonly #states = new Map<string, State[]>();
  #told = new Map<string, number>();
  readonly #scheduler: Scheduler;
  #version: number;
  #uids = 0;

  constructor(scheduler: Scheduler, version: number) {
    this.#scheduler = scheduler;
    this.#version = version;
  }

  get version(): number {
    return this.#version;
  }

  peek(place: Place): KubernetesObject | undefined {
    return this.#states.get(keyOf(place))?.at(-1)?.object;
  }

  get(place: Place): KubernetesObject {
    const object = this.peek(place);
    if (object) return object;
    throw new KubeError(`${place.plural} "${place.name}" not found`, { code: 404, reason: "NotFound" });
  }

  /** Stores the object, and replaces any earlier one. `createdAt`: RFC3339; absent: now. */
  put(place: Place, object: KubernetesObject, createdAt?: string): KubernetesObject {
    const before = this.peek(place)?.metadata;
    const now = new Date(this.#scheduler.nowMs).toISOString();
    const metadata = {
      ...object.metadata,
      name: place.name,
      ...(place.namespace ? { namespace: place.namespace } : {}),
      uid: before?.uid ?? `uid-${++this.#uids}`,
      generation: (before?.generation ?? 0) + 1,
      creationTimestamp: before?.creationTimestamp ?? createdAt ?? now,
      resourceVersion: String(++this.#version),
      ...(before
        ? {
            managedFields: [
              { manager: "us", operation: "Update", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1: {}, time: now },
            ],
          }
        : {}),
    };
    this.#add(place, { ...object, metadata });
    return { ...object, metadata };
  }

  remove(place: Place): void {
    this.#version++;
    this.#add(place, undefined);
  }

  #add(place: Place, object: KubernetesObject | undefined): void {
    const key = keyOf(place);
    const states = this.#states.get(key) ?? [];
    deepFreeze(object);
    states.push({ version: this.#version, atMs: this.#scheduler.nowMs, object });
    this.#states.set(key, states);
  }

  /** Returns false if the object has changed since `from`. `object` undefined: deletes it. */
  store(place: Place, from: string | undefined, object: KubernetesObject | undefined): boolean {
    if (this.peek(place)?.metadata?.resourceVersion !== from) return false;
    if (object) this.put(place, object);
    else this.remove(place);
    return true;
  }

  /** Applies a JSON patch with its tests. @throws KubeError 422 if a test fails */
  patch(place: Place, operations: readonly JsonPatchOperation[]): KubernetesObject {
    const object = structuredClone(this.get(place));
    try {
      jsonPatch.applyPatch(object, structuredClone(operations) as never, true);
    } catch (error) {
      throw new KubeError(`the patch does not apply: ${error}`, { code: 422, reason: "Invalid" });
    }
    return this.put(place, object);
  }

  /** Returns the objects of a kind at a version; absent: now. */
  list(plural: string, at = this.#version): readonly KubernetesObject[] {
    const all = [...this.#states].filter(([key]) => key.startsWith(`${plural}/`));
    return all.flatMap(([, states]) => states.findLast(({ version }) => version <= at)?.object ?? []);
  }

  /** Returns the places of all objects of a kind that ever existed. */
  places(plural: string): readonly Place[] {
    const keys = [...this.#states.keys()].filter((key) => key.startsWith(`${plural}/`));
    return keys.map((key) => {
      const [, namespace = "", name = ""] = key.split("/");
      return { plural, name, ...(namespace ? { namespace } : {}) };
    });
  }

  /** Records that the writer got the answer. */
  tell(place: Place): void {
    this.#told.set(keyOf(place), this.#states.get(keyOf(place))?.length ?? 0);
  }

  toldSoFar(): Told {
    return new Map(this.#told);
  }

  /** Returns the states that a watcher may know if changes reach it this many milliseconds later. */
  lately(place: Place, ms: number): readonly State[] {
    const states = this.#states.get(keyOf(place)) ?? [];
    const since = this.#scheduler.nowMs - ms;
    return states.filter((_, at) => (states[at + 1]?.atMs ?? Number.POSITIVE_INFINITY) > since);
  }

  /** Returns every state that a reader may see, if it began after users knew these states. */
  since(told: Told, place: Place): readonly State[] {
    const key = keyOf(place);
    const count = told.get(key) ?? 0;
    const states = this.#states.get(key) ?? [];
    return count === 0 ? [NOTHING, ...states] : states.slice(count - 1);
  }
}

/** Freezes stored objects, so that no reader can change them. */
function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const one of Object.values(value)) deepFreeze(one);
}
