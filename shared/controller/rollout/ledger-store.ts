/** The storage of the reservation ledger: a ConfigMap beside the ControllerRevisions, with compare-and-swap. */
import type { ConfigMap, KubernetesObject } from "../../api/kubernetes.ts";
import {
  LEDGER_FINALIZER,
  SIDECARSET_KIND,
  SIDECARSET_V1BETA1,
  STATEFUL_SET_KIND,
  STEERING_ANNOTATION,
} from "../../api/names.ts";
import {
  EMPTY_LEDGER,
  formatLedger,
  type Ledger,
  type LedgerKind,
  ledgerName,
  parseLedger,
} from "../../core/ledger.ts";
import { isLater } from "../../go/resource-version.ts";
import { about, ifThere, isKubeError, KubeError } from "../../kube/error.ts";
import { type Cluster, CONFIG_MAPS, type PartialObject } from "../../kube/port.ts";

export interface StoredLedger {
  readonly ledger: Ledger;
  /** version of the ConfigMap; absent: there is none yet */
  readonly resourceVersion?: string;
  /** finalizers of other authors, which stay */
  readonly finalizers?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
}

interface LedgerKey {
  readonly namespace: string;
  readonly name: string;
}

export interface LedgerPlace {
  readonly namespace: string;
  /** the owner of the ledger */
  readonly owner: KubernetesObject;
  readonly kind?: LedgerKind;
}

/** Reads the ledger. @throws KubeError if it cannot be read, with reason InvalidLedger for any other content */
export async function readLedger(
  cluster: Cluster,
  namespace: string,
  owner: string,
  kind: LedgerKind = "sidecarset",
): Promise<StoredLedger> {
  const name = ledgerName(owner, kind);
  try {
    return toStored(await cluster.get<ConfigMap>(CONFIG_MAPS, { namespace, name }));
  } catch (error) {
    if (isKubeError(error, 404)) return { ledger: EMPTY_LEDGER };
    throw error;
  }
}

/**
 * Writes `next` if nobody has written since `stored` was read or written. Undefined: somebody has, or this pass has and
 * got no answer; begin again.
 */
export async function swapLedger(
  cluster: Cluster,
  { namespace, owner, kind = "sidecarset" }: LedgerPlace,
  stored: StoredLedger,
  next: Ledger,
): Promise<StoredLedger | undefined> {
  const name = ledgerName(owner.metadata?.name ?? "", kind);
  const key = { namespace, name };
  const steering = next.steering === undefined ? {} : { [STEERING_ANNOTATION]: next.steering };
  const annotations = { ...stored.annotations, ...steering };
  const metadata = { name, namespace, annotations, ...keptBy(owner, kind, stored, next) };
  const { ownerReferences, finalizers } = metadata;
  const data = formatLedger(next, kind);
  try {
    if (stored.resourceVersion === undefined) {
      const created = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
      return toStored(await cluster.create<ConfigMap>(CONFIG_MAPS, created));
    }
    const operations = [
      { op: "test", path: "/metadata/resourceVersion", value: stored.resourceVersion },
      { op: "add", path: "/metadata/ownerReferences", value: ownerReferences },
      { op: "add", path: "/metadata/finalizers", value: finalizers },
      { op: "add", path: "/metadata/annotations", value: annotations },
      { op: "add", path: "/data", value: data },
    ] as const;
    const patch = { type: "json", operations } as const;
    // The stored data equals what was sent. An answer with the data would have 137 bytes for each reservation.
    const { metadata: written } = await cluster.patch<PartialObject>(CONFIG_MAPS, key, patch, { answer: "metadata" });
    return toStored({ metadata: written, data });
  } catch (error) {
    if (isKubeError(error) && (await isRace(cluster, key, stored, error))) return undefined;
    throw isKubeError(error, 403, 409, 422) ? about(`the ledger ${namespace}/${name} is not written`, error) : error;
  }
}

/**
 * Refuses a list that is older than the ledger, by rule 1: a lagging replica, or a cache, may list pods from before
 * reservations were freed. @throws KubeError, reason StaleList
 */
export function refuseOlderList({ resourceVersion: written }: StoredLedger, listed: string | undefined): void {
  if (written === undefined || listed === undefined || !isLater(written, listed)) return;
  const message =
    `pods were listed as of resourceVersion ${listed}, and the ledger was written at ${written}: ` +
    "the API server that listed them lags behind, so the pass makes no decision from this list";
  throw new KubeError(message, { code: 0, reason: "StaleList", isOutcomeKnown: true });
}

/**
 * The owner and finalizers of a ledger. A ledger with reservations outlives its owner, because a recreated SidecarSet
 * must know of late patches. It also survives a deletion, by hand or by the garbage collector. The ledger of an
 * Advanced StatefulSet does not, because it is in a namespace of users, whose deletion must not hang.
 */
function keptBy(owner: KubernetesObject, kind: LedgerKind, { finalizers = [] }: StoredLedger, next: Ledger) {
  if (next.reservations.length === 0) return { ownerReferences: [ownerOf(owner, kind)], finalizers };
  return { ownerReferences: [], finalizers: kind === "sidecarset" ? [...finalizers, LEDGER_FINALIZER] : finalizers };
}

/** True if another pass wrote first, or this one may have. False: the write was refused. */
async function isRace(cluster: Cluster, key: LedgerKey, stored: StoredLedger, error: KubeError): Promise<boolean> {
  if (!error.isOutcomeKnown) return true;
  // A create that gets 404 misses the namespace.
  if (error.code === 404) return stored.resourceVersion !== undefined;
  // 422 means a failed test of a JSON patch, or a policy's refusal.
  return isKubeError(error, 409, 422) && (await hasMoved(cluster, key, stored));
}

/** True if somebody else has written, created or deleted it. */
async function hasMoved(cluster: Cluster, key: LedgerKey, { resourceVersion }: StoredLedger): Promise<boolean> {
  const now = await ifThere(cluster.get<ConfigMap>(CONFIG_MAPS, key));
  return now?.metadata?.resourceVersion !== resourceVersion;
}

function toStored({ metadata, data }: ConfigMap): StoredLedger {
  const parsed = parseLedger(data);
  if (!parsed)
    throw new KubeError(
      `the ConfigMap ${metadata?.namespace}/${metadata?.name} is no ledger of reservations: delete it while no pass runs`,
      { code: 0, reason: "InvalidLedger", isOutcomeKnown: true },
    );
  const finalizers = (metadata?.finalizers ?? []).filter((one) => one !== LEDGER_FINALIZER);
  const { [STEERING_ANNOTATION]: steering, ...annotations } = metadata?.annotations ?? {};
  const ledger = steering === undefined ? parsed : { ...parsed, steering };
  return { ledger, resourceVersion: metadata?.resourceVersion ?? "", finalizers, annotations };
}

function ownerOf({ metadata }: KubernetesObject, kind: LedgerKind) {
  return {
    apiVersion: SIDECARSET_V1BETA1,
    kind: kind === "sidecarset" ? SIDECARSET_KIND : STATEFUL_SET_KIND,
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
  };
}
