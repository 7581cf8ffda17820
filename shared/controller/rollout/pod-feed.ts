/** Keeps a view of pods up to date by a watch from where the list stood. */
import type { ObjectMeta, Pod } from "../../api/kubernetes.ts";
import { type Cluster, PODS, type WatchEvent, type WatchOptions } from "../../kube/port.ts";
import type { Clock } from "../loop/clock.ts";
import { type EventFeed, openFeed } from "../loop/event-feed.ts";
import type { PodView } from "../pod-store/pod-view.ts";
import type { Observed, Scope } from "./observe-pods.ts";

export interface PodFeed extends Pick<EventFeed<Pod>, "wait" | "close"> {
  /** Applies what has come to the view; how many pods changed. */
  readonly applyToView: () => number;
}

/** undefined: nothing was listed, so there is nowhere to go on from. */
export function openPodFeed(
  site: { readonly cluster: Cluster; readonly clock: Clock },
  { view, scope, resourceVersion }: Observed,
): PodFeed | undefined {
  if (resourceVersion === undefined) return undefined;
  // Thousands of events may come while a decision is made.
  const { wait, take, close } = openFeed<Pod>(site, PODS, watchOptions(scope, resourceVersion), (pod) =>
    scope.isSelected(pod) ? view.record(pod) : { metadata: identityOf(pod), spec: NOT_SELECTED },
  );
  return { wait, close, applyToView: () => take().filter((event) => apply(event, scope, view)).length };
}

function watchOptions(scope: Scope, resourceVersion: string): Omit<WatchOptions, "timeoutSeconds"> {
  const [namespace, ...others] = scope.namespaces ?? [];
  return {
    resourceVersion,
    ...(scope.labelSelector ? { labelSelector: scope.labelSelector } : {}),
    // Of several namespaces all are watched: one connection, and the others' events are dropped.
    ...(namespace !== undefined && others.length === 0 ? { namespace } : {}),
  };
}

/** The spec that is kept of pods that are not selected. */
const NOT_SELECTED: Pod["spec"] = { containers: [] };

function identityOf({ metadata: { namespace = "", name = "", uid = "", resourceVersion = "" } = {} }: Pod): ObjectMeta {
  return { namespace, name, uid, resourceVersion };
}

function apply({ type, object }: WatchEvent<Pod>, scope: Scope, view: PodView): boolean {
  const { namespace = "", uid = "", resourceVersion = null } = object.metadata ?? {};
  if (scope.namespaces && !scope.namespaces.has(namespace)) return false;
  // DELETED is also what a pod is called that the selector lets go.
  if (type === "DELETED" || object.spec === NOT_SELECTED) return view.remove(uid, resourceVersion);
  return view.put(object);
}
