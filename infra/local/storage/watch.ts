/** WATCH: the present objects (when asked), then every change, in order, until time or the client ends it. */

import { convert } from "../admission/conversion.ts";
import type { WatchQuery } from "../http/query.ts";
import { apiVersionOf } from "../kinds/kind.ts";
import type { Api, Call } from "./api.ts";
import type { ApiObject, JsonObject } from "./json.ts";
import { expired, StatusError } from "./status-error.ts";
import type { Change } from "./store.ts";

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: JsonObject;
}

export interface WatchSession {
  /** Ends the watch without a further event. */
  close(): void;
}

const LONGEST_WATCH_SECONDS = 1800;
const BOOKMARK_BEFORE_END_SECONDS = 2;

/** The change as a watcher sees it that selects only some of the objects. */
function visible(
  change: Change,
  matches: WatchQuery["matches"],
): { type: Change["type"]; object: ApiObject } | undefined {
  const isSeen = change.type !== "DELETED" && matches(change.object);
  const wasSeen = change.previous !== undefined && matches(change.previous);
  if (!isSeen && !wasSeen) return undefined;
  if (isSeen) return { type: wasSeen ? "MODIFIED" : "ADDED", object: change.object };
  if (change.type === "DELETED") return { type: "DELETED", object: change.object };
  const last = change.previous ?? change.object;
  return {
    type: "DELETED",
    object: { ...last, metadata: { ...last.metadata, resourceVersion: String(change.resourceVersion) } },
  };
}

function bookmark(call: Call, resourceVersion: number, isInitialEnd: boolean): WatchEvent {
  const annotations = isInitialEnd ? { annotations: { "k8s.io/initial-events-end": "true" } } : {};
  const metadata = { resourceVersion: String(resourceVersion), creationTimestamp: null, ...annotations };
  return { type: "BOOKMARK", object: { kind: call.kind.kind, apiVersion: apiVersionOf(call.kind), metadata } };
}

export interface WatchSink {
  /** Called with one event at a time, in order. */
  event(event: WatchEvent): void;
  end(): void;
}

class Watch implements WatchSession {
  readonly #api: Api;
  readonly #call: Call;
  readonly #query: WatchQuery;
  readonly #sink: WatchSink;
  readonly #cleanups: (() => void)[] = [];
  #isClosed = false;
  readonly #begun: number;
  #order: Promise<void> = Promise.resolve();

  constructor(api: Api, call: Call, query: WatchQuery, sink: WatchSink) {
    this.#api = api;
    this.#call = call;
    this.#query = query;
    this.#sink = sink;
    const version = Number(query.resourceVersion);
    this.#begun = version > 0 ? version : api.store.resourceVersion;
  }

  begin(bookmarkIntervalMs: number): void {
    const { store, clock } = this.#api;
    const initialVersion = store.resourceVersion;
    const version = this.#query.resourceVersion;
    const isFromNow = version === "" || version === "0";
    if (isFromNow || this.#query.sendInitialEvents) this.#sendAll();
    else this.#sendSince(Number(version));
    if (this.#query.sendInitialEvents) this.#enqueue(() => [bookmark(this.#call, initialVersion, true)]);
    this.#cleanups.push(store.subscribe((change) => this.#sendChange(change)));
    const seconds = Math.min(this.#query.timeoutSeconds ?? LONGEST_WATCH_SECONDS, LONGEST_WATCH_SECONDS);
    this.#cleanups.push(clock.after(seconds * 1000, () => this.#finish()));
    if (!this.#query.allowBookmarks) return;
    const lastMs = (seconds - BOOKMARK_BEFORE_END_SECONDS) * 1000;
    if (lastMs > 0) this.#bookmarkAfter(Math.min(bookmarkIntervalMs, lastMs), Math.min(bookmarkIntervalMs, lastMs));
  }

  close(): void {
    this.#isClosed = true;
    for (const cleanup of this.#cleanups) cleanup();
  }

  #finish(): void {
    this.#enqueue(() => {
      this.close();
      this.#sink.end();
      return [];
    });
  }

  #bookmarkAfter(delayMs: number, intervalMs: number): void {
    const tick = (): void => {
      this.#bookmark();
      this.#bookmarkAfter(intervalMs, intervalMs);
    };
    this.#cleanups.push(this.#api.clock.after(delayMs, tick));
  }

  #bookmark(): void {
    // Read now: by the time it is sent there may be later changes that wait behind it.
    const version = this.#api.store.resourceVersion;
    if (version > this.#begun) this.#enqueue(() => [bookmark(this.#call, version, false)]);
  }

  #sendAll(): void {
    const objects = this.#api.store.list(this.#call.kind.collection).filter(this.#query.matches);
    this.#enqueue(async () => {
      const converted = await convert(objects, this.#call.kind);
      return converted.map((object) => ({ type: "ADDED", object }));
    });
  }

  #sendSince(version: number): void {
    const changes = this.#api.store.changesAfter(version);
    if (changes === undefined) {
      const oldest = this.#api.store.oldestKnown;
      this.#fail(expired(`too old resource version: ${version} (${oldest})`));
      return;
    }
    for (const change of changes) this.#sendChange(change);
  }

  #sendChange(change: Change): void {
    if (change.collection !== this.#call.kind.collection) return;
    const event = visible(change, this.#query.matches);
    if (event === undefined) return;
    this.#enqueue(async () => {
      const [object = event.object] = await convert([event.object], this.#call.kind);
      return [{ type: event.type, object }];
    });
  }

  #fail(error: unknown): void {
    const body = error instanceof StatusError ? error.body : undefined;
    this.#enqueue(() => {
      this.#sink.event({ type: "ERROR", object: { ...body } });
      this.close();
      this.#sink.end();
      return [];
    });
  }

  /** Conversions take their time: events are sent in the order in which they were made. */
  #enqueue(make: () => WatchEvent[] | Promise<WatchEvent[]>): void {
    this.#order = this.#order.then(async () => {
      if (this.#isClosed) return;
      try {
        for (const event of await make()) if (!this.#isClosed) this.#sink.event(event);
      } catch (error) {
        this.#fail(error);
      }
    });
  }
}

export interface WatchSettings {
  readonly query: WatchQuery;
  readonly bookmarkIntervalMs: number;
}

export function watchObjects(api: Api, call: Call, settings: WatchSettings, sink: WatchSink): WatchSession {
  const watch = new Watch(api, call, settings.query, sink);
  watch.begin(settings.bookmarkIntervalMs);
  return watch;
}
