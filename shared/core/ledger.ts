/**
 * The ledger reserves pods in one object that passes write with compare-and-swap. So maxUnavailable and partition hold
 * even if passes overlap, freeze or are killed.
 *
 * 1. A pass reads the ledger first, then it lists the pods.
 * 2. Used budget = pods seen down, plus reserved ones.
 * 3. A pass writes to a pod only while it is reserved, on condition that it still has the reserved resourceVersion.
 * 4. A pass frees a reservation only when it sees the pod at a later resourceVersion, or gone. It fences an unwanted
 * one: a write that changes only an annotation, so that a late patch fails. It also fences reservations for which a
 * smaller budget, or a release that others carry already, leaves no room. Only the pass that reserved an eviction sends
 * it, and once: if it was refused, or never sent, the reservation is freed although the pod is unchanged. Only the
 * fence of another pass that had read the ledger before may come late then. The same holds for a patch that the API
 * server refused, if no other write for that reservation may come late: the pass that reserved the pod knows its own
 * writes, and a pass that takes over a reservation marks it as shared before it writes to the pod. A shared one is not
 * freed in this way.
 * 5. The ledger names the SidecarSet's generation. A pass writes observedGeneration only when the ledger names it and
 * nothing is reserved under an older one.
 */
import { createHash } from "node:crypto";
import { HASH_ANNOTATION } from "../api/names.ts";
import type { SidecarSet } from "../api/sidecarset.ts";
import { isLater } from "../go/resource-version.ts";
import { type Departure, RESTARTED_KINDS, type Restarted, type RestartedKind } from "./actions.ts";
import { formatRefused, parseRefused, type RefusedPod } from "./refused-pods.ts";

/**
 * Limit of pods that are written to at once, including evicted ones without a successor; the window is refilled. A line
 * has at most 460 bytes, and a ConfigMap 1 MiB. A lower limit leaves more idle time between batches; a higher one means
 * more fences when a rollout is paused.
 */
export const MAX_RESERVATIONS = 2_000;

/** The limit for an Advanced StatefulSet: its ledger is written again for each pod with a second write. */
export const MAX_OF_SET = 1_000;

/** A pod in the state that a write requires. */
export interface PodState {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** the kind of a workload to restart; absent: the entry is a pod */
  readonly workload?: RestartedKind;
}

export interface Reservation extends PodState {
  /** generation of the SidecarSet at the pod's first reservation; 0: it was another SidecarSet with the same name */
  readonly generation: number;
  /** hash of the SidecarSet that the pod will get */
  readonly revision: string;
  /** true: a pass that did not make the reservation may write to the pod too */
  readonly isShared?: true;
}

/** The SidecarSet as it was read after the ledger. */
export interface Subject {
  readonly uid: string;
  readonly generation: number;
  /** hash of the SidecarSet */
  readonly revision: string;
}

export interface Ledger {
  /** uid of the SidecarSet; "" before the first write */
  readonly uid: string;
  readonly generation: number;
  readonly reservations: readonly Reservation[];
  /** digest of the annotations that decided all reservations; absent: it is unknown, or they differ */
  readonly steering?: string;
  /** results of metric checks (`rollout/rules/checks/check-records.ts`); absent: no checks */
  readonly checks?: string;
  /** evicted pods that have no successor yet; absent: none */
  readonly departed?: readonly Departure[];
  /** workloads that are being restarted; absent: none */
  readonly restarted?: readonly Restarted[];
  /** pods to which the API server refused a write of this generation; absent: none */
  readonly refused?: readonly RefusedPod[];
  /** results of image pulls (`rollout/rules/pre-pull/pull-facts.ts`); absent: no pull pod exists */
  readonly pulls?: string;
}

export const EMPTY_LEDGER: Ledger = { uid: "", generation: 0, reservations: [] };

/** The owner of a ledger: a SidecarSet, or an Advanced StatefulSet, whose lines may also be about claims. */
export type LedgerKind = "sidecarset" | "statefulset";

const UID_KEYS = { sidecarset: "sidecarSetUID", statefulset: "statefulSetUID" } as const;

/** Name of the ConfigMap. The owner's name may be as long as a ConfigMap's name. */
export function ledgerName(owner: string, kind: LedgerKind = "sidecarset"): string {
  const name = `${kind}-ledger-${owner}`;
  if (name.length <= 253) return name;
  return `${name.slice(0, 236)}-${createHash("sha256").update(owner).digest("hex").slice(0, 16)}`;
}

/** A ConfigMap's data, with one line for each reservation, so that people can read it. */
export function formatLedger(ledger: Ledger, kind: LedgerKind = "sidecarset"): Readonly<Record<string, string>> {
  const lines = ledger.reservations.map(
    ({ namespace, name, uid, resourceVersion, generation, revision, workload }) =>
      `${namespace}/${name} ${uid} ${resourceVersion} ${generation} ${revision}${workload ? ` ${workload}` : ""}\n`,
  );
  const { checks, departed = [], restarted = [], refused = [], pulls } = ledger;
  return {
    [UID_KEYS[kind]]: ledger.uid,
    generation: String(ledger.generation),
    reservations: lines.join(""),
    ...formatShared(ledger),
    ...(checks === undefined ? {} : { checks }),
    ...(departed.length > 0 ? { departed: formatDepartures(departed) } : {}),
    ...(restarted.length > 0 ? { restarted: restarted.map(formatRestarted).join("") } : {}),
    ...(refused.length > 0 ? { refused: refused.map(formatRefused).join("") } : {}),
    ...(pulls === undefined ? {} : { pulls }),
  };
}

/** The shared marks are a separate text: older versions would refuse an extra word in a reservation's line. */
function formatShared({ reservations }: Ledger): Readonly<Record<string, string>> {
  const shared = reservations.filter(({ isShared }) => isShared).map(({ uid }) => `${uid}\n`);
  return shared.length === 0 ? {} : { shared: shared.join("") };
}

/** The ledger; undefined: the data is no ledger. The reservations are then unknown, and nothing may be written. */
export function parseLedger(data: Readonly<Record<string, string>> = {}): Ledger | undefined {
  const { generation, reservations } = data;
  const uid = data[UID_KEYS.sidecarset] ?? data[UID_KEYS.statefulset];
  if (uid === undefined || generation === undefined || !/^\d{1,15}$/.test(generation)) return undefined;
  const reserved = parseLines(reservations, parseReservation);
  const departed = parseLines(data["departed"], parseDeparture);
  const restarted = parseLines(data["restarted"], parseRestarted);
  if (!(reserved && departed && restarted)) return undefined;
  // A line that cannot be read is skipped: it costs one more try.
  const refused = (data["refused"] ?? "").split("\n").flatMap((line) => parseRefused(line) ?? []);
  return {
    uid,
    generation: Number(generation),
    reservations: withMarks(reserved, data["shared"]),
    ...opaque(data, "checks"),
    ...(departed.length > 0 ? { departed } : {}),
    ...(restarted.length > 0 ? { restarted } : {}),
    ...(refused.length > 0 ? { refused } : {}),
    ...opaque(data, "pulls"),
  };
}

/** A text that other code reads; no field if it is absent. */
function opaque<K extends "checks" | "pulls">(data: Readonly<Record<string, string>>, key: K) {
  return (data[key] === undefined ? {} : { [key]: data[key] }) as { readonly [key in K]?: string };
}

function withMarks(reservations: readonly Reservation[], shared = ""): readonly Reservation[] {
  const uids = new Set(shared.split("\n"));
  return reservations.map((one) => (uids.has(one.uid) ? { ...one, isShared: true } : one));
}

/** The parsed lines; undefined: one line cannot be read. */
function parseLines<T>(text: string | undefined, parse: (line: string) => T | undefined): readonly T[] | undefined {
  const lines = (text ?? "").split("\n").filter(Boolean);
  const parsed = lines.map(parse).filter((one) => one !== undefined);
  return parsed.length === lines.length ? parsed : undefined;
}

function parseReservation(line: string): Reservation | undefined {
  const match = /^([^ /]+)\/([^ /]+) ([^ ]+) ([^ ]+) (\d{1,15}) ([^ ]*)(?: ([^ ]+))?$/.exec(line);
  if (!match) return undefined;
  const [, namespace = "", name = "", uid = "", resourceVersion = "", generation = "", revision = "", kind] = match;
  const workload = kindOf(kind);
  if (workload === undefined && kind !== undefined) return undefined;
  const pod = { namespace, name, uid, resourceVersion, generation: Number(generation), revision };
  return workload === undefined ? pod : { ...pod, workload };
}

function kindOf(text: string | undefined): RestartedKind | undefined {
  return RESTARTED_KINDS.find((kind) => kind === text);
}

function formatRestarted({ workload, namespace, name, uid }: Restarted): string {
  return `${workload} ${namespace}/${name} ${uid}\n`;
}

function parseRestarted(line: string): Restarted | undefined {
  const [, kind, namespace = "", name = "", uid = ""] = /^([^ ]+) ([^ /]+)\/([^ /]+) ([^ ]+)$/.exec(line) ?? [];
  const workload = kindOf(kind);
  return workload && { workload, namespace, name, uid };
}

function formatDepartures(departed: readonly Departure[]): string {
  return departed
    .map(({ namespace, name, uid, owner, of, until, since }) =>
      [`${namespace}/${name}`, uid, owner, of, until, since].join(" ").trimEnd().concat("\n"),
    )
    .join("");
}

function parseDeparture(line: string): Departure | undefined {
  const match = /^([^ /]+)\/([^ /]+) ([^ ]+) ([^ ]+) (-1|\d{1,9}) ([^ ]+)(?: ([^ ]+))?$/.exec(line);
  if (!match) return undefined;
  const [, namespace = "", name = "", uid = "", owner = "", of = "", until = "", since = ""] = match;
  return { namespace, name, uid, owner, of: Number(of), until, since };
}

/** resourceVersion of each pod that was read, by uid. null: the pod is gone. An absent uid was not read. */
export type Seen = ReadonlyMap<string, string | null>;

export interface Reconciled {
  /** reservations that stay, because their patches may still arrive */
  readonly kept: readonly Reservation[];
  readonly freed: readonly Reservation[];
}

/**
 * Applies rule 4, and the second half of rule 5. Undefined if the ledger names a newer generation than `subject`: the
 * caller starts again. `isRefused`: this pass made the reservation, and the API server refused every write that it sent
 * for it.
 */
export function reconcileLedger(
  ledger: Ledger,
  seen: Seen,
  subject: Subject,
  isRefused: (reservation: Reservation) => boolean = () => false,
): Reconciled | undefined {
  const isSame = ledger.uid === subject.uid;
  if (isSame && ledger.generation > subject.generation) return undefined;
  const kept: Reservation[] = [];
  const freed: Reservation[] = [];
  const cannotComeLate = (one: Reservation) => one.isShared !== true && isRefused(one);
  for (const reservation of ledger.reservations) {
    const version = seen.get(reservation.uid);
    if (isThrough(version, reservation) || cannotComeLate(reservation)) freed.push(reservation);
    else kept.push(isSame ? reservation : { ...reservation, generation: 0 });
  }
  return { kept, freed };
}

/** True if no patch can arrive any more. An older version comes from a slow replica: the patch may still arrive. */
function isThrough(version: string | null | undefined, { resourceVersion }: Reservation): boolean {
  return version === null || isLater(version, resourceVersion);
}

/** True if all reservations are for exactly this generation and hash. Later reservations counted them as used. */
export function areReservedFor(kept: readonly Reservation[], { generation, revision }: Subject): boolean {
  return kept.every((reservation) => reservation.generation === generation && reservation.revision === revision);
}

export function ledgerSubject({ metadata }: SidecarSet): Subject {
  return {
    uid: metadata?.uid ?? "",
    generation: metadata?.generation ?? 0,
    revision: metadata?.annotations?.[HASH_ANNOTATION] ?? "",
  };
}

export interface LedgerPlan {
  /** the ledger to store before any write to a pod */
  readonly ledger: Ledger;
  /** uids of `wanted` that are reserved: passes may write to them after the ledger is stored */
  readonly granted: ReadonlySet<string>;
  /** reservations that stay, although their pods are no longer wanted */
  readonly fenced: readonly Reservation[];
}

interface Limits {
  readonly limit?: number;
  readonly counted?: ReadonlySet<string> | undefined;
}

const NONE: ReadonlySet<string> = new Set();

/**
 * Applies rules 2, 3 and 5: kept reservations, and `wanted` pods in order while there is room. The decision for
 * `wanted` must have counted the kept ones as used. A kept one that is wanted again gets the new revision but keeps its
 * generation, because the older patch may still land. While one must be fenced nothing new is reserved: its late patch
 * may take the partition's place. `counted`: uids for which `wanted` leaves that place.
 */
export function withReservations(
  kept: readonly Reservation[],
  wanted: readonly PodState[],
  subject: Subject,
  { limit = MAX_RESERVATIONS, counted = NONE }: Limits = {},
): LedgerPlan {
  const { uid, generation, revision } = subject;
  const states = new Set(wanted.map(stateOf));
  const isWanted = (reservation: Reservation) => states.has(stateOf(reservation));
  const isKept = new Set(kept.map((reservation) => reservation.uid));
  const fenced = kept.filter((reservation) => !isWanted(reservation));
  const room = fenced.every(({ uid }) => counted.has(uid)) ? Math.max(0, limit - kept.length) : 0;
  const added = wanted
    .filter((pod) => !isKept.has(pod.uid))
    .slice(0, room)
    .map((pod) => reservationOf(pod, subject));
  const again = kept.filter(isWanted);
  const reservations = [...kept.map((old) => (isWanted(old) ? { ...old, revision } : old)), ...added];
  return {
    ledger: { uid, generation, reservations },
    granted: new Set([...again, ...added].map((reservation) => reservation.uid)),
    fenced,
  };
}

/**
 * The `plan`, with a mark on every kept reservation that another pass made and this pass patches. The other pass must
 * not free it while this pass's patch may still arrive.
 */
export function takenOver(
  plan: LedgerPlan,
  kept: readonly Reservation[],
  isOwn: (reservation: Reservation) => boolean,
): LedgerPlan {
  const others = new Set(kept.filter((one) => !isOwn(one)).map(({ uid }) => uid));
  const isTaken = ({ uid, workload }: Reservation) => !workload && others.has(uid) && plan.granted.has(uid);
  const reservations = plan.ledger.reservations.map((one) =>
    isTaken(one) ? { ...one, isShared: true as const } : one,
  );
  return { ...plan, ledger: { ...plan.ledger, reservations } };
}

/**
 * The `ledger` with further pods, while there is room, for writes other than patches. The caller has counted reserved
 * pods as used. If the ledger is of another spec, no pod is added.
 */
export function alsoReserved(
  ledger: Ledger,
  pods: readonly PodState[],
  subject: Subject,
): { readonly ledger: Ledger; readonly added: readonly Reservation[] } {
  const isSame = ledger.uid === subject.uid && ledger.generation === subject.generation;
  const lines = ledger.reservations.length + (ledger.departed?.length ?? 0);
  const room = isSame ? Math.max(0, MAX_RESERVATIONS - lines) : 0;
  const added = pods.slice(0, room).map((pod) => reservationOf(pod, subject));
  return { ledger: { ...ledger, reservations: [...ledger.reservations, ...added] }, added };
}

export function withoutThese(ledger: Ledger, gone: ReadonlySet<Reservation>): Ledger {
  const uids = new Set([...gone].map(({ uid }) => uid));
  return { ...ledger, reservations: ledger.reservations.filter(({ uid }) => !uids.has(uid)) };
}

function reservationOf(state: PodState, { generation, revision }: Subject): Reservation {
  const { namespace, name, uid, resourceVersion, workload } = state;
  const pod = { namespace, name, uid, resourceVersion, generation, revision };
  return workload === undefined ? pod : { ...pod, workload };
}

export function stateOf({ uid, resourceVersion }: PodState): string {
  return `${uid} ${resourceVersion}`;
}

/**
 * The `next` ledger with the annotations that decided it. They have no generation, so the stored ones stay until all
 * earlier reservations are gone.
 */
export function withSteering(next: Ledger, { steering: stored }: Ledger, kept: number, steering: string): Ledger {
  if (kept === 0 || stored === steering) return { ...next, steering };
  return stored === undefined ? next : { ...next, steering: stored };
}

/** Rule 5: true if status.observedGeneration may show `subject`'s generation once `ledger` is stored. */
export function isGenerationObservable(ledger: Ledger, subject: Subject): boolean {
  return (
    ledger.uid === subject.uid &&
    ledger.generation === subject.generation &&
    ledger.reservations.every(({ generation }) => generation === subject.generation)
  );
}

/** True if `next` equals `stored`, so that a write would change nothing. */
export function isSameLedger(stored: Ledger, next: Ledger): boolean {
  const isSteeredAlike = stored.steering === next.steering;
  return isSteeredAlike && JSON.stringify(formatLedger(stored)) === JSON.stringify(formatLedger(next));
}
