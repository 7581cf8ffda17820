/** Brings a long list of SidecarSets up to date by what has changed since, instead of reading all of it again. */
import type { SidecarSet } from "../api/sidecarset.ts";
import { type Cluster, SIDECARSETS, type WatchEvent } from "../kube/port.ts";

export interface ListedSidecarSets {
  readonly sidecarSets: readonly SidecarSet[];
  readonly resourceVersion: string;
}

/** What happened before a watch began is sent as soon as it is open; without news for this long all of it has come. */
const QUIET_MS = 50;
/** Of the watch, in case that we stop without ending it. */
const TIMEOUT_SECONDS = 5;

/**
 * The same list when nothing has changed; undefined when it cannot be told, and all has to be read.
 * Rejects as the watch does: with code 410 when the list is too old to go on from.
 */
export async function refreshSidecarSets(
  cluster: Cluster,
  last: ListedSidecarSets,
): Promise<ListedSidecarSets | undefined> {
  const quiet = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const waitOn = () => {
    clearTimeout(timer);
    timer = setTimeout(() => quiet.abort(), QUIET_MS);
  };
  const events: WatchEvent<SidecarSet>[] = [];
  const watch = cluster.watch<SidecarSet>(SIDECARSETS, {
    resourceVersion: last.resourceVersion,
    timeoutSeconds: TIMEOUT_SECONDS,
    signal: quiet.signal,
    onOpen: waitOn,
  });
  try {
    for await (const event of watch) {
      events.push(event);
      waitOn();
    }
  } finally {
    clearTimeout(timer);
  }
  // Whoever else ended it may have kept something back.
  return quiet.signal.aborted ? applied(last, events) : undefined;
}

function applied(last: ListedSidecarSets, events: readonly WatchEvent<SidecarSet>[]): ListedSidecarSets {
  const resourceVersion = events.at(-1)?.object.metadata?.resourceVersion ?? last.resourceVersion;
  const changes = events.filter(({ type }) => type !== "BOOKMARK");
  if (changes.length === 0) return { ...last, resourceVersion };
  const byName = new Map(last.sidecarSets.map((sidecarSet) => [sidecarSet.metadata?.name, sidecarSet]));
  for (const { type, object } of changes) {
    if (type === "DELETED") byName.delete(object.metadata?.name);
    else byName.set(object.metadata?.name, object);
  }
  return { sidecarSets: [...byName.values()], resourceVersion };
}
