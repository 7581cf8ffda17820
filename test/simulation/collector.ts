/** The garbage collector deletes the objects of deleted SidecarSets, some time later. */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { SIDECARSET_KIND } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import { CONFIG_MAPS, CONTROLLER_REVISIONS, PODS, type Resource, SIDECARSETS } from "../../shared/kube/port.ts";
import type { ApiServer, Write } from "./api-server.ts";
import type { Chance } from "./chance.ts";
import { countFault, type FaultCounts } from "./faults.ts";
import type { Scheduler } from "./scheduler.ts";

const OWNED = [CONFIG_MAPS, CONTROLLER_REVISIONS, PODS] as const;
const SLOW_MS = 30_000;
const WRITER = "collector";

export interface CollectorOptions {
  readonly server: ApiServer;
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly counts: FaultCounts;
  /** true if it decides first and deletes later, even if the object has a new owner by then */
  readonly isCollectedLate?: boolean;
}

export class Collector {
  readonly #options: CollectorOptions;

  constructor(options: CollectorOptions) {
    this.#options = options;
  }

  /** Plans deletions after a SidecarSet is deleted, and after a write for a deleted one. */
  see({ resource, isRemoved, object }: Write): void {
    if (isRemoved ? resource !== SIDECARSETS.plural : !this.#isOrphan(object as unknown as KubernetesObject)) return;
    const { chance, scheduler } = this.#options;
    const delayMs = chance.pick([1, 1_000, SLOW_MS]);
    scheduler.after(chance.between(1, delayMs), () => this.#sweep());
  }

  #sweep(): void {
    const { server, isCollectedLate } = this.#options;
    for (const resource of OWNED)
      for (const object of server.every(resource)) {
        if (!this.#isOrphan(object)) continue;
        if (isCollectedLate) this.#deleteLater(resource, object);
        else server.remove(WRITER, resource, object);
      }
  }

  /** Deletes the object only if it has the same uid; its contents may differ. */
  #deleteLater(resource: Resource, { metadata }: KubernetesObject): void {
    const { server, chance, scheduler, counts } = this.#options;
    const { namespace = "", name = "", uid = "" } = metadata ?? {};
    scheduler.after(chance.between(1, SLOW_MS), () => {
      countFault(counts, "collected in two steps");
      server.delete(WRITER, resource, { namespace, name }, { uid }).catch((error: unknown) => {
        if (!isKubeError(error, 404, 409)) throw error;
      });
    });
  }

  #isOrphan({ metadata }: KubernetesObject): boolean {
    const owners = metadata?.ownerReferences ?? [];
    if (!owners.some(({ kind }) => kind === SIDECARSET_KIND)) return false;
    const sets = this.#options.server.all<SidecarSet>(SIDECARSETS);
    return owners.every(({ uid }) => !sets.some(({ metadata }) => metadata?.uid === uid));
  }
}
