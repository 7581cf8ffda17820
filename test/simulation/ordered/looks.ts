/** Remembers the objects that each pass read last, and its calls since then. The next write must follow from these. */
import type { ControllerRevision, KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet } from "../../../shared/api/stateful-set.ts";
import type { Ledger } from "../../../shared/core/ledger.ts";
import { CONTROLLER_REVISIONS, type ObjectList, PODS, type Resource } from "../../../shared/kube/port.ts";

export interface Snapshot {
  /** the set as it was read before the lists */
  readonly set: StatefulSet;
  pods: readonly Pod[];
  revisions: readonly ControllerRevision[];
  /** names of pods that the pass has since written to or deleted */
  readonly touched: Set<string>;
}

/** A write that a pass is about to send. */
export interface Sent {
  readonly pass: string;
  readonly verb: "CREATE" | "PATCH" | "DELETE";
  /** the resource with its subresource, such as "statefulsets/status" */
  readonly resource: string;
  readonly name: string;
  /** the created object, or the body of a merge patch */
  readonly body: unknown;
  readonly look: Snapshot;
}

/** The present state of the world. */
export interface Facts {
  readonly pods: () => readonly Pod[];
  readonly claims: () => readonly PersistentVolumeClaim[];
  readonly revisions: () => readonly ControllerRevision[];
  readonly ledger: () => Ledger;
  readonly nowMs: () => number;
}

/** Returns one sentence for each fault of a call. */
export type SendingRule = (sent: Sent, facts: Facts) => readonly string[];

export class Looks {
  /** sets that were read, and whose pods have not been listed yet */
  readonly #read = new Map<string, StatefulSet>();
  readonly #looks = new Map<string, Snapshot>();

  of(pass: string): Snapshot | undefined {
    return this.#looks.get(pass);
  }

  read(pass: string, set: StatefulSet): void {
    this.#read.set(pass, set);
  }

  /** The first list after a read of the set begins a new look. A first page begins its list again. */
  listed(pass: string, resource: Resource, { items }: ObjectList<KubernetesObject>, isFirst: boolean): void {
    const set = this.#read.get(pass);
    if (set) this.#looks.set(pass, { set, pods: [], revisions: [], touched: new Set() });
    this.#read.delete(pass);
    const look = this.#looks.get(pass);
    if (!look) return;
    const objects = items as readonly unknown[];
    if (resource === PODS) look.pods = [...(isFirst ? [] : look.pods), ...(objects as readonly Pod[])];
    if (resource !== CONTROLLER_REVISIONS) return;
    look.revisions = [...(isFirst ? [] : look.revisions), ...(objects as readonly ControllerRevision[])];
  }
}
