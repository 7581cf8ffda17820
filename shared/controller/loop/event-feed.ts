/** Collects the events of a watch from a list's version, until they are taken. */

import { createHash } from "node:crypto";
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { SIDECARSET_V1BETA1 } from "../../api/names.ts";
import type { Action } from "../../core/actions.ts";
import { shortText } from "../../go/unseen.ts";
import { isKubeError, isPassing } from "../../kube/error.ts";
import { type Cluster, EVENTS, type Resource, type WatchEvent, type WatchOptions } from "../../kube/port.ts";
import type { Clock } from "./clock.ts";

const WATCH_SECONDS = 240;
/** Milliseconds before a watch that ended or was refused at once is opened again. */
const REOPEN_MS = 1_000;
const MAX_REFUSALS = 5;
/** The reason for an abort on news. The default would be an exception that is created each time. */
const NEWS = "news";

export interface EventFeed<T extends KubernetesObject> {
  /**
   * Resolves on news, on an abort by `signal`, or after `ms`. False: the feed is lost, and only a new list shows the
   * state. It rejects with errors of this code, never with errors of the cluster.
   */
  readonly wait: (ms: number, signal?: AbortSignal) => Promise<boolean>;
  /** The events since the last call, oldest first, without bookmarks. */
  readonly take: () => readonly WatchEvent<T>[];
  readonly close: () => void;
}

/** Opens a feed. `keep`: returns the part of each object to store; absent: the whole object. */
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
    // Nobody awaits this promise, so an exception would end the process.
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

// Records an Event: one object for each subject, reason and message. A repetition moves its time.

type RecordEvent = Omit<Extract<Action, { kind: "RecordEvent" }>, "kind">;

/** Source: client-go tools/record. The component is OpenKruise's, so that the Events look the same. */
interface Event extends KubernetesObject {
  readonly involvedObject: RecordEvent["regarding"] & { readonly apiVersion: string };
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly source: { readonly component: string };
  readonly firstTimestamp: string;
  readonly lastTimestamp: string;
  readonly count: number;
}

/** Limit of the message in an Event of the newer kind. */
const MOST_MESSAGE = 1_023;

/** Events of cluster-scoped objects live in "default". */
export async function recordEvent(cluster: Cluster, action: RecordEvent, now: string): Promise<void> {
  const { regarding, type, reason, message } = action;
  const namespace = regarding.namespace ?? "default";
  const digest = createHash("sha256").update(JSON.stringify([regarding.uid, type, reason, message]));
  const name = `${regarding.name.slice(0, 230)}.${digest.digest("hex").slice(0, 16)}`;
  const event: Event = {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace, name },
    involvedObject: { ...regarding, apiVersion: regarding.kind === "Pod" ? "v1" : SIDECARSET_V1BETA1 },
    type,
    reason,
    message: shortText(message, MOST_MESSAGE),
    source: { component: `${regarding.kind === "StatefulSet" ? "statefulset" : "sidecarset"}-controller` },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  };
  try {
    await cluster.create(EVENTS, event, { answer: "metadata" });
  } catch (error) {
    if (!isKubeError(error, 409)) throw error;
    const patch = { type: "merge", body: { lastTimestamp: now } } as const;
    await cluster.patch(EVENTS, { namespace, name }, patch, { answer: "metadata" });
  }
}
