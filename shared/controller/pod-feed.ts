/** Keeps a view of pods up to date by a watch from where the list stood. */
import type { Pod } from "../api/kubernetes.ts";
import { isKubeError } from "../kube/error.ts";
import { type Cluster, PODS, type WatchEvent, type WatchOptions } from "../kube/port.ts";
import type { Clock } from "./clock.ts";
import type { Scope } from "./observe.ts";
import type { PodView } from "./pod-view.ts";

const WATCH_SECONDS = 240;
/** An API server that ends every watch at once is not asked again at once. */
const REOPEN_MS = 1_000;

export interface PodFeed {
  /** Resolves when there is news, `signal` aborts, or after `ms`. False: the feed is lost, only a new list tells what is. */
  readonly wait: (ms: number, signal?: AbortSignal) => Promise<boolean>;
  /** Applies what has come to `view`; how many pods changed. */
  readonly applyTo: (view: PodView) => number;
  readonly close: () => void;
}

export function openPodFeed(
  { cluster, clock }: { readonly cluster: Cluster; readonly clock: Clock },
  scope: Scope,
  resourceVersion: string,
): PodFeed {
  const closing = new AbortController();
  const events: WatchEvent<Pod>[] = [];
  let isLost = false;
  let wake = new AbortController();
  const pump = async () => {
    let from = resourceVersion;
    while (!closing.signal.aborted) {
      for await (const event of cluster.watch<Pod>(PODS, watchOptions(scope, from, closing.signal))) {
        from = event.object.metadata?.resourceVersion ?? from;
        if (event.type !== "BOOKMARK") events.push(event);
        wake.abort();
      }
      await clock.sleep(REOPEN_MS, closing.signal);
    }
  };
  pump().catch((error) => {
    if (!isKubeError(error)) throw error;
    isLost = true;
    wake.abort();
  });
  return {
    wait: async (ms, signal) => {
      const waking = signal ? AbortSignal.any([signal, wake.signal]) : wake.signal;
      if (events.length === 0 && !isLost) await clock.sleep(ms, waking);
      wake = new AbortController();
      return !isLost;
    },
    applyTo: (view) => events.splice(0).filter((event) => apply(event, scope, view)).length,
    close: () => closing.abort(),
  };
}

function watchOptions(scope: Scope, resourceVersion: string, signal: AbortSignal): WatchOptions {
  const [namespace, ...others] = scope.namespaces ?? [];
  return {
    resourceVersion,
    timeoutSeconds: WATCH_SECONDS,
    signal,
    ...(scope.labelSelector ? { labelSelector: scope.labelSelector } : {}),
    // Of several namespaces all are watched: one connection, and the others' events are dropped.
    ...(namespace !== undefined && others.length === 0 ? { namespace } : {}),
  };
}

function apply({ type, object }: WatchEvent<Pod>, scope: Scope, view: PodView): boolean {
  const { namespace = "", uid = "", resourceVersion = null } = object.metadata ?? {};
  if (scope.namespaces && !scope.namespaces.has(namespace)) return false;
  // DELETED is also what a pod is called that the selector lets go.
  if (type === "DELETED" || !scope.isSelected(object)) return view.remove(uid, resourceVersion);
  return view.put(object);
}
