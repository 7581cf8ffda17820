/**
 * Reads the SidecarSets that a pod is admitted with: all that API servers have answered to a write before the pod was
 * created. Where every write is announced beforehand nobody asks while none is; elsewhere they are listed for each pod,
 * or for all that come meanwhile. docs/read-your-writes.md has the protocol and why it holds.
 */
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { Cluster } from "../../kube/port.ts";
import { Announced } from "./announced.ts";
import { type TrustOptions, trustedNotice } from "./announcement-trust.ts";
import { LEASE_MS, type Notice } from "./announcements.ts";
import {
  isOlderState,
  type ListedSidecarSets,
  listSidecarSets,
  namedIn,
  newerOf,
  RELIST_MS,
  type ReadByName,
  readByName,
  withRead,
} from "./listed-sidecarsets.ts";

export interface HeldSidecarSets extends ListedSidecarSets {
  /** for how long after the reading began no write can be stored that is not known here; 0: that can't be said */
  readonly holdsForMs: number;
}

/** More writes that may be stored any moment are looked for in one list. */
const MAX_SINGLE_READS = 8;
const NO_NAMES: ReadonlySet<string> = new Set();
const MAX_GONE = 200;
/** No API server lags for this long. */
const LAGS_MS = 5 * 60_000;
/** After a list in the background that failed. */
const RELIST_AGAIN_MS = 10_000;

/** One after the other: each reading begins where the last one ended. */
export function sidecarSetReader(options: TrustOptions): (cluster: Cluster) => Promise<HeldSidecarSets> {
  const view = new KnownSidecarSets(options.now);
  const announced = new Announced();
  const readNotice = trustedNotice(options);
  /** since announcements are gone by */
  let isListed = false;

  /** The list as new as all that is announced, but for announcements of what never was. */
  const listNewest = async (cluster: Cluster): Promise<ListedSidecarSets> => {
    try {
      return await view.list(cluster, announced.newest);
    } catch (error) {
      if (!isOlderState(error) || announced.newest === "") throw error;
      const { resourceVersion } = await view.list(cluster);
      const ignored = announced.ignoreImpossible(resourceVersion, options.now());
      if (ignored.length === 0) throw error;
      report(ignored);
      return await listNewest(cluster);
    }
  };
  const report = (names: readonly string[]) => {
    const sidecarSets = [...new Set(names)].slice(0, MAX_SINGLE_READS);
    options.log?.warn("announcements of writes that cannot be are ignored", { sidecarSets });
  };
  const list = async (cluster: Cluster) => {
    const listed = await listNewest(cluster);
    const settling = { now: options.now(), singly: NO_NAMES, listed: listed.resourceVersion };
    view.isWithout(announced.settle(namedIn(listed), settling));
    isListed = true;
  };
  /** What an API server lists may be older than what it answers about a single one. */
  const readPending = async (cluster: Cluster) => {
    const singly = announced.namesToRead(options.now(), MAX_SINGLE_READS);
    const read = await view.readSingly(cluster, singly);
    view.isWithout(announced.settle(namedIn(read), { now: options.now(), singly }));
    return read;
  };
  /** Nothing that was announced, or that may have been, can be stored any more. */
  const isKnown = () => announced.isAllSeen(options.now()) && announced.names.size === 0;
  const catchUp = async (cluster: Cluster, { announcements }: Notice) => {
    if (announced.take(announcements, options.now())) isListed = false;
    const isAllSeen = announced.isAllSeen(options.now());
    if (!isListed || !isAllSeen || announced.names.size > MAX_SINGLE_READS) await list(cluster);
    const read = await readPending(cluster).catch(async (error: unknown) => {
      if (!isOlderState(error)) throw error;
      // A list tells whether an API server lags, or whether there was never such a version.
      await list(cluster);
      return await readPending(cluster);
    });
    return { ...read, holdsForMs: isKnown() ? LEASE_MS : 0 };
  };
  return async (cluster) => {
    const notice = await readNotice(cluster);
    if (notice !== undefined) return catchUp(cluster, notice);
    announced.forget();
    return { ...(await view.list(cluster)), holdsForMs: 0 };
  };
}

/** The list as it is known, and the newest resourceVersion that any of it was read at. */
export class KnownSidecarSets {
  readonly #now: () => number;
  #known: ListedSidecarSets | undefined;
  #listedAt = Number.NEGATIVE_INFINITY;
  #isRelisting = false;
  #relistedAt = Number.NEGATIVE_INFINITY;
  /** since the list under way began */
  #readSince = new Map<string, SidecarSet | undefined>();
  #newest = "";
  /** uids of the latest that were deleted */
  readonly #gone = new Set<string>();
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Whoever waits gets nothing from before this. `atLeast`: a resourceVersion that others have seen. */
  async list(cluster: Cluster, atLeast = ""): Promise<ListedSidecarSets> {
    const now = this.#now();
    const newest = this.#newestAt(isWithin(now - this.#readAt, RELIST_MS));
    const bound = newerOf(newest.atLeast, atLeast);
    const listed = await listSidecarSets(cluster, { now, ...newest, atLeast: bound, last: this.#known });
    this.#listedAt = now;
    this.#newest = listed.resourceVersion;
    return this.#keep(listed, now);
  }

  /** What is known, with these as they are now. */
  async readSingly(cluster: Cluster, names: ReadonlySet<string>): Promise<ListedSidecarSets> {
    if (this.#known === undefined) return this.list(cluster);
    const now = this.#now();
    if (!isWithin(now - this.#listedAt, RELIST_MS)) this.#relist(cluster, this.#known);
    const read = names.size === 0 ? new Map() : await readByName(cluster, names);
    this.#remember(read, this.#known);
    return this.#keep(withRead(this.#known, read), now);
  }

  /** These were deleted, some of them perhaps unseen: a list that has them is from before. */
  isWithout(uids: readonly string[]): void {
    for (const uid of uids) if (uid !== "") this.#gone.add(uid);
    for (const oldest of [...this.#gone].slice(0, -MAX_GONE)) this.#gone.delete(oldest);
  }

  /** Nobody waits for a long list that repeats what is known. */
  #relist(cluster: Cluster, last: ListedSidecarSets): void {
    const [now, listedAt] = [this.#now(), this.#listedAt];
    if (this.#isRelisting || isWithin(now - this.#relistedAt, RELIST_AGAIN_MS)) return;
    this.#isRelisting = true;
    this.#relistedAt = now;
    this.#readSince = new Map();
    const relist = async () => {
      const newest = this.#newestAt(isWithin(now - listedAt, LAGS_MS));
      const listed = await listSidecarSets(cluster, { now, ...newest, last });
      // They were listed for another reason meanwhile.
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

  /** After a while an older state is no API server that lags, but what was restored from a backup. */
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
