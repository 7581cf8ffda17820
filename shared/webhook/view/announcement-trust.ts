/** Tells whether the announcements cover every write: are API servers registered for that, and since when. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { VALIDATING_CONFIGURATION } from "../../api/names.ts";
import { isEveryWriteAnnounced } from "../../core/injection/match/announced-writes.ts";
import { isKubeError } from "../../kube/error.ts";
import { type Cluster, VALIDATING_WEBHOOK_CONFIGURATIONS } from "../../kube/port.ts";
import type { Log } from "../../log.ts";
import { LANDS_MS, lastChange, type Notice, readNotice } from "./announcements.ts";
import type { Clocks } from "./fresh.ts";
import type { Unannounced } from "./trouble.ts";

/** The registration is looked at again this often. */
const REGISTRATION_MS = 2_000;
/**
 * The age at which API servers surely use a registration, because they watch it. An earlier unannounced write is stored
 * by then, or never will be.
 */
export const IN_FORCE_MS = 5_000 + LANDS_MS;
/** The API server's clock, which may differ. */
const LONG_AGO_MS = 5 * 60_000;

interface Configuration extends KubernetesObject {
  readonly webhooks?: Parameters<typeof isEveryWriteAnnounced>[0];
}

interface Registration {
  /** changes with every change of the registration */
  readonly version: string;
  /** epoch milliseconds by the API server's clock, like the next one; NaN: unknown */
  readonly createdAt: number;
  readonly changedAt: number;
}

export interface TrustOptions extends Clocks {
  readonly kruiseNamespace: string;
  /** told about ignored announcements, and the current way of reading; absent: nobody is */
  readonly log?: Pick<Log, "info" | "warn"> | undefined;
  /** told how SidecarSets are read now; absent: nobody is */
  readonly onSource?: (source: Source) => void;
}

/** How pod webhooks know SidecarSets: by announcements, or by a list for each pod, or for all that come meanwhile. */
export type Source = "announced" | "listed";

/**
 * Reads the announcements. A word says why announcements do not count: writes may come without one, or we may not read
 * them. Rejects with KubeError where they can't be read now.
 */
export function trustedNotice(options: TrustOptions): (cluster: Cluster) => Promise<Notice | Unannounced> {
  const { kruiseNamespace, now, steady = () => performance.now() } = options;
  let registration: Registration | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;
  const isInForce = inForce(now, steady);
  const trusted = (registered: Registration | undefined, notice: Notice | undefined) => {
    if (registered === undefined) return "registration";
    if (notice === undefined) return "notice";
    return isInForce(registered, notice) ? notice : "settling";
  };

  const look = async (cluster: Cluster) => {
    const begun = steady();
    registration = await readRegistration(cluster);
    lookedAt = begun;
  };
  return async (cluster) => {
    const isDue = steady() - lookedAt >= REGISTRATION_MS;
    // Without a registration, another call for each list would be wasted.
    if (!isDue && registration === undefined) return "registration";
    const [notice] = await Promise.all([
      unlessHidden(readNotice(cluster, kruiseNamespace)),
      isDue ? look(cluster) : undefined,
    ]);
    return trusted(registration, notice);
  };
}

/**
 * True when API servers use this registration, and no write is under way that passed before the ConfigMap for
 * announcements. The ConfigMap is older than the registration, or old enough.
 */
function inForce(now: () => number, steady: () => number): (registration: Registration, notice: Notice) => boolean {
  const registered = unchangedSince(steady);
  const noticed = unchangedSince(steady);
  const isLongAgo = (time: number) => now() - time > LONG_AGO_MS;
  return ({ version, createdAt, changedAt }, notice) => {
    const [registrationMs, noticeMs] = [registered(version), noticed(notice.uid)];
    const isSettled = notice.createdAt <= createdAt || isLongAgo(notice.createdAt) || noticeMs > LANDS_MS;
    return isSettled && (isLongAgo(changedAt) || registrationMs >= IN_FORCE_MS);
  };
}

/** Milliseconds for which it has been unchanged, as far as observed. */
function unchangedSince(steady: () => number): (version: string) => number {
  let last: { readonly version: string; readonly at: number } | undefined;
  return (version) => {
    if (last?.version !== version) last = { version, at: steady() };
    return steady() - last.at;
  };
}

/** Undefined: a write may happen without an announcement. @throws KubeError */
async function readRegistration(cluster: Cluster): Promise<Registration | undefined> {
  const key = { name: VALIDATING_CONFIGURATION };
  const reading = cluster.get<Configuration>(VALIDATING_WEBHOOK_CONFIGURATIONS, key);
  const configuration = await unlessHidden(reading);
  if (configuration === undefined) return undefined;
  const { metadata = {}, webhooks = [] } = configuration;
  if (!isEveryWriteAnnounced(webhooks)) return undefined;
  return {
    version: `${metadata.uid}/${metadata.generation}`,
    createdAt: Date.parse(metadata.creationTimestamp ?? ""),
    changedAt: lastChange(metadata),
  };
}

/** Undefined: it does not exist, or an older role does not allow us to read it. */
async function unlessHidden<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isKubeError(error, 403, 404)) return undefined;
    throw error;
  }
}
