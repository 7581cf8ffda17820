/** The states of SidecarSets over time, and the ones that users know. */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import { CONFIG_MAPS, type JsonPatchOperation, type ObjectList, SIDECARSETS } from "../../../shared/kube/port.ts";
import type { Scheduler } from "../scheduler.ts";

interface Kind {
  readonly plural: string;
}

/** All states of one SidecarSet, oldest first; "" while there is none. */
type States = readonly string[];

/** name → number of its states that users know */
export type Answered = ReadonlyMap<string, number>;

export class Truth {
  readonly #objects = new Map<string, KubernetesObject>();
  readonly #states = new Map<string, string[]>();
  readonly #answered = new Map<string, number>();
  /** the SidecarSets after each write */
  readonly #lists: ObjectList<KubernetesObject>[];
  readonly #scheduler: Scheduler;
  #version: number;
  #uid = 0;
  writes = 0;

  constructor(scheduler: Scheduler, version: number) {
    this.#scheduler = scheduler;
    this.#version = version;
    this.#lists = [{ metadata: { resourceVersion: String(version) }, items: [] }];
  }

  get version(): number {
    return this.#version;
  }

  peek({ plural }: Kind, name: string): KubernetesObject | undefined {
    return this.#objects.get(`${plural}/${name}`);
  }

  get(kind: Kind, name: string): KubernetesObject {
    const object = this.peek(kind, name);
    if (object === undefined) throw new KubeError(`no ${kind.plural} ${name}`, { code: 404, reason: "NotFound" });
    return object;
  }

  /** Stores the object, and replaces any earlier one. */
  put(kind: Kind, name: string, object: KubernetesObject, createdAt: string): void {
    const before = this.peek(kind, name)?.metadata;
    const metadata = {
      ...object.metadata,
      name,
      generation: 1,
      uid: before?.uid ?? object.metadata?.uid ?? `uid-${++this.#uid}`,
      resourceVersion: String(++this.#version),
      creationTimestamp: before?.creationTimestamp ?? createdAt,
      ...(before ? { managedFields: [{ time: new Date(this.#scheduler.nowMs).toISOString() }] } : {}),
    };
    this.#objects.set(`${kind.plural}/${name}`, { ...object, metadata });
  }

  remove({ plural }: Kind, name: string): void {
    this.#version++;
    this.#objects.delete(`${plural}/${name}`);
  }

  /** Applies a JSON patch, with its test, to a ConfigMap. */
  patch(kind: Kind, name: string, patch: object): KubernetesObject {
    const object = this.get(kind, name);
    const { operations } = patch as { readonly operations: readonly JsonPatchOperation[] };
    let changed = object;
    for (const operation of operations) {
      if (operation.op === "test" && operation.value !== object.metadata?.resourceVersion)
        throw new KubeError("the test failed", { code: 422, reason: "Invalid" });
      if (operation.op === "add") changed = { ...changed, [operation.path.slice(1)]: operation.value };
    }
    this.put(CONFIG_MAPS, name, changed, "");
    return this.get(kind, name);
  }

  /** Returns false if the object has changed since `from`. `object` undefined: deletes it. */
  store(name: string, from: string | undefined, object: KubernetesObject | null | undefined): boolean {
    if (this.peek(SIDECARSETS, name)?.metadata?.resourceVersion !== from) return false;
    if (object) this.put(SIDECARSETS, name, object, new Date(this.#scheduler.nowMs).toISOString());
    else this.remove(SIDECARSETS, name);
    this.writes++;
    const states = this.#states.get(name) ?? [];
    states.push(this.peek(SIDECARSETS, name)?.metadata?.resourceVersion ?? "");
    this.#states.set(name, states);
    const items = [...this.#objects].flatMap(([key, one]) => (key.startsWith(SIDECARSETS.plural) ? [one] : []));
    this.#lists.push({ metadata: { resourceVersion: String(this.#version) }, items });
    return true;
  }

  /** Records that the writer got the answer. */
  answered(name: string): void {
    this.#answered.set(name, this.#states.get(name)?.length ?? 0);
  }

  answeredSoFar(): Answered {
    return new Map(this.#answered);
  }

  /** Returns the list from that many writes ago, with the present version of the whole store. */
  listAt(writesAgo: number): ObjectList<KubernetesObject> {
    const list = this.#lists.at(Math.max(-this.#lists.length, -1 - writesAgo)) ?? {
      metadata: { resourceVersion: "0" },
      items: [],
    };
    return writesAgo === 0 ? { ...list, metadata: { resourceVersion: String(this.#version) } } : list;
  }

  neverStored(listed: readonly SidecarSet[]): readonly string[] {
    const isGhost = ({ metadata }: SidecarSet) =>
      !this.#states.get(metadata?.name ?? "")?.includes(metadata?.resourceVersion ?? "");
    return listed
      .filter(isGhost)
      .map(({ metadata }) => `${metadata?.name} ${metadata?.resourceVersion} was never stored`);
  }

  missedOf(before: Answered, listed: readonly SidecarSet[]): readonly string[] {
    const seen = new Map(listed.map(({ metadata }) => [metadata?.name ?? "", metadata?.resourceVersion ?? ""]));
    return [...before].flatMap(([name, count]) => {
      const states: States = this.#states.get(name) ?? [];
      const version = seen.get(name) ?? "";
      if (states.slice(count - 1).includes(version)) return [];
      return [
        `${name} is ${version || "absent"} where ${states[count - 1] || "its deletion"} was answered before the pod`,
      ];
    });
  }
}
