/** The garbage collector: what is owned by SidecarSets that are gone goes too, some time later. */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { CONFIG_MAPS, CONTROLLER_REVISIONS, SIDECARSETS } from "../../shared/kube/port.ts";
import type { ApiServer, Write } from "./api-server.ts";
import type { Chance } from "./chance.ts";
import type { Scheduler } from "./scheduler.ts";

const OWNED = [CONFIG_MAPS, CONTROLLER_REVISIONS] as const;
const SLOW_MS = 30_000;

export class Collector {
  readonly #server: ApiServer;
  readonly #scheduler: Scheduler;
  readonly #chance: Chance;

  constructor(options: { readonly server: ApiServer; readonly scheduler: Scheduler; readonly chance: Chance }) {
    this.#server = options.server;
    this.#scheduler = options.scheduler;
    this.#chance = options.chance;
  }

  /** A SidecarSet that goes, and what is written in the name of one that is gone. */
  see({ resource, isRemoved, object }: Write): void {
    if (isRemoved ? resource !== SIDECARSETS.plural : !this.#isOrphan(object as unknown as KubernetesObject)) return;
    const delayMs = this.#chance.pick([1, 1_000, SLOW_MS]);
    this.#scheduler.after(this.#chance.between(1, delayMs), () => this.#sweep());
  }

  #sweep(): void {
    for (const resource of OWNED)
      for (const object of this.#server.all(resource))
        if (this.#isOrphan(object)) this.#server.remove("collector", resource, object);
  }

  #isOrphan({ metadata }: KubernetesObject): boolean {
    const owners = metadata?.ownerReferences ?? [];
    if (owners.length === 0) return false;
    const alive = new Set(this.#server.all<SidecarSet>(SIDECARSETS).map((one) => one.metadata?.uid));
    return owners.every(({ uid }) => !alive.has(uid));
  }
}
