/** What admissions see of the cluster, no older than it may be, read once for all who ask meanwhile. */
import type { ConfigMap, ControllerRevision, Namespace } from "../../api/kubernetes.ts";
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
import type { Source } from "./announcement-trust.ts";
import { Breaker, type Clocks, fresh, type Reader } from "./fresh.ts";
import type { SidecarSetList } from "./listed-sidecarsets.ts";
import { lookUpRevision } from "./revision-lookup.ts";
import { KnownSidecarSets, sidecarSetReader } from "./sidecarset-reader.ts";
import { type Answering, answeringOf } from "./trouble.ts";

export interface ClusterView {
  readonly listSidecarSets: Reader<SidecarSetList>;
  /** undefined: there is none of that name */
  readonly getNamespace: (name: string) => ReturnType<Reader<Namespace | undefined>>;
  /** those that the wanted one is to be chosen from; none when there is none */
  readonly findRevisions: (wanted: RevisionWanted) => ReturnType<Reader<readonly ControllerRevision[]>>;
  /** undefined: there is none of that name in the kruise namespace */
  readonly getConfigMap: (name: string) => ReturnType<Reader<ConfigMap | undefined>>;
}

/** For the metrics. `kept`: a list serves for as long as VIEW_FRESHNESS_MS says. */
export interface ViewState {
  readonly source: Source | "kept";
  readonly answering: Answering;
}

export interface LiveView extends ClusterView {
  readonly state: () => ViewState;
}

export interface ViewOptions extends Clocks {
  /** The way to the cluster; asked for before every reading, so that one that failed is tried again. */
  readonly connect: () => Promise<Cluster>;
  readonly kruiseNamespace: string;
  /** how old a value may be when it is used; 0: it holds what was there before the request */
  readonly freshnessMs: number;
  /** Announcements are gone by where they are complete; absent: SidecarSets are listed whenever somebody asks. */
  readonly isAnnounced?: boolean;
  /** told of announcements that are ignored, and of an API server that does not answer in time; absent: nobody is */
  readonly log?: Pick<Log, "info" | "warn"> | undefined;
}

/** Values kept in memory for each kind; the one that came first makes room. */
const MAX_KEYS = 1_000;

/** Caches that may be lost at any time: nothing but speed depends on them. */
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

/** Where a list may be older, announcements would make it no better. */
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
