/** Tells which requests may recreate containers now: one per pod, and within the limit of each batch. */
import type { ContainerRecreateRequest } from "../../api/container-recreate-request.ts";
import { RECREATE_BATCH_LABEL, RECREATE_MAX_UNAVAILABLE_ANNOTATION, RECREATE_POD_UID_LABEL } from "../../api/names.ts";
import { scaleIntOrPercent } from "../../go/int-or-percent.ts";
import { compareUtf8 } from "../../go/json/go-json.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import { inTurns } from "../../go/sequence.ts";

/** Requests that are created together all exist before the first one begins. */
const BATCH_SECONDS = 2;

export interface Waiting {
  readonly request: ContainerRecreateRequest;
  /** completes "It …" */
  readonly why: string;
  /** for a moment only */
  readonly isBrief: boolean;
}

export interface Choice {
  /**
   * Running requests first, then older ones, with namespaces in turns. If only the first ones have a place, a namespace
   * with many or endless requests leaves places for others.
   */
  readonly chosen: readonly ContainerRecreateRequest[];
  readonly waiting: readonly Waiting[];
}

/** The used places: uids of pods, and numbers by batch. */
interface Taken {
  readonly pods: Set<string>;
  readonly ofBatch: Map<string, number>;
  readonly sizes: ReadonlyMap<string, number>;
}

/**
 * Chooses among all requests, including finished ones. The order of a batch never changes, and finished requests stay
 * finished. A pass with an older list therefore chooses the same ones, so overlapping passes keep the limit without a
 * lock.
 */
export function chooseRequests(requests: readonly ContainerRecreateRequest[], now: string): Choice {
  const taken: Taken = { pods: new Set(), ofBatch: countOf(requests.filter(isStuck)), sizes: countOf(requests) };
  const chosen: ContainerRecreateRequest[] = [];
  const waiting: Waiting[] = [];
  for (const request of requests.filter(isUnfinished).sort(compareTurns)) {
    const held = heldBy(request, taken, now);
    if (held) {
      waiting.push({ request, ...held });
      continue;
    }
    chosen.push(request);
    taken.pods.add(podOf(request));
    const batch = batchOf(request);
    if (batch !== undefined) taken.ofBatch.set(batch, (taken.ofBatch.get(batch) ?? 0) + 1);
  }
  return { chosen: inTurns(chosen, ({ metadata }) => metadata?.namespace ?? ""), waiting };
}

function heldBy(request: ContainerRecreateRequest, taken: Taken, now: string): Omit<Waiting, "request"> | undefined {
  if (taken.pods.has(podOf(request))) return { why: "waits for another request for the same pod", isBrief: false };
  const batch = batchOf(request);
  if (batch === undefined) return undefined;
  if (!isGathered(request, now)) return { why: `waits for the rest of batch ${batch} to be made`, isBrief: true };
  const used = taken.ofBatch.get(batch) ?? 0;
  const limit = limitOf(request, taken.sizes.get(batch) ?? 1);
  if (used < limit) return undefined;
  return {
    why: `waits for its turn in batch ${batch}: at most ${limit} at once, ${used} under way or not back`,
    isBrief: false,
  };
}

function isUnfinished({ metadata, status }: ContainerRecreateRequest): boolean {
  return !status?.completionTime && !metadata?.deletionTimestamp;
}

/** True when the request ended before a stopped container was back: its pod may not serve. */
function isStuck({ status }: ContainerRecreateRequest): boolean {
  const states = status?.containerRecreateStates ?? [];
  return Boolean(status?.completionTime) && states.some(({ isKilled, phase }) => isKilled && phase !== "Succeeded");
}

function countOf(requests: readonly ContainerRecreateRequest[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const request of requests) {
    const batch = batchOf(request);
    if (batch !== undefined) counts.set(batch, (counts.get(batch) ?? 0) + 1);
  }
  return counts;
}

/** The pod's key. It has the namespace, because a request stored without its webhook may have any uid. */
function podOf({ metadata }: ContainerRecreateRequest): string {
  return `${metadata?.namespace} ${metadata?.labels?.[RECREATE_POD_UID_LABEL]}`;
}

/** Namespace and name of the batch; undefined: none. */
function batchOf({ metadata }: ContainerRecreateRequest): string | undefined {
  const name = metadata?.labels?.[RECREATE_BATCH_LABEL];
  return name ? `${metadata?.namespace ?? ""}/${name}` : undefined;
}

/** At least one: a batch that may not begin would never end. An unreadable limit also counts as one. */
function limitOf({ metadata }: ContainerRecreateRequest, size: number): number {
  const text = metadata?.annotations?.[RECREATE_MAX_UNAVAILABLE_ANNOTATION] ?? "1";
  const value = /^\d{1,9}$/.test(text) ? Number(text) : scaleIntOrPercent(text, size);
  return Math.max(1, value ?? 1);
}

function isGathered({ metadata, status }: ContainerRecreateRequest, now: string): boolean {
  if (status?.phase === "Recreating") return true;
  return (secondsBetween(metadata?.creationTimestamp ?? now, now) ?? 0) >= BATCH_SECONDS;
}

function compareTurns(a: ContainerRecreateRequest, b: ContainerRecreateRequest): number {
  return (
    Number(b.status?.phase === "Recreating") - Number(a.status?.phase === "Recreating") ||
    compareUtf8(a.metadata?.creationTimestamp ?? "", b.metadata?.creationTimestamp ?? "") ||
    compareUtf8(a.metadata?.name ?? "", b.metadata?.name ?? "")
  );
}
