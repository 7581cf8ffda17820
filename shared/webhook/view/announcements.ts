/**
 * The ConfigMap that announces the admission of a SidecarSet before it is stored. So pod webhooks need not ask for
 * SidecarSets while nobody writes any. docs/read-your-writes.md has the protocol.
 */
import type { ConfigMap, ObjectMeta } from "../../api/kubernetes.ts";
import { ANNOUNCEMENTS_CONFIG_MAP } from "../../api/names.ts";
import { type Cluster, CONFIG_MAPS } from "../../kube/port.ts";

/** A pod webhook that has read the announcements goes on without asking for this long at most. */
export const LEASE_MS = 250;
/** Wait between an announcement and its write: by then every older lease has ended. */
export const ANNOUNCE_WAIT_MS = 300;
/** An admitted object is stored within this time or never: API servers end a request after a minute. */
export const LANDS_MS = 120_000;
/** Limit of stored announcements; a reader of an older state lists instead. */
export const MAX_ANNOUNCEMENTS = 128;

// The log lines and behaviour of pod webhooks while an API server is late.

/** How each warning about a stale value begins. */
export const STALE_WORDS = "decided on an earlier state of";
/** Limit of the wait of a caller without a known value: API servers wait five seconds for the answer. */
export const PATIENCE_MS = 4_000;
/** Kubernetes' own goal for such reads. A caller with a known state waits no longer, for up to three kinds. */
export const SLOW_MS = 1_000;

/** A write of a SidecarSet that was admitted and may be stored from now on. */
export interface Announcement {
  /** counts up by one */
  readonly sequence: number;
  readonly name: string;
  /** the resourceVersion that it replaces, "" for none: once another one exists, this write cannot happen */
  readonly from: string;
  /** uid of the written object: if one is replaced, its creation is over */
  readonly uid: string;
  /** epoch milliseconds, by the clock of the one who announced it */
  readonly at: number;
}

export interface Announcements {
  /** a new value: the announcements were restarted, and some may have been missed */
  readonly epoch: string;
  /** of the last one; 0: there was none yet */
  readonly sequence: number;
  /** oldest first, without gaps */
  readonly latest: readonly Announcement[];
  /** epoch milliseconds by the writer's clock: when the announcements were restarted without their content; 0: never */
  readonly begunAgainAt: number;
}

/** The state before any announcement. */
export const NONE_YET: Announcements = { epoch: "", sequence: 0, latest: [], begunAgainAt: 0 };

/** The ConfigMap and its content. */
export interface Notice {
  readonly uid: string;
  readonly resourceVersion: string;
  /** epoch milliseconds, by the API server's clock */
  readonly createdAt: number;
  readonly announcements: Announcements;
}

const KEY = "announcements";

/** Rejects with KubeError, 404 without the ConfigMap. */
export async function readNotice(cluster: Cluster, namespace: string): Promise<Notice> {
  const { metadata, data } = await cluster.get<ConfigMap>(CONFIG_MAPS, { namespace, name: ANNOUNCEMENTS_CONFIG_MAP });
  const { uid = "", resourceVersion = "" } = metadata ?? {};
  const createdAt = Date.parse(metadata?.creationTimestamp ?? "");
  const changedAt = lastChange(metadata);
  // If nobody has written yet nothing is lost; otherwise somebody has emptied it.
  const begunAgainAt = changedAt > createdAt ? changedAt : 0;
  return { uid, resourceVersion, createdAt, announcements: parse(data?.[KEY]) ?? { ...NONE_YET, begunAgainAt } };
}

/** Epoch milliseconds by the API server's clock: the last change except of the status; NaN: unknown. */
export function lastChange(metadata: ObjectMeta | undefined): number {
  const { managedFields = [] } = (metadata ?? {}) as { readonly managedFields?: readonly { readonly time?: string }[] };
  return Math.max(
    ...[metadata?.creationTimestamp, ...managedFields.map(({ time }) => time)].map((time) => Date.parse(time ?? "")),
  );
}

/** Rejects with code 409 or 422 when somebody else wrote meanwhile: read again. */
export async function writeNotice(
  cluster: Cluster,
  namespace: string,
  { resourceVersion }: Notice,
  { epoch, sequence, latest, begunAgainAt }: Announcements,
): Promise<void> {
  const rows = latest.slice(-MAX_ANNOUNCEMENTS).map(({ name, from, uid, at }) => [name, from, uid, at]);
  const operations = [
    { op: "test", path: "/metadata/resourceVersion", value: resourceVersion },
    { op: "add", path: "/data", value: { [KEY]: JSON.stringify({ epoch, sequence, begunAgainAt, latest: rows }) } },
  ] as const;
  await cluster.patch(
    CONFIG_MAPS,
    { namespace, name: ANNOUNCEMENTS_CONFIG_MAP },
    { type: "json", operations },
    { answer: "metadata" },
  );
}

function parse(text: string | undefined): Announcements | undefined {
  try {
    const { epoch, sequence, begunAgainAt = 0, latest } = JSON.parse(text ?? "");
    const rows = latest as readonly (readonly [string, string, string, number])[];
    const first = (sequence as number) - rows.length + 1;
    if (typeof epoch !== "string" || !Number.isSafeInteger(first)) return undefined;
    const all = rows.map(([name, from, uid, at], index) => ({ sequence: first + index, name, from, uid, at }));
    return { epoch, sequence, latest: all, begunAgainAt };
  } catch {
    return undefined;
  }
}
