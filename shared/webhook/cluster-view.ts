/** What admissions see of the cluster, no older than it may be, read once for all who ask at the same time. */
import type { ConfigMap, ControllerRevision, Namespace } from "../api/kubernetes.ts";
import type { SidecarSet } from "../api/sidecarset.ts";
import { indexSidecarSets, type SidecarSetIndex } from "../core/match/sidecarset-index.ts";
import type { RevisionWanted } from "../core/revision/wanted-revision.ts";
import { isKubeError } from "../kube/error.ts";
import { type Cluster, CONFIG_MAPS, NAMESPACES, type ObjectList, SIDECARSETS } from "../kube/port.ts";
import { type Fresh, fresh, type Reader } from "./fresh.ts";
import { type ListedSidecarSets, refreshSidecarSets } from "./refresh-sidecarsets.ts";
import { lookUpRevision } from "./revision-lookup.ts";

interface SidecarSetList {
  readonly sidecarSets: readonly SidecarSet[];
  /** built once per list, not per pod */
  readonly index: SidecarSetIndex;
}

export interface ClusterView {
  readonly listSidecarSets: Reader<SidecarSetList>;
  /** undefined: there is none of that name */
  readonly getNamespace: (name: string) => ReturnType<Reader<Namespace | undefined>>;
  /** those that the wanted one is to be chosen from; none when there is none */
  readonly findRevisions: (wanted: RevisionWanted) => ReturnType<Reader<readonly ControllerRevision[]>>;
  /** undefined: there is none of that name in the kruise namespace */
  readonly getConfigMap: (name: string) => ReturnType<Reader<ConfigMap | undefined>>;
}

export interface ViewOptions {
  /** The way to the cluster; asked for before every reading, so that one that failed is tried again. */
  readonly connect: () => Promise<Cluster>;
  readonly kruiseNamespace: string;
  readonly freshnessMs: number;
  /** epoch milliseconds */
  readonly now: () => number;
}

const PAGE_SIZE = 500;
/** A list whose pages expire (410) while they are read is begun again this often. */
const MAX_LIST_ATTEMPTS = 3;
/** A list longer than one page is brought up to date by its changes, and read as a whole once in a while. */
const LONG_LIST = 500;
const RELIST_MS = 60_000;
/** Values kept in memory for each kind; the one that came first makes room. */
const MAX_KEYS = 1_000;

/** Caches that may be lost at any time: nothing but speed depends on them. */
export function clusterView({ connect, kruiseNamespace: namespace, freshnessMs, now }: ViewOptions): ClusterView {
  const reading = <T>(read: (cluster: Cluster) => Promise<T>) =>
    fresh({ read: async () => read(await connect()), freshnessMs, now });
  const namespaces = byKey((name) => reading((cluster) => orUndefined(cluster.get<Namespace>(NAMESPACES, { name }))));
  const configMaps = byKey((name) =>
    reading((cluster) => orUndefined(cluster.get<ConfigMap>(CONFIG_MAPS, { namespace, name }))),
  );
  const revisions = byKey((key) => {
    const wanted = JSON.parse(key) as RevisionWanted;
    const read = reading((cluster) => lookUpRevision(cluster, namespace, wanted));
    return wanted.standing === undefined ? read : lasting(read);
  });
  return {
    listSidecarSets: reading(sidecarSetReader(freshnessMs, now)),
    getNamespace: (name) => namespaces(name)(),
    getConfigMap: (name) => configMaps(name)(),
    findRevisions: (wanted) => revisions(JSON.stringify(wanted))(),
  };
}

/** What a ControllerRevision holds never changes: once something is found, it is not read again. */
function lasting<T>(read: Reader<readonly T[]>): Reader<readonly T[]> {
  let found: Fresh<readonly T[]> | undefined;
  const find = async () => {
    const now = await read();
    if (now.staleBecause === undefined && now.value.length > 0) found = now;
    return now;
  };
  return () => found ?? find();
}

/** One reader for each key, kept while there is room. */
function byKey<T>(create: (key: string) => T): (key: string) => T {
  const kept = new Map<string, T>();
  return (key) => {
    const known = kept.get(key);
    if (known !== undefined) return known;
    const [oldest] = kept.keys();
    if (oldest !== undefined && kept.size >= MAX_KEYS) kept.delete(oldest);
    const created = create(key);
    kept.set(key, created);
    return created;
  };
}

interface KnownList extends SidecarSetList, ListedSidecarSets {
  /** when nothing of an earlier list was kept */
  readonly listedAt: number;
}

/** Where nothing may be older than the request, changes are not enough: a watch may lag behind for a moment. */
function sidecarSetReader(freshnessMs: number, now: () => number): (cluster: Cluster) => Promise<SidecarSetList> {
  let known: KnownList | undefined;
  return async (cluster) => {
    const begun = now();
    const last = known && begun - known.listedAt < RELIST_MS ? known : undefined;
    const long = last && freshnessMs > 0 && last.sidecarSets.length > LONG_LIST ? last : undefined;
    known = (long && (await refreshed(cluster, long))) ?? relisted(await readSidecarSets(cluster), begun, last);
    return known;
  };
}

/**
 * A SidecarSet that is what it was stays the same object, and so does the index when all are: what injections have made
 * of them is kept with them. Not for ever, since what is read of an object may change without its resourceVersion: new
 * defaults of the definition, another conversion.
 */
function relisted(list: ListedSidecarSets, begun: number, last: KnownList | undefined): KnownList {
  if (last === undefined) return indexed(list, begun);
  const known = new Map(last.sidecarSets.map((sidecarSet) => [sidecarSet.metadata?.uid, sidecarSet]));
  const sidecarSets = list.sidecarSets.map((sidecarSet) => {
    const before = known.get(sidecarSet.metadata?.uid);
    return before && isUnchanged(sidecarSet, before) ? before : sidecarSet;
  });
  const areSame =
    sidecarSets.length === last.sidecarSets.length && sidecarSets.every((set, at) => set === last.sidecarSets[at]);
  const { resourceVersion } = list;
  return areSame ? { ...last, resourceVersion } : indexed({ sidecarSets, resourceVersion }, last.listedAt);
}

function isUnchanged({ metadata }: SidecarSet, { metadata: before }: SidecarSet): boolean {
  const { uid, resourceVersion } = metadata ?? {};
  return uid !== undefined && resourceVersion !== undefined && resourceVersion === before?.resourceVersion;
}

function indexed(list: ListedSidecarSets, listedAt: number): KnownList {
  return { ...list, index: indexSidecarSets(list.sidecarSets), listedAt };
}

/** undefined: all has to be read, which also tells what is wrong if anything is. */
async function refreshed(cluster: Cluster, last: KnownList): Promise<KnownList | undefined> {
  const list = await refreshSidecarSets(cluster, last).catch(() => undefined);
  if (list === undefined) return undefined;
  return list.sidecarSets === last.sidecarSets ? { ...last, ...list } : indexed(list, last.listedAt);
}

async function readSidecarSets(cluster: Cluster): Promise<ListedSidecarSets> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await listAllPages(cluster);
    } catch (error) {
      if (attempt === MAX_LIST_ATTEMPTS || !isKubeError(error, 410)) throw error;
    }
  }
}

async function listAllPages(cluster: Cluster): Promise<ListedSidecarSets> {
  const sidecarSets: SidecarSet[] = [];
  let page: ObjectList<SidecarSet> | undefined;
  do {
    const position = page?.metadata.continue;
    page = await cluster.list<SidecarSet>(SIDECARSETS, {
      limit: PAGE_SIZE,
      ...(position ? { continue: position } : {}),
    });
    for (const sidecarSet of page.items) sidecarSets.push(sidecarSet);
  } while (page.metadata.continue);
  return { sidecarSets, resourceVersion: page.metadata.resourceVersion };
}

async function orUndefined<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}
