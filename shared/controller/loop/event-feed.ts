/** Gathers the events of a watch from where a list stood, until they are asked for. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { isKubeError, isPassing } from "../../kube/error.ts";
import type { Cluster, Resource, WatchEvent, WatchOptions } from "../../kube/port.ts";
import type { Clock } from "./clock.ts";

const WATCH_SECONDS = 240;
/** An API server that ends or refuses every watch at once is not asked again at once, nor for ever. */
const REOPEN_MS = 1_000;
const MAX_REFUSALS = 5;
/** The default reason is an exception, recreated each time. */
const NEWS = "news";

export interface EventFeed<T extends KubernetesObject> {
  /**
   * Resolves when there is news, `signal` aborts, or after `ms`. False: the feed is lost, only a new list tells what is.
   * Rejects with what is no trouble of the cluster's: a bug of ours.
   */
  readonly wait: (ms: number, signal?: AbortSignal) => Promise<boolean>;
  /** What has come since the last call, oldest first; no bookmarks. */
  readonly take: () => readonly WatchEvent<T>[];
  readonly close: () => void;
}

/** `keep`: what is to be kept of each object until it is asked for; absent: all of it. */
export function openFeed<T extends KubernetesObject>(
  { cluster, clock }: { readonly cluster: Cluster; readonly clock: Clock },
  resource: Resource,
  options: Omit<WatchOptions, "timeoutSeconds" | "signal">,
  keep: (object: T) => T = (object) => object,
): EventFeed<T> {
  const closing = new AbortController();
  const events: WatchEvent<T>[] = [];
  let isLost = false;
  let bug: { readonly error: unknown } | undefined;
  let wake = new AbortController();
  let from = options.resourceVersion;
  let refusals = 0;
  const { signal } = closing;
  const gather = async () => {
    const all = { ...options, resourceVersion: from, timeoutSeconds: WATCH_SECONDS, signal };
    for await (const event of cluster.watch<T>(resource, all)) {
      refusals = 0;
      from = event.object.metadata?.resourceVersion ?? from;
      if (event.type !== "BOOKMARK") events.push({ type: event.type, object: keep(event.object) });
      wake.abort(NEWS);
    }
  };
  const pump = async () => {
    while (!signal.aborted) {
      await gather().catch((error) => {
        refusals += 1;
        if (!isPassing(error) || refusals === MAX_REFUSALS) throw error;
      });
      await clock.sleep(REOPEN_MS, signal);
    }
  };
  pump().catch((error) => {
    // Nobody awaits this: what is thrown here would end the process.
    if (!isKubeError(error)) bug = { error };
    isLost = true;
    wake.abort(NEWS);
  });
  return {
    wait: async (ms, signal) => {
      const waking = signal ? AbortSignal.any([signal, wake.signal]) : wake.signal;
      if (events.length === 0 && !isLost) await clock.sleep(ms, waking);
      wake = new AbortController();
      if (bug) throw bug.error;
      return !isLost;
    },
    take: () => events.splice(0),
    close: () => closing.abort(),
  };
}
