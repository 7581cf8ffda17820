/** A Lease that saves passes from doing the same work twice. The ledger, and not the Lease, makes writes safe. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { DEFAULT_ROLLOUT_SETTINGS, type RolloutSettings } from "../../core/rollout/rollout-settings.ts";
import { about, ifThere, isKubeError } from "../../kube/error.ts";
import { type Cluster, LEASES } from "../../kube/port.ts";
import type { Clock } from "./clock.ts";

const NAME = "sidecarset-rollout";
/** Name of the Lease of passes over Advanced StatefulSets. */
export const SET_LEASE = "sidecarset-ordered-sets";
/** The name of the SidecarSet that had the last turn. The next pass begins after it. */
const CURSOR_ANNOTATION = "sidecarset.kruise.io/last-served";
/** The pass's feature gates, in the form of FEATURE_GATES, for readers that predict passes. */
const GATES_ANNOTATION = "sidecarset.kruise.io/feature-gates";
/** "true": a SidecarSet asks for drains, or pods may still be drained, so that passes look for such pods. */
const DRAINS_ANNOTATION = "sidecarset.kruise.io/drains";
const DURATION_SECONDS = 30;
const RENEW_MS = 10_000;

/**
 * Holders of this process whose pass has ended, although the Lease may still name them. Without this list the next pass
 * waits until the Lease expires.
 */
export type OverPasses = Set<string>;

interface Lease extends KubernetesObject {
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly renewTime?: string;
  };
}

/** The Lease before this pass. */
export interface LeaseState {
  readonly stored?: Lease;
  /** the recorded cursor; "" if no pass has recorded one */
  readonly cursor: string;
  /** true: the last pass recorded that pods may be drained */
  readonly mayDrain?: boolean;
  /** the pass that holds the Lease; absent: none does */
  readonly heldBy?: string;
}

export async function readLease({ cluster, clock, namespace, over, name = NAME }: LeaseSite): Promise<LeaseState> {
  try {
    const stored = await cluster.get<Lease>(LEASES, { namespace, name });
    const holderIdentity = stored.spec?.holderIdentity;
    const cursor = stored.metadata?.annotations?.[CURSOR_ANNOTATION] ?? "";
    const isHeld = holderIdentity && isFresh(stored, clock.epochMs()) && !over.has(holderIdentity);
    const mayDrain = stored.metadata?.annotations?.[DRAINS_ANNOTATION] !== undefined;
    return { stored, cursor, ...(mayDrain ? { mayDrain } : {}), ...(isHeld ? { heldBy: holderIdentity } : {}) };
  } catch (error) {
    if (isKubeError(error, 404)) return { cursor: "" };
    throw error;
  }
}

/**
 * True while a Lease is valid. Another machine's clock wrote its time, and anybody may write a duration, so no Lease
 * counts for longer than twice this project's own duration.
 */
function isFresh({ spec }: Lease, nowMs: number): boolean {
  const { renewTime = "", leaseDurationSeconds = 0 } = spec ?? {};
  const ageMs = nowMs - Date.parse(renewTime);
  return Math.abs(ageMs) < 1000 * Math.min(leaseDurationSeconds, DURATION_SECONDS);
}

interface HeldLease {
  /** Renews the Lease. False: another pass has it by now. */
  readonly renew: (cursor: string) => Promise<boolean>;
  /** Renews until `signal` aborts or another pass has the Lease. */
  readonly keep: (cursor: () => string, signal: AbortSignal) => Promise<void>;
  readonly release: (cursor: string) => Promise<void>;
}

export interface LeaseSite {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly namespace: string;
  readonly over: OverPasses;
  /** name of the Lease; absent: the Lease of passes over SidecarSets */
  readonly name?: string;
  /** settings of the pass; absent: not published */
  readonly settings?: RolloutSettings;
  /** the pass's note about drains, which a look at drained pods may end if no drain is asked for; absent: unchanged */
  readonly drains?: { isAsked: boolean; mayDrain: boolean };
}

/** The gates of the last pass; undefined: they are not published. */
export function announcedSettings({ stored }: LeaseState): RolloutSettings | undefined {
  const text = stored?.metadata?.annotations?.[GATES_ANNOTATION];
  if (text === undefined) return undefined;
  const on = new Set(text.split(","));
  const gates = Object.keys(DEFAULT_ROLLOUT_SETTINGS).map((gate) => [gate, on.has(`${gate}=true`)]);
  return Object.fromEntries(gates) as unknown as RolloutSettings;
}

function gatesText(settings: RolloutSettings): string {
  const on = Object.keys(DEFAULT_ROLLOUT_SETTINGS).filter((gate) => settings[gate as keyof RolloutSettings]);
  return on.map((gate) => `${gate}=true`).join(",");
}

/** Limit of tries, because others may write the Lease without holding it. */
const MAX_TRIES = 3;

/** Takes a free Lease; undefined: another pass holds it by now. */
async function takeFree(
  site: LeaseSite,
  state: LeaseState,
  holder: string,
  cursor: string,
): Promise<Lease | undefined> {
  let { stored } = state;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const taken = await writeLease(site, stored, holder, cursor);
    if (taken) return taken;
    const now = await readLease(site);
    if (now.heldBy !== undefined) return undefined;
    stored = now.stored;
  }
  throw new Error(
    `the Lease ${site.namespace}/${site.name ?? NAME} is written by others each time, and none of them is a pass`,
  );
}

/** Takes the Lease; undefined: another pass was faster. After an error the Lease may name this pass. */
async function takeLease(site: LeaseSite, state: LeaseState, cursor: string): Promise<HeldLease | undefined> {
  const { clock, over } = site;
  const holder = `pass-${Math.floor(clock.random() * 2 ** 48).toString(36)}`;
  let current = await takeFree(site, state, holder, cursor).catch((error) => {
    over.add(holder);
    throw error;
  });
  if (!current) return undefined;
  // Writes follow each other: of two writes at once, the second would miss the version of the first.
  let before: Promise<unknown> = Promise.resolve();
  const write = (as: string, last: string): Promise<boolean> => {
    const written = before.then(async () => {
      const next = (await writeLease(site, current, as, last)) ?? (await rewriteLease(site, holder, as, last));
      current = next ?? current;
      return next !== undefined;
    });
    before = written.catch(() => undefined);
    return written;
  };
  return {
    renew: (last) => write(holder, last),
    keep: async (cursorNow, signal) => {
      for (;;) {
        await clock.sleep(RENEW_MS, signal);
        if (signal.aborted || !(await write(holder, cursorNow()))) return;
      }
    },
    release: async (last) => {
      over.add(holder);
      if (await write("", last)) over.clear();
    },
  };
}

/** Writes a Lease that still names this pass after another change, such as one by a pass over one SidecarSet. */
async function rewriteLease(site: LeaseSite, holder: string, as: string, cursor: string): Promise<Lease | undefined> {
  const { stored } = await readLease(site);
  if (stored?.spec?.holderIdentity !== holder) return undefined;
  // A pass over one SidecarSet may have noted its drains meanwhile: only a later pass, which looks, ends that note.
  if (site.drains && stored.metadata?.annotations?.[DRAINS_ANNOTATION] !== undefined)
    Object.assign(site.drains, { isAsked: true, mayDrain: true });
  return await writeLease(site, stored, as, cursor);
}

/**
 * Takes the Lease and renews it until `end`, which stores `cursor()` in it; `renew` writes it at once. If the pass
 * cannot get a Lease, it works without one, and `onTrouble` receives the reason. Undefined: another pass took it first.
 */
export async function holdLease(
  { site, state }: { readonly site: LeaseSite; readonly state: LeaseState },
  cursor: () => string,
  onTrouble: (error: unknown) => void,
): Promise<{ readonly renew: () => Promise<void>; readonly end: () => Promise<void> } | undefined> {
  const without = (error: unknown) => {
    onTrouble(error);
    return "none" as const;
  };
  const held = await takeLease(site, state, cursor()).catch(without);
  if (!held) return undefined;
  if (held === "none") return { renew: async () => undefined, end: async () => undefined };
  const over = new AbortController();
  const keeping = held.keep(cursor, over.signal).catch(without);
  return {
    renew: async () => void (await held.renew(cursor()).catch(without)),
    end: async () => {
      over.abort();
      await keeping;
      await held.release(cursor()).catch(without);
    },
  };
}

/** Records that a pass ran without a Lease. A holder of the Lease records it in any case. */
export async function renewLease(site: LeaseSite): Promise<void> {
  const { stored, cursor, heldBy } = await readLease(site);
  if (heldBy === undefined) await writeLease(site, stored, "", cursor);
}

/**
 * Records that pods may be drained, for a pass without a Lease. Without any Lease every pass looks. @throws KubeError
 */
export async function noteDrains({ cluster, namespace, name = NAME }: LeaseSite): Promise<void> {
  const body = { metadata: { annotations: { [DRAINS_ANNOTATION]: "true" } } };
  await ifThere(cluster.patch<Lease>(LEASES, { namespace, name }, { type: "merge", body }));
}

function annotationsOf({ settings, drains }: LeaseSite, cursor: string) {
  return {
    [CURSOR_ANNOTATION]: cursor,
    ...(settings ? { [GATES_ANNOTATION]: gatesText(settings) } : {}),
    ...(drains?.mayDrain ? { [DRAINS_ANNOTATION]: "true" } : {}),
  };
}

/** Writes the Lease; undefined: it has changed since it was read. @throws KubeError for any other refusal */
async function writeLease(
  site: LeaseSite,
  stored: Lease | undefined,
  holder: string,
  cursor: string,
): Promise<Lease | undefined> {
  const { cluster, clock, namespace, name = NAME, drains } = site;
  const annotations = annotationsOf(site, cursor);
  // Written in microseconds. Source: metav1.MicroTime.
  const renewTime = new Date(clock.epochMs()).toISOString().replace("Z", "000Z");
  const spec = { holderIdentity: holder, leaseDurationSeconds: DURATION_SECONDS, renewTime };
  try {
    if (!stored)
      return await cluster.create<Lease>(LEASES, {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { namespace, name, annotations },
        spec,
      });
    const isOver = drains?.mayDrain === false && stored.metadata?.annotations?.[DRAINS_ANNOTATION] !== undefined;
    const metadata = {
      resourceVersion: stored.metadata?.resourceVersion,
      annotations: isOver ? { ...annotations, [DRAINS_ANNOTATION]: null } : annotations,
    };
    const patch = { type: "merge", body: { metadata, spec } } as const;
    return await cluster.patch<Lease>(LEASES, { namespace, name }, patch);
  } catch (error) {
    // A create gets 404 if the namespace is missing. Policies, webhooks and proxies answer 404 and 409 too.
    const isPossibleRace = isKubeError(error, 409) || (stored !== undefined && isKubeError(error, 404));
    if (!isPossibleRace) throw error;
    const now = await ifThere(cluster.get<Lease>(LEASES, { namespace, name }));
    if (now?.metadata?.resourceVersion !== stored?.metadata?.resourceVersion) return undefined;
    throw about(`the Lease ${namespace}/${name} is not written, and nobody else wrote it`, error);
  }
}
