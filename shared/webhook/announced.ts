/** What one process knows of the writes that were announced: which may still be stored, and whether it has missed any. */
import type { SidecarSet } from "../api/sidecarset.ts";
import { type Announcement, type Announcements, LANDS_MS, MAX_ANNOUNCEMENTS, NONE_YET } from "./announcements.ts";
import { isOlder, newerOf, olderState } from "./listed-sidecarsets.ts";

/** By other clocks than ours, which may be wrong by minutes. */
const LONG_AGO_MS = 5 * 60_000;
const VERY_LONG_AGO_MS = 60 * 60_000;

interface Pending extends Announcement {
  /** epoch milliseconds, by our clock */
  readonly seenAt: number;
}

interface Settling {
  /** epoch milliseconds, by our clock */
  readonly now: number;
  readonly isList: boolean;
}

export class Announced {
  #seen: Announcements | undefined;
  #pending = new Map<number, Pending>();
  /** epoch milliseconds: until then something may be stored whose announcement was never seen */
  #unseenUntil = Number.NEGATIVE_INFINITY;

  /** Names of those that were admitted, and perhaps not stored yet. */
  get names(): ReadonlySet<string> {
    return new Set([...this.#pending.values()].map(({ name }) => name));
  }

  /** The newest resourceVersion that one of them replaces: a list from before that tells nothing of them. "": none. */
  get newest(): string {
    return [...this.#pending.values()].reduce((newest, { from }) => newerOf(newest, from), "");
  }

  /** False: all has to be listed for everybody who asks. */
  isAllSeen(now: number): boolean {
    return now >= this.#unseenUntil;
  }

  /** True: nothing was known before, so that all has to be listed. */
  take(announcements: Announcements, now: number): boolean {
    const before = this.#seen;
    const { latest } = announcements;
    const known = before !== undefined && goesOn(before, announcements) ? before.sequence : undefined;
    if (known === undefined) this.#pending = new Map();
    for (const one of latest) if (known === undefined || one.sequence > known) this.#add({ ...one, seenAt: now });
    const isComplete = known === undefined ? !before && isWhole(announcements, now) : isUnbroken(known, announcements);
    if (!isComplete) this.#unseenUntil = now + LANDS_MS;
    this.#seen = announcements;
    return before === undefined;
  }

  /**
   * Drops what can't be stored any more, having been, or because it would replace what is no longer there.
   * @param sidecarSet under a name as it was read after the announcements were, undefined: none; in a list, which may
   *   be from before, a creation is known by its uid alone
   * @returns uids of those that were there when they were announced, and are no more
   * @throws KubeError where that is from before the announced write was admitted
   */
  settle(sidecarSet: (name: string) => SidecarSet | undefined, { now, isList }: Settling): readonly string[] {
    const gone: string[] = [];
    for (const one of this.#pending.values()) {
      const { uid = "", resourceVersion: version = "" } = sidecarSet(one.name)?.metadata ?? {};
      if (isOlder(version, one.from)) throw olderState(version, one.from);
      const isOver = isReplaced(one, { uid, version, isList });
      if (isOver || isLate(one, { now, isList })) this.#pending.delete(one.sequence);
      if (isOver && isAnother(one, uid)) gone.push(one.uid);
    }
    return gone;
  }

  #add(one: Pending): void {
    this.#pending.set(one.sequence, one);
    if (one.from === "" || one.uid === "") return;
    for (const { sequence, from, uid } of this.#pending.values())
      if (from === "" && uid === one.uid) this.#pending.delete(sequence);
  }

  /** What is announced from now on may not be all. */
  forget(): void {
    this.#seen = undefined;
    this.#pending = new Map();
  }
}

interface Read {
  readonly uid: string;
  readonly version: string;
  readonly isList: boolean;
}

function isReplaced({ from, uid }: Pending, read: Read): boolean {
  const isCreatedLater = read.isList && from === "" && read.uid !== uid;
  return read.version !== from && !isCreatedLater;
}

function isAnother({ from, uid }: Pending, found: string): boolean {
  return from !== "" && found !== uid;
}

function isLate({ seenAt, at }: Pending, { now, isList }: Settling): boolean {
  if (isList) return false;
  return now - seenAt > LANDS_MS || now - at > VERY_LONG_AGO_MS;
}

/** Another epoch, or fewer than there were: somebody has begun them again, or put back what there was. */
function goesOn(before: Announcements, { epoch, sequence, begunAgainAt }: Announcements): boolean {
  const isSame = before.epoch === epoch || before.epoch === NONE_YET.epoch;
  return isSame && before.begunAgainAt === begunAgainAt && before.sequence <= sequence;
}

function isUnbroken(known: number, { sequence, latest }: Announcements): boolean {
  return sequence - known <= latest.length;
}

/** What was dropped to make room for these, or lost when they were begun again, is stored by now, or never. */
function isWhole({ latest, begunAgainAt }: Announcements, now: number): boolean {
  const [oldest] = latest;
  const isRoomy = oldest === undefined || latest.length < MAX_ANNOUNCEMENTS || now - oldest.at > LONG_AGO_MS;
  return isRoomy && now - begunAgainAt > LONG_AGO_MS;
}
