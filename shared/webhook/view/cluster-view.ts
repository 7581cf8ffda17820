/** The cluster state for admissions, no older than allowed, read once for all concurrent callers. */
import type { ConfigMap, ControllerRevision, Namespace } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { RevisionWanted } from "../../core/sidecarset/revision/wanted-revision.ts";
import { ifThere } from "../../kube/error.ts";
import {
  type Cluster,
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  NAMESPACES,
  type Resource,
  SIDECARSETS,
} from "../../kube/port.ts";
import type { Log } from "../../log.ts";
import { Announced } from "./announced.ts";
import { type Source, type TrustOptions, trustedNotice } from "./announcement-trust.ts";
import { LEASE_MS, type Notice } from "./announcements.ts";
import { Breaker, type Clocks, fresh, type Reader } from "./fresh.ts";
import {
  isOlder,
  isOlderState,
  type ListedSidecarSets,
  listSidecarSets,
  namedIn,
  newerOf,
  RELIST_MS,
  type ReadByName,
  readByName,
  type SidecarSetList,
  withRead,
} from "./listed-sidecarsets.ts";
import { lookUpRevision } from "./revision-lookup.ts";
import {
  type Answering,
  answeringOf,
  ignoresImpossible,
  type LoggedSource,
  saySource,
  type Unannounced,
} from "./trouble.ts";

export interface ClusterView {
  readonly listSidecarSets: Reader<SidecarSetList>;
  /** undefined: there is none of that name */
  readonly getNamespace: (name: string) => ReturnType<Reader<Namespace | undefined>>;
  /** the candidates for the wanted revision; empty when there are none */
  readonly findRevisions: (wanted: RevisionWanted) => ReturnType<Reader<readonly ControllerRevision[]>>;
  /** undefined: there is none of that name in the kruise namespace */
  readonly getConfigMap: (name: string) => ReturnType<Reader<ConfigMap | undefined>>;
}

/** For metrics. `kept`: a list is reused as long as VIEW_FRESHNESS_MS allows. */
export interface ViewState {
  readonly source: Source | "kept";
  readonly answering: Answering;
}

export interface LiveView extends ClusterView {
  readonly state: () => ViewState;
}

export interface ViewOptions extends Clocks {
  /** The connection to the cluster; requested before every reading, so that a failed one is retried. */
  readonly connect: () => Promise<Cluster>;
  readonly kruiseNamespace: string;
  /** how old a value may be when it is used; 0: it holds what was there before the request */
  readonly freshnessMs: number;
  /** Uses announcements while they are complete; absent: SidecarSets are listed for every request. */
  readonly isAnnounced?: boolean;
  /** told about ignored announcements, and about an API server that does not answer in time; absent: nobody is */
  readonly log?: Pick<Log, "info" | "warn"> | undefined;
}

/** Limit of values in memory for each kind; the oldest one is dropped. */
const MAX_KEYS = 1_000;

/** Caches that may be lost at any time: only speed depends on them. */
export function clusterView(options: ViewOptions): LiveView {
  const { connect, kruiseNamespace: namespace, freshnessMs, now } = options;
  const breakerOf = ({ plural }: Resource) => new Breaker(options, plural);
  const breaker = breakerOf(SIDECARSETS);
  const ofSidecarSets = <T>(read: (cluster: Cluster) => Promise<T>, holdsForMs: (value: T) => number) =>
    fresh({ read: async () => read(await connect()), holdsForMs, breaker });
  /** Makes a reader of one kind of object; the key says which object. */
  const reading = <T>(resource: Resource, read: (cluster: Cluster, key: string) => Promise<T>) => {
    const own = breakerOf(resource);
    return byKey((key) =>
      fresh({ read: async () => read(await connect(), key), holdsForMs: () => freshnessMs, breaker: own }),
    );
  };
  const namespaces = reading(NAMESPACES, (cluster, name) => ifThere(cluster.get<Namespace>(NAMESPACES, { name })));
  const configMaps = reading(CONFIG_MAPS, (cluster, name) =>
    ifThere(cluster.get<ConfigMap>(CONFIG_MAPS, { namespace, name })),
  );
  const revisions = reading(CONTROLLER_REVISIONS, (cluster, key) =>
    lookUpRevision(cluster, namespace, JSON.parse(key) as RevisionWanted),
  );
  let source: ViewState["source"] = freshnessMs > 0 ? "kept" : "listed";
  const onSource = (now: Source) => {
    source = now;
  };
  return {
    state: () => ({ source, answering: answeringOf(breaker) }),
    listSidecarSets: followsAnnouncements(options)
      ? ofSidecarSets(sidecarSetReader({ ...options, onSource }), ({ holdsForMs }) => holdsForMs)
      : ofSidecarSets(sidecarSetLister(now), () => freshnessMs),
    getNamespace: (name) => namespaces(name)(),
    getConfigMap: (name) => configMaps(name)(),
    findRevisions: (wanted) => revisions(JSON.stringify(wanted))(),
  };
}

/** True when announcements help: a list that may be older needs none. */
function followsAnnouncements({ isAnnounced, freshnessMs }: ViewOptions): boolean {
  return isAnnounced === true && freshnessMs === 0;
}

function sidecarSetLister(now: () => number): (cluster: Cluster) => Promise<SidecarSetList> {
  const known = new KnownSidecarSets(now);
  return (cluster) => known.list(cluster);
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

// Reads the SidecarSets for the admission of a pod: every one whose write an API server answered before the pod was
// created. If every write is announced, nobody asks while none is. Otherwise they are listed for each pod, or once for
// concurrent pods. docs/read-your-writes.md has the protocol and its proof.

interface HeldSidecarSets extends ListedSidecarSets {
  /** milliseconds since the start of the reading in which no unknown write can be stored; 0: unknown */
  readonly holdsForMs: number;
}

/** Beyond this number of pending writes one list is read. */
const MAX_SINGLE_READS = 8;
const NO_NAMES: ReadonlySet<string> = new Set();
const MAX_GONE = 200;
/** No API server lags for this long. */
const LAGS_MS = 5 * 60_000;
/** After a list in the background that failed. */
const RELIST_AGAIN_MS = 10_000;

/** One reading after the other: each begins where the last one ended. */
export function sidecarSetReader(options: TrustOptions): (cluster: Cluster) => Promise<HeldSidecarSets> {
  const view = new KnownSidecarSets(options.now);
  const announced = new Announced();
  const readNotice = trustedNotice(options);
  /** since announcements count */
  let isListed = false;
  let isNew = true;
  let said: LoggedSource | undefined;
  /** The log has what is slower than it could be, and its end. */
  const say = (why: Unannounced | undefined) => {
    options.onSource?.(why === undefined ? "announced" : "listed");
    if (why !== said?.why) said = saySource(said, why, options);
  };

  /** A list at least as new as all announcements, except those of impossible versions. */
  const listNewest = async (cluster: Cluster): Promise<ListedSidecarSets> => {
    try {
      return await view.list(cluster, announced.newest);
    } catch (error) {
      if (!isOlderState(error) || announced.newest === "") throw error;
      const { resourceVersion } = await view.list(cluster);
      if (!ignoresImpossible(announced, resourceVersion, options)) throw error;
      return await listNewest(cluster);
    }
  };
  /** `early`: a list read in parallel to the announcements, valid unless they name something newer. */
  const list = async (cluster: Cluster, early?: Promise<ListedSidecarSets>) => {
    const before = await early;
    const isBehind = before === undefined || isOlder(before.resourceVersion, announced.newest);
    const listed = isBehind ? await listNewest(cluster) : before;
    const settling = { now: options.now(), singly: NO_NAMES, listed: listed.resourceVersion };
    view.isWithout(announced.settle(namedIn(listed), settling));
    isListed = true;
  };
  /** A list may be older than a read of a single object. */
  const readPending = async (cluster: Cluster) => {
    const singly = announced.namesToRead(options.now(), MAX_SINGLE_READS);
    const read = await view.readSingly(cluster, singly);
    view.isWithout(announced.settle(namedIn(read), { now: options.now(), singly }));
    return read;
  };
  /** True if no announced or missed write can still be stored. */
  const isKnown = () => announced.isAllSeen(options.now()) && announced.names.size === 0;
  const catchUp = async (cluster: Cluster, { announcements }: Notice, early?: Promise<ListedSidecarSets>) => {
    if (announced.take(announcements, options.now())) isListed = false;
    const isAllSeen = announced.isAllSeen(options.now());
    if (!isListed || !isAllSeen || announced.names.size > MAX_SINGLE_READS) await list(cluster, early);
    const read = await readPending(cluster).catch(async (error: unknown) => {
      if (!isOlderState(error)) throw error;
      // A list shows whether an API server lags, or the version never existed.
      await list(cluster);
      return await readPending(cluster);
    });
    return { ...read, holdsForMs: isKnown() ? LEASE_MS : 0 };
  };
  return async (cluster) => {
    // A new process reads all objects at once. With a slow API server a pod then waits for one answer, not two.
    const early = isNew ? view.list(cluster) : undefined;
    const reading = readNotice(cluster);
    // If one read fails, the other must end too: a late list would replace the result of the next reading.
    await Promise.allSettled([reading, early]);
    const notice = await reading;
    await early;
    isNew = false;
    say(typeof notice === "string" ? notice : undefined);
    if (typeof notice !== "string") return catchUp(cluster, notice, early);
    announced.forget();
    return { ...(await (early ?? view.list(cluster))), holdsForMs: 0 };
  };
}

/** The known list, and the newest resourceVersion of its readings. */
export class KnownSidecarSets {
  readonly #now: () => number;
  #known: ListedSidecarSets | undefined;
  #listedAt = Number.NEGATIVE_INFINITY;
  #isRelisting = false;
  #relistedAt = Number.NEGATIVE_INFINITY;
  /** SidecarSets that were read since the running list began */
  #readSince = new Map<string, SidecarSet | undefined>();
  #newest = "";
  /** uids of deleted SidecarSets */
  readonly #gone = new Set<string>();
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The list, which is no older than the call. `atLeast`: a resourceVersion that others have seen. */
  async list(cluster: Cluster, atLeast = ""): Promise<ListedSidecarSets> {
    const now = this.#now();
    const newest = this.#newestAt(isWithin(now - this.#readAt, RELIST_MS));
    const bound = newerOf(newest.atLeast, atLeast);
    const listed = await listSidecarSets(cluster, { now, ...newest, atLeast: bound, last: this.#known });
    this.#listedAt = now;
    this.#newest = listed.resourceVersion;
    return this.#keep(listed, now);
  }

  /** The known SidecarSets, with a new read of the named ones. */
  async readSingly(cluster: Cluster, names: ReadonlySet<string>): Promise<ListedSidecarSets> {
    if (this.#known === undefined) return this.list(cluster);
    const now = this.#now();
    if (!isWithin(now - this.#listedAt, RELIST_MS)) this.#relist(cluster, this.#known);
    const read = names.size === 0 ? new Map() : await readByName(cluster, names);
    this.#remember(read, this.#known);
    return this.#keep(withRead(this.#known, read), now);
  }

  /** Marks deletions, some perhaps unseen: a list that contains one of these is older. */
  isWithout(uids: readonly string[]): void {
    for (const uid of uids) if (uid !== "") this.#gone.add(uid);
    for (const oldest of [...this.#gone].slice(0, -MAX_GONE)) this.#gone.delete(oldest);
  }

  /** Lists again in the background, because nobody should wait for a long list of known objects. */
  #relist(cluster: Cluster, last: ListedSidecarSets): void {
    const [now, listedAt] = [this.#now(), this.#listedAt];
    if (this.#isRelisting || isWithin(now - this.#relistedAt, RELIST_AGAIN_MS)) return;
    this.#isRelisting = true;
    this.#relistedAt = now;
    this.#readSince = new Map();
    const relist = async () => {
      const newest = this.#newestAt(isWithin(now - listedAt, LAGS_MS));
      const listed = await listSidecarSets(cluster, { now, ...newest, last });
      // They were listed by another call in the meantime.
      if (this.#listedAt !== listedAt) return;
      this.#known = withRead(listed, this.#readSince);
      this.#listedAt = now;
      this.#rise(listed.resourceVersion);
    };
    const ended = () => {
      this.#isRelisting = false;
    };
    relist().then(ended, ended);
  }

  /** After a while an older state means a restored backup, not a lagging API server. */
  #newestAt(isRecent: boolean) {
    return isRecent ? { atLeast: this.#newest, gone: this.#gone } : { atLeast: "", gone: new Set<string>() };
  }

  #remember(read: ReadByName, before: ListedSidecarSets): void {
    if (read.size === 0) return;
    const isGone = ({ metadata: { name = "", uid } = {} }: SidecarSet) =>
      read.has(name) && read.get(name)?.metadata?.uid !== uid;
    this.isWithout(before.sidecarSets.filter(isGone).map(({ metadata }) => metadata?.uid ?? ""));
    for (const [name, sidecarSet] of read) {
      this.#readSince.set(name, sidecarSet);
      this.#rise(sidecarSet?.metadata?.resourceVersion ?? "");
    }
  }

  #rise(version: string): void {
    this.#newest = newerOf(this.#newest, version);
  }

  #keep(known: ListedSidecarSets, now: number): ListedSidecarSets {
    this.#known = known;
    this.#readAt = now;
    return known;
  }
}

function isWithin(age: number, ms: number): boolean {
  return age >= 0 && age < ms;
}
