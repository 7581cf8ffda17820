/** What admissions see of the cluster: SidecarSets and Namespaces, no older than they may be, read once for all. */
import type { Namespace } from "../api/kubernetes.ts";
import type { SidecarSet } from "../api/sidecarset.ts";
import { indexSidecarSets, type SidecarSetIndex } from "../core/match/sidecarset-index.ts";
import { isKubeError } from "../kube/error.ts";
import { type Cluster, NAMESPACES, type ObjectList, SIDECARSETS } from "../kube/port.ts";
import { type Fresh, fresh } from "./fresh.ts";

export interface SidecarSetList {
  readonly sidecarSets: readonly SidecarSet[];
  /** built once per list, not per pod */
  readonly index: SidecarSetIndex;
}

export interface SidecarSetView {
  readonly listSidecarSets: () => Promise<Fresh<SidecarSetList>>;
  /** undefined: there is none of that name */
  readonly getNamespace: (name: string) => Promise<Fresh<Namespace | undefined>>;
}

export interface ViewOptions {
  /** The way to the cluster; asked for before every reading, so that one that failed is tried again. */
  readonly connect: () => Promise<Cluster>;
  readonly freshnessMs: number;
  /** epoch milliseconds */
  readonly now: () => number;
}

const PAGE_SIZE = 500;
/** A list whose pages expire (410) while they are read is begun again this often. */
const MAX_LIST_ATTEMPTS = 3;
/** Namespaces kept in memory; the one that came first makes room. */
const MAX_NAMESPACES = 1_000;

/** Caches that may be lost at any time: nothing but speed depends on them. */
export function sidecarSetView({ connect, freshnessMs, now }: ViewOptions): SidecarSetView {
  const namespaces = new Map<string, () => Promise<Fresh<Namespace | undefined>>>();
  return {
    listSidecarSets: fresh({ read: async () => readSidecarSets(await connect()), freshnessMs, now }),
    getNamespace(name) {
      const known = namespaces.get(name);
      if (known) return known();
      const [oldest] = namespaces.keys();
      if (oldest !== undefined && namespaces.size >= MAX_NAMESPACES) namespaces.delete(oldest);
      const get = fresh({ read: async () => readNamespace(await connect(), name), freshnessMs, now });
      namespaces.set(name, get);
      return get();
    },
  };
}

async function readSidecarSets(cluster: Cluster): Promise<SidecarSetList> {
  for (let attempt = 1; ; attempt++) {
    try {
      const sidecarSets = await listAllPages(cluster);
      return { sidecarSets, index: indexSidecarSets(sidecarSets) };
    } catch (error) {
      if (attempt === MAX_LIST_ATTEMPTS || !isKubeError(error, 410)) throw error;
    }
  }
}

async function listAllPages(cluster: Cluster): Promise<readonly SidecarSet[]> {
  const sidecarSets: SidecarSet[] = [];
  let position: string | undefined;
  do {
    const page: ObjectList<SidecarSet> = await cluster.list<SidecarSet>(SIDECARSETS, {
      limit: PAGE_SIZE,
      ...(position ? { continue: position } : {}),
    });
    for (const sidecarSet of page.items) sidecarSets.push(sidecarSet);
    position = page.metadata.continue;
  } while (position);
  return sidecarSets;
}

async function readNamespace(cluster: Cluster, name: string): Promise<Namespace | undefined> {
  try {
    return await cluster.get<Namespace>(NAMESPACES, { name });
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}
