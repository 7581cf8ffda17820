/** All SidecarSets and their index, from one list and later single reads. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import { indexSidecarSets, type SidecarSetIndex } from "../../core/injection/match/sidecarset-index.ts";
import { ifThere, isKubeError, KubeError } from "../../kube/error.ts";
import { samePage } from "../../kube/failure.ts";
import { type Cluster, type ObjectList, SIDECARSETS } from "../../kube/port.ts";

export interface SidecarSetList {
  readonly sidecarSets: readonly SidecarSet[];
  /** index of the SidecarSets, built once for each list and not for each pod */
  readonly index: SidecarSetIndex;
}

export interface ListedSidecarSets extends SidecarSetList {
  /** resourceVersion of the list */
  readonly resourceVersion: string;
  /** epoch milliseconds: start of the oldest reading with a part still in use */
  readonly keptFrom: number;
}

/** SidecarSets read by name; undefined: none of that name. */
export type ReadByName = ReadonlyMap<string, SidecarSet | undefined>;

const PAGE_SIZE = 500;
const OLDER_STATE = "OlderState";
/** Limit of new starts for a list whose pages expire (410), or that is older than another one. */
const MAX_LIST_ATTEMPTS = 3;
/**
 * Limit of reuse for unchanged objects, because their content may change without their resourceVersion: new defaults of
 * the CRD, another conversion.
 */
export const RELIST_MS = 60_000;

/** The newest known state. */
interface Newest {
  /** the resourceVersion that a list must have reached */
  readonly atLeast: string;
  /** uids of deleted SidecarSets */
  readonly gone: ReadonlySet<string>;
}

interface ListingOptions extends Newest {
  /** the present time in epoch milliseconds */
  readonly now: number;
  readonly last?: ListedSidecarSets | undefined;
}

/**
 * Lists all SidecarSets. An unchanged one stays the same object as in `last`, and the index too if all are: cached
 * results of injections depend on that. @throws KubeError, with reason OlderState when the API server answers with an
 * older state
 */
export async function listSidecarSets(
  cluster: Cluster,
  { now, last, ...newest }: ListingOptions,
): Promise<ListedSidecarSets> {
  const { items, resourceVersion } = await readAll(cluster, newest);
  const age = last === undefined ? Number.NaN : now - last.keptFrom;
  if (last === undefined || !(age >= 0 && age < RELIST_MS))
    return { ...indexed(items), resourceVersion, keptFrom: now };
  const known = new Map(last.sidecarSets.map((sidecarSet) => [sidecarSet.metadata?.uid, sidecarSet]));
  const sidecarSets = items.map((sidecarSet) => {
    const before = known.get(sidecarSet.metadata?.uid);
    return before && isUnchanged(sidecarSet, before) ? before : sidecarSet;
  });
  const areSame =
    sidecarSets.length === last.sidecarSets.length && sidecarSets.every((set, at) => set === last.sidecarSets[at]);
  return { ...(areSame ? last : indexed(sidecarSets)), resourceVersion, keptFrom: last.keptFrom };
}

/** The list with newer reads by name. */
export function withRead(list: ListedSidecarSets, read: ReadByName): ListedSidecarSets {
  const known = namedIn(list);
  const isSame = ([name, one]: [string, SidecarSet | undefined]) =>
    one?.metadata?.resourceVersion === known(name)?.metadata?.resourceVersion;
  if ([...read].every(isSame)) return list;
  const others = list.sidecarSets.filter(({ metadata }) => !read.has(metadata?.name ?? ""));
  const present = [...read.values()].filter((one) => one !== undefined);
  return { ...list, ...indexed([...others, ...present]) };
}

/** The SidecarSet with this name; undefined: there is none. */
export function namedIn({ sidecarSets }: SidecarSetList): (name: string) => SidecarSet | undefined {
  return (name) => sidecarSets.find(({ metadata }) => metadata?.name === name);
}

/** Reads SidecarSets by name. @throws KubeError if one cannot be read */
export async function readByName(cluster: Cluster, names: ReadonlySet<string>): Promise<ReadByName> {
  const read = async (name: string) => [name, await readOne(cluster, name)] as const;
  return new Map(await Promise.all([...names].map(read)));
}

/**
 * True if a resourceVersion is older than another. API servers make whole numbers, which texts would order wrongly ("9"
 * after "10").
 */
export function isOlder(one: string, other: string): boolean {
  const areNumbers = /^\d+$/.test(one) && /^\d+$/.test(other);
  return areNumbers && BigInt(one) < BigInt(other);
}

/** The newer of two resourceVersions; "" is older than any. */
export function newerOf(one: string, other: string): string {
  return one === "" || isOlder(one, other) ? other : one;
}

function isUnchanged({ metadata }: SidecarSet, { metadata: before }: SidecarSet): boolean {
  const { uid, resourceVersion } = metadata ?? {};
  return uid !== undefined && resourceVersion !== undefined && resourceVersion === before?.resourceVersion;
}

function indexed(sidecarSets: readonly SidecarSet[]): SidecarSetList {
  return { sidecarSets, index: indexSidecarSets(sidecarSets) };
}

function readOne(cluster: Cluster, name: string): Promise<SidecarSet | undefined> {
  return ifThere(cluster.get<SidecarSet>(SIDECARSETS, { name }));
}

/** Lists all, and retries: one of several API servers may be behind, and another may answer next. */
async function readAll(cluster: Cluster, { atLeast, gone }: Newest) {
  for (let attempt = 1; ; attempt++) {
    try {
      const list = await readPages(cluster);
      const isBehind = isOlder(list.resourceVersion, atLeast);
      if (isBehind || list.items.some(({ metadata }) => gone.has(metadata?.uid ?? "")))
        throw olderState(list.resourceVersion, atLeast);
      return list;
    } catch (error) {
      if (attempt === MAX_LIST_ATTEMPTS || !isWorthAnother(error)) throw error;
    }
  }
}

function isWorthAnother(error: unknown): boolean {
  return isKubeError(error, 410) || isOlderState(error);
}

export function isOlderState(error: unknown): boolean {
  return isKubeError(error) && error.reason === OLDER_STATE;
}

export function olderState(version: string, atLeast: string): KubeError {
  const message = `the API server answers with SidecarSets of resourceVersion ${version}, after it has answered with ${atLeast}`;
  return new KubeError(message, { code: 0, reason: OLDER_STATE });
}

async function readPages(cluster: Cluster) {
  const items: SidecarSet[] = [];
  let page: ObjectList<SidecarSet> | undefined;
  do {
    const position = page?.metadata.continue;
    page = await cluster.list<SidecarSet>(SIDECARSETS, {
      limit: PAGE_SIZE,
      ...(position ? { continue: position } : {}),
    });
    for (const sidecarSet of page.items) items.push(sidecarSet);
    if (position && page.metadata.continue === position) throw samePage(SIDECARSETS);
  } while (page.metadata.continue);
  return { items, resourceVersion: page.metadata.resourceVersion };
}
