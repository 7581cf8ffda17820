/** The record of a pod as it is looked at once: metadata, whose name, uid and version are read from its row when they are asked for. */
import type { Labels, ObjectMeta, OwnerReference } from "../../api/kubernetes.ts";

/** What many pods may have in common. */
export interface SharedMetadata {
  readonly namespace: string;
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly ownerReferences?: readonly OwnerReference[];
}

/** Of metadata as most pods have it, what is not read from the row. */
export interface PlainMetadata {
  readonly rest: SharedMetadata;
  readonly creationTimestamp: string;
}

/** What is nobody else's. */
export interface Identity {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly name: string;
}

/** Where those are. */
interface Identities {
  /** grows with each write */
  readonly writes: number;
  identityOf(row: number): Identity;
}

export class PodRecord implements ObjectMeta {
  readonly namespace: string;
  readonly creationTimestamp: string;
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly ownerReferences: readonly OwnerReference[];
  readonly #table: Identities;
  readonly #row: number;
  readonly #writes: number;

  constructor(table: Identities, row: number, { rest, creationTimestamp }: PlainMetadata) {
    this.namespace = rest.namespace;
    this.creationTimestamp = creationTimestamp;
    this.labels = rest.labels;
    this.annotations = rest.annotations;
    this.ownerReferences = rest.ownerReferences ?? [];
    this.#table = table;
    this.#row = row;
    this.#writes = table.writes;
  }

  get name(): string {
    return this.#identity().name;
  }

  get uid(): string {
    return this.#identity().uid;
  }

  get resourceVersion(): string {
    return this.#identity().resourceVersion;
  }

  #identity(): Identity {
    if (this.#table.writes !== this.#writes) throw new Error("the record of a pod was kept until the table changed");
    return this.#table.identityOf(this.#row);
  }
}
