/** Whether the announcements tell of every write: as far as API servers are registered to have each announced, and for how long. */
import type { KubernetesObject } from "../api/kubernetes.ts";
import { VALIDATING_CONFIGURATION } from "../api/names.ts";
import { isEveryWriteAnnounced } from "../core/match/announced-writes.ts";
import { type Cluster, VALIDATING_WEBHOOK_CONFIGURATIONS } from "../kube/port.ts";
import { type Notice, readNotice } from "./announcements.ts";
import { ANNOUNCE_SIDECARSET_PATH } from "./paths.ts";

/** The registration is looked at again this often. */
const REGISTRATION_MS = 2_000;
/** What has been there this long, API servers go by: they watch their registrations. */
const IN_FORCE_MS = 5_000;
/** The same by the API server's clock, which may be another than ours. */
const LONG_IN_FORCE_MS = 5 * 60_000;

interface Configuration extends KubernetesObject {
  readonly webhooks?: Parameters<typeof isEveryWriteAnnounced>[0];
}

interface Registration {
  /** another one: it was changed */
  readonly version: string;
  /** epoch milliseconds, by the API server's clock: when it was last changed; NaN: it does not say */
  readonly changedAt: number;
}

export interface TrustOptions {
  readonly kruiseNamespace: string;
  /** epoch milliseconds */
  readonly now: () => number;
}

/** Reads the announcements; undefined where something may be written without, or they can't be read. Never rejects. */
export function trustedNotice({
  kruiseNamespace,
  now,
}: TrustOptions): (cluster: Cluster) => Promise<Notice | undefined> {
  let registration: Registration | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;
  const isInForce = inForce(now);

  const look = async (cluster: Cluster) => {
    lookedAt = performance.now();
    registration = undefined;
    registration = await readRegistration(cluster);
  };
  const read = async (cluster: Cluster) => {
    const isDue = performance.now() - lookedAt >= REGISTRATION_MS;
    // Where there is nothing to go by, one more call for each list would be one too many.
    if (!isDue && registration === undefined) return undefined;
    const [notice] = await Promise.all([readNotice(cluster, kruiseNamespace), isDue ? look(cluster) : undefined]);
    return registration && notice && isInForce(registration, notice) ? notice : undefined;
  };
  return (cluster) =>
    read(cluster).catch(() => {
      // Whether the API server is away the list will tell.
      registration = undefined;
      return undefined;
    });
}

/** Whether API servers go by this registration, and nobody by an announcement that was taken away. */
function inForce(now: () => number): (registration: Registration, notice: Notice) => boolean {
  let identity = "";
  let sameSince = 0;
  return ({ changedAt, version }, { uid, createdAt }) => {
    const steady = performance.now();
    if (identity !== `${version}/${uid}`) {
      identity = `${version}/${uid}`;
      sameSince = steady;
    }
    const isLongThere = now() - Math.max(changedAt, Date.parse(createdAt)) > LONG_IN_FORCE_MS;
    return isLongThere || steady - sameSince >= IN_FORCE_MS;
  };
}

/** Undefined: writes may go by unannounced. @throws KubeError */
async function readRegistration(cluster: Cluster): Promise<Registration | undefined> {
  const key = { name: VALIDATING_CONFIGURATION };
  const { metadata = {}, webhooks = [] } = await cluster.get<Configuration>(VALIDATING_WEBHOOK_CONFIGURATIONS, key);
  if (!isEveryWriteAnnounced(webhooks, ANNOUNCE_SIDECARSET_PATH)) return undefined;
  const { managedFields = [] } = metadata as { readonly managedFields?: readonly { readonly time?: string }[] };
  const times = [metadata.creationTimestamp, ...managedFields.map(({ time }) => time)];
  return {
    version: `${metadata.uid}/${metadata.generation}`,
    changedAt: Math.max(...times.map((time) => Date.parse(time ?? ""))),
  };
}
