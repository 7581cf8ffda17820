/** Reads one SidecarSet as a command of the command line does at this moment. The read must write nothing. */
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { type ReadObservation, readObservation } from "../../shared/controller/rollout/read-observation.ts";
import type { RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, SIDECARSETS } from "../../shared/kube/port.ts";
import type { ApiServer } from "./api-server.ts";
import { KRUISE_NAMESPACE } from "./objects.ts";

export interface ReaderOptions {
  readonly server: ApiServer;
  readonly settings: RolloutSettings;
  readonly nowMs: () => number;
}

export interface ReadNow extends ReadObservation {
  readonly sidecarSets: readonly SidecarSet[];
}

/**
 * Returns undefined if there is no such SidecarSet. The world's time stands still, so nothing is written between the
 * reads.
 */
export async function readNow({ server, settings, nowMs }: ReaderOptions, name: string): Promise<ReadNow | undefined> {
  const now = { now: nowMs, epochMs: nowMs, sleep: () => Promise.reject(new Error("a reader waits")), random: () => 0 };
  const context = { cluster: readerOf(server), clock: now, kruiseNamespace: KRUISE_NAMESPACE, settings };
  const read = await readObservation(context, name);
  return read && { ...read, sidecarSets: server.all<SidecarSet>(SIDECARSETS) };
}

/** Returns a cluster that reads the store and refuses writes. */
export function readerOf(server: ApiServer): Cluster {
  const writesNothing = () => Promise.reject(new Error("a reader writes"));
  return {
    get: (resource, key) => server.get("reader", resource, key),
    list: (resource, listed = {}) => server.list("reader", resource, listed),
    create: writesNothing,
    patch: writesNothing,
    delete: writesNothing,
    watch: () => {
      throw new Error("a reader watches");
    },
  };
}
