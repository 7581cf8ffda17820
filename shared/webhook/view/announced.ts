/** One process's knowledge of announced writes: which may still be stored, and whether it missed any. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import { type Announcement, type Announcements, LANDS_MS, MAX_ANNOUNCEMENTS, NONE_YET } from "./announcements.ts";
import { isOlder, newerOf, olderState } from "./listed-sidecarsets.ts";

/** The times come from other clocks, which may be wrong by minutes. */
const LONG_AGO_MS = 5 * 60_000;
const VERY_LONG_AGO_MS = 60 * 60_000;
/** Limit of the lag of an API server, in writes. This project's webhooks never announce a version so far ahead. */
const MOST_BEHIND = 1_000_000n;
/** A version that no API server knows after this time does not exist. */
const DOUBTED_MS = 10_000;

interface Pending extends Announcement {
  /** epoch milliseconds, by our clock */
  readonly seenAt: number;
}

interface Listed {
  /** epoch milliseconds, by our clock */
  readonly now: number;
  /** resourceVersion of the list that shows everything; absent: not everything was listed */
  readonly listed?: string;
}

interface Settling extends Listed {
  /** names that were read one by one; all others are known from a list, which may be from before */
  readonly singly: ReadonlySet<string>;
}

export class Announced {
  #seen: Announcements | undefined;
  #pending = new Map<number, Pending>();
  /** by sequence, epoch milliseconds: since when no state of the API server has reached the replaced version */
  readonly #doubtedSince = new Map<number, number>();
  /** epoch milliseconds: until then an unseen announcement's write may still be stored */
  #unseenUntil = Number.NEGATIVE_INFINITY;

  /** Names of SidecarSets that were admitted, and may not be stored yet. */
  get names(): ReadonlySet<string> {
    return new Set([...this.#pending.values()].map(({ name }) => name));
  }

  /**
   * Names to read one by one: all, or, beyond `most`, some whose write is stored by now or never will be. Only such a
   * read shows which.
   */
  namesToRead(now: number, most: number): ReadonlySet<string> {
    const { names } = this;
    if (names.size <= most) return names;
    const late = [...this.#pending.values()].filter((one) => isLate(one, now)).map(({ name }) => name);
    return new Set([...new Set(late)].slice(0, most));
  }

  /** The newest resourceVersion that an announcement replaces: an older list does not show it. "": none. */
  get newest(): string {
    return [...this.#pending.values()].reduce((newest, { from }) => newerOf(newest, from), "");
  }

  /** False: all has to be listed for everybody who asks. */
  isAllSeen(now: number): boolean {
    return now >= this.#unseenUntil;
  }

  /** True: nothing was known before, so a full list is needed. */
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
   * Drops announcements whose write cannot be stored any more: it was stored, or the object that it would replace is
   * gone. @param sidecarSet the SidecarSet of a name, read after the announcements; undefined: none; a list shows a
   * creation by its uid alone @returns uids of SidecarSets that existed when they were announced, and are gone @throws
   * KubeError when a read is older than an announced write, unless `listed` shows that no such version existed: then
   * the announcement is dropped
   */
  settle(
    sidecarSet: (name: string) => SidecarSet | undefined,
    { now, singly, listed = "" }: Settling,
  ): readonly string[] {
    const gone: string[] = [];
    for (const one of this.#pending.values()) {
      const { uid, version } = identityOf(sidecarSet(one.name));
      if (isOlder(version, one.from)) {
        this.#ignoreUnknown(one, version, { now, listed });
        continue;
      }
      const isSingle = singly.has(one.name);
      const isOver = isReplaced(one, { uid, version, isSingle });
      const isDropped = isOver || (isSingle && isLate(one, now));
      if (isDropped) this.#pending.delete(one.sequence);
      if (isOver && isAnother(one, uid)) gone.push(one.uid);
    }
    return gone;
  }

  /**
   * Drops announcements that claim to replace a version which the API server never had. Otherwise anybody with the
   * right to write announcements could stop all admissions. For some time afterwards every admission lists all
   * SidecarSets. @param version resourceVersion of the newest list @returns their names
   */
  ignoreImpossible(version: string, now: number): readonly string[] {
    const ignored: string[] = [];
    for (const { sequence, name, from } of this.#pending.values()) {
      if (!isOlder(version, from)) {
        this.#doubtedSince.delete(sequence);
        continue;
      }
      const since = this.#doubtedSince.get(sequence) ?? now;
      this.#doubtedSince.set(sequence, since);
      if (!isFarAhead(from, version) && now - since < DOUBTED_MS) continue;
      this.#ignore(sequence, now);
      ignored.push(name);
    }
    return ignored;
  }

  #ignoreUnknown({ sequence, from }: Pending, version: string, { now, listed }: Required<Listed>): void {
    if (listed === "" || isOlder(listed, from)) throw olderState(version, from);
    this.#ignore(sequence, now);
  }

  #ignore(sequence: number, now: number): void {
    this.#pending.delete(sequence);
    this.#doubtedSince.delete(sequence);
    this.#unseenUntil = now + LANDS_MS;
  }

  #add(one: Pending): void {
    this.#pending.set(one.sequence, one);
    if (one.from === "" || one.uid === "") return;
    for (const { sequence, from, uid } of this.#pending.values())
      if (from === "" && uid === one.uid) this.#pending.delete(sequence);
  }

  /** Marks the announcements as possibly incomplete from now on. */
  forget(): void {
    this.#seen = undefined;
    this.#pending = new Map();
  }
}

function isFarAhead(from: string, version: string): boolean {
  return BigInt(from) - BigInt(version) > MOST_BEHIND;
}

function identityOf(sidecarSet: SidecarSet | undefined) {
  const { uid = "", resourceVersion: version = "" } = sidecarSet?.metadata ?? {};
  return { uid, version };
}

interface Read {
  readonly uid: string;
  readonly version: string;
  /** by itself, not in a list */
  readonly isSingle: boolean;
}

function isReplaced({ from, uid }: Pending, read: Read): boolean {
  const isCreatedLater = !read.isSingle && from === "" && read.uid !== uid;
  return read.version !== from && !isCreatedLater;
}

function isAnother({ from, uid }: Pending, found: string): boolean {
  return from !== "" && found !== uid;
}

function isLate({ seenAt, at }: Pending, now: number): boolean {
  return now - seenAt > LANDS_MS || now - at > VERY_LONG_AGO_MS;
}

/** False after another epoch, or a smaller sequence: somebody restarted the announcements, or restored old ones. */
function goesOn(before: Announcements, { epoch, sequence, begunAgainAt }: Announcements): boolean {
  const isSame = before.epoch === epoch || before.epoch === NONE_YET.epoch;
  return isSame && before.begunAgainAt === begunAgainAt && before.sequence <= sequence;
}

function isUnbroken(known: number, { sequence, latest }: Announcements): boolean {
  return sequence - known <= latest.length;
}

/** True if no announcement is missing: a dropped or lost one is stored by now or never will be. */
function isWhole({ latest, begunAgainAt }: Announcements, now: number): boolean {
  const [oldest] = latest;
  const isRoomy = oldest === undefined || latest.length < MAX_ANNOUNCEMENTS || now - oldest.at > LONG_AGO_MS;
  return isRoomy && now - begunAgainAt > LONG_AGO_MS;
}
