/** Decides what one message in the queue of rollouts says, and which messages are the same work. */
import { createHash } from "node:crypto";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { askedHolds } from "../hold.ts";
import { partitionOf } from "../select/budget.ts";

/** The schedule's turn of a SidecarSet. */
interface Tick {
  readonly kind: "tick";
  readonly sidecarSet: string;
  /** for which the schedule called: whole minutes since 1970 */
  readonly minute: number;
}

/** Somebody is about to store a new SidecarSet, or another spec of one. */
interface Change {
  readonly kind: "change";
  readonly sidecarSet: string;
  /** the new one; empty where the SidecarSet has none */
  readonly hash: string;
  /** 0: unknown */
  readonly generation: number;
  /** uid of the admission request */
  readonly request: string;
}

/** Pods of a SidecarSet are about to be stored as ready, or as failing. */
interface PodNews {
  readonly kind: "pods";
  readonly sidecarSet: string;
  /** half seconds since 1970: all news of one are one piece of work */
  readonly slot: number;
}

/** Containers that start in an order are about to be stored as waiting for their turn, or as ready. */
interface LaunchNews {
  readonly kind: "launch";
  /** of none in particular: what no SidecarSet is called */
  readonly sidecarSet: typeof NO_SIDECARSET;
  /** as for pods */
  readonly slot: number;
}

export type Work = Tick | Change | PodNews | LaunchNews;

/** As SQS wants it. Messages of one group are served one after the other; within five minutes an id counts once. */
export interface Message {
  readonly MessageBody: string;
  readonly MessageGroupId: string;
  readonly MessageDeduplicationId: string;
}

const NO_SIDECARSET = "*";
const MINUTE_MS = 60_000;
const SLOT_MS = 500;
/** Admission comes before storage: what was announced can be read this long after. */
const STORED_AFTER_MS = 200;
/** The longest id that SQS takes. */
const LONGEST_ID = 128;

/** `at` in epoch milliseconds. */
export function tickWork(sidecarSet: string, at: number): Work {
  return { kind: "tick", sidecarSet, minute: Math.floor(at / MINUTE_MS) };
}

/** `at` in epoch milliseconds. */
export function podNews(sidecarSet: string, at: number): Work {
  return { kind: "pods", sidecarSet, slot: Math.floor(at / SLOT_MS) };
}

/** `at` in epoch milliseconds. */
export function launchNews(at: number): Work {
  return { kind: "launch", sidecarSet: NO_SIDECARSET, slot: Math.floor(at / SLOT_MS) };
}

/** What the work is about, for people. */
export function subjectOfWork({ kind, sidecarSet }: Work): string {
  return kind === "launch" ? "the launch order of containers" : `SidecarSet ${sidecarSet}`;
}

/** From when on, in epoch milliseconds, a pass sees all that the message announces; undefined: time does not tell. */
export function seenFrom(work: Work): number | undefined {
  if (work.kind === "tick") return work.minute * MINUTE_MS;
  return work.kind === "change" ? undefined : (work.slot + 1) * SLOT_MS + STORED_AFTER_MS;
}

/** `cluster`: the one it is about, where a deployment serves several; its work waits for none of another's. */
export function messageOf(work: Work, cluster?: string): Message {
  const of = cluster === undefined ? [] : [cluster];
  return {
    MessageBody: JSON.stringify(cluster === undefined ? work : { ...work, cluster }),
    MessageGroupId: groupOf([...of, work.sidecarSet].join("/")),
    MessageDeduplicationId: `${work.kind}-${digest([...of, ...factsOf(work)])}`,
  };
}

/** The cluster that a message is about; undefined: it names none. */
export function clusterOfMessage(body: string): string | undefined {
  const cluster = parseObject(body)?.["cluster"];
  return typeof cluster === "string" ? cluster : undefined;
}

/** @throws Error for a text that is no message of ours */
export function parseWork(body: string): Work {
  const value = parseObject(body);
  if (value !== undefined && isWork(value)) return value as unknown as Work;
  throw new Error("a message in the queue of rollouts is none of ours: it names no SidecarSet and no kind of work");
}

function isWork({ kind, sidecarSet, minute, slot, hash, generation }: Readonly<Record<string, unknown>>): boolean {
  if (typeof sidecarSet !== "string" || sidecarSet === "") return false;
  if (kind === "change") return typeof hash === "string" && Number.isInteger(generation);
  if (kind === "tick") return Number.isInteger(minute);
  return Number.isInteger(slot) && (kind === "pods" || (kind === "launch" && sidecarSet === NO_SIDECARSET));
}

/** Each in its place, so that no two ways of writing them one after the other are the same. */
function factsOf(work: Work): readonly (string | number)[] {
  const { kind, sidecarSet } = work;
  if (kind === "tick") return [kind, sidecarSet, work.minute];
  return kind === "change" ? [kind, sidecarSet, work.hash, work.request] : [kind, sidecarSet, work.slot];
}

/** SidecarSets that were created while no webhook looked may have longer names. */
function groupOf(sidecarSet: string): string {
  return sidecarSet.length <= LONGEST_ID ? sidecarSet : digest([sidecarSet]);
}

function digest(facts: readonly (string | number)[]): string {
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex");
}

function parseObject(body: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

// Decides which SidecarSets get their turn in a minute: all under way, and of those that are settled some to look after.

/** A settled SidecarSet is looked after this often: its pods come and go, and its status counts them. */
export const AUDIT_MINUTES = 5;

/** `minute`: whole minutes since 1970. */
export function isDue(sidecarSet: SidecarSet, minute: number): boolean {
  return !isSettled(sidecarSet) || minute % AUDIT_MINUTES === auditMinute(sidecarSet.metadata?.name ?? "");
}

/** As far as its own status says: everything was seen that it wants, and nothing is under way. */
export function isSettled({ metadata, spec, status }: SidecarSet): boolean {
  const { observedGeneration, latestRevision, matchedPods = 0, updatedPods = 0, updatedReadyPods = 0 } = status ?? {};
  if (observedGeneration === undefined || observedGeneration !== metadata?.generation || !latestRevision) return false;
  const { updateStrategy } = spec;
  if (askedHolds({ spec }).length > 0) return true;
  const wanted = matchedPods - partitionOf(updateStrategy, matchedPods);
  return updatedPods >= wanted && updatedReadyPods === updatedPods;
}

function auditMinute(name: string): number {
  return createHash("sha256").update(name).digest().readUInt32BE() % AUDIT_MINUTES;
}
