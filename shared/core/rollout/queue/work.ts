/** The content of one message in the queue of rollouts. It also tells which messages are the same work. */
import { createHash } from "node:crypto";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { askedHolds } from "../hold.ts";
import { partitionOf } from "../select/budget.ts";

/** Work of one scheduled run for a SidecarSet. */
interface Tick {
  readonly kind: "tick";
  readonly sidecarSet: string;
  /** the scheduled time, in whole minutes since 1970 */
  readonly minute: number;
}

/** Work after the admission of a new SidecarSet or a changed spec. */
interface Change {
  readonly kind: "change";
  readonly sidecarSet: string;
  /** hash of the new spec; empty if the SidecarSet has none */
  readonly hash: string;
  /** generation of the SidecarSet; 0: it is unknown */
  readonly generation: number;
  /** uid of the admission request */
  readonly request: string;
}

/** Work after the admission of a SidecarSet's pods that become ready or fail. */
interface PodNews {
  readonly kind: "pods";
  readonly sidecarSet: string;
  /** half seconds since 1970; all news within one of them is one piece of work */
  readonly slot: number;
}

/** Work after the admission of containers with a launch order that wait or become ready. */
interface LaunchNews {
  readonly kind: "launch";
  /** a name that no SidecarSet can have, because the work is for none */
  readonly sidecarSet: typeof NO_SIDECARSET;
  /** half seconds since 1970, as for pods */
  readonly slot: number;
}

export type Work = Tick | Change | PodNews | LaunchNews;

/** A message in SQS's terms. SQS serves messages of one group in order, and drops a repeated id within five minutes. */
export interface Message {
  readonly MessageBody: string;
  readonly MessageGroupId: string;
  readonly MessageDeduplicationId: string;
}

const NO_SIDECARSET = "*";
const MINUTE_MS = 60_000;
const SLOT_MS = 500;
/** Milliseconds after which an announced change can be read, because admission precedes storage. */
const STORED_AFTER_MS = 200;
/** The longest id that SQS accepts. */
const LONGEST_ID = 128;

/** The work of a tick. `at`: epoch milliseconds. */
export function tickWork(sidecarSet: string, at: number): Work {
  return { kind: "tick", sidecarSet, minute: Math.floor(at / MINUTE_MS) };
}

/** The work for changed pods. `at`: epoch milliseconds. */
export function podNews(sidecarSet: string, at: number): Work {
  return { kind: "pods", sidecarSet, slot: Math.floor(at / SLOT_MS) };
}

/** The work for starting pods. `at`: epoch milliseconds. */
export function launchNews(at: number): Work {
  return { kind: "launch", sidecarSet: NO_SIDECARSET, slot: Math.floor(at / SLOT_MS) };
}

/** The subject of the work, as text. */
export function subjectOfWork({ kind, sidecarSet }: Work): string {
  return kind === "launch" ? "the launch order of containers" : `SidecarSet ${sidecarSet}`;
}

/** The time from which a pass sees everything that the message announces, in epoch milliseconds; undefined: unknown. */
export function seenFrom(work: Work): number | undefined {
  if (work.kind === "tick") return work.minute * MINUTE_MS;
  return work.kind === "change" ? undefined : (work.slot + 1) * SLOT_MS + STORED_AFTER_MS;
}

/** The message for the work. `cluster`: name of one of several clusters, whose work runs in parallel. */
export function queueMessage(work: Work, cluster?: string): Message {
  const of = cluster === undefined ? [] : [cluster];
  return {
    MessageBody: JSON.stringify(cluster === undefined ? work : { ...work, cluster }),
    MessageGroupId: groupOf([...of, work.sidecarSet].join("/")),
    MessageDeduplicationId: `${work.kind}-${digest([...of, ...factsOf(work)])}`,
  };
}

/** The cluster that a message names; undefined: it names none. */
export function clusterOfMessage(body: string): string | undefined {
  const cluster = parseObject(body)?.["cluster"];
  return typeof cluster === "string" ? cluster : undefined;
}

/** Reads a message. @throws Error for a text that is no message of this queue */
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

/** The facts in a fixed order, so that two different works never get the same id. */
function factsOf(work: Work): readonly (string | number)[] {
  const { kind, sidecarSet } = work;
  if (kind === "tick") return [kind, sidecarSet, work.minute];
  return kind === "change" ? [kind, sidecarSet, work.hash, work.request] : [kind, sidecarSet, work.slot];
}

/** The group of a message. A name beyond the limit is hashed: a SidecarSet created without the webhook may have one. */
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

// Chooses the SidecarSets of a pass in a given minute: all that are rolling out, and some settled ones.

/** Minutes between two looks at a settled SidecarSet, whose status must follow its pods. */
export const AUDIT_MINUTES = 5;

/** True if a pass should look at the SidecarSet. `minute`: whole minutes since 1970. */
export function isPassDue(sidecarSet: SidecarSet, minute: number): boolean {
  return !isSettled(sidecarSet) || minute % AUDIT_MINUTES === auditMinute(sidecarSet.metadata?.name ?? "");
}

/** True if the status says that everything is done and nothing is running. */
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
