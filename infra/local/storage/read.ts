/** GET, LIST and WATCH: pages of one resourceVersion while it is known, and changes in order. */
import { convert } from "../admission/conversion.ts";
import type { ListQuery, WatchQuery } from "../http/query.ts";
import { apiVersionOf } from "../kinds/kind.ts";
import type { Api, Call } from "./api.ts";
import { type ApiObject, asText, type JsonObject, keyOf, storageKey } from "./json.ts";
import { badRequest, expired, notFound, StatusError, tooLargeResourceVersion } from "./status-error.ts";
import type { Change } from "./store.ts";

export interface ListPage {
  readonly items: readonly ApiObject[];
  readonly metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
}

interface Position {
  /** version of the list; -1: the present state */
  readonly resourceVersion: number;
  /** storage key of the last item sent */
  readonly after: string;
}

const TOO_OLD_CONTINUE =
  "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
const TOO_OLD_LIST = "The resourceVersion for the provided list is too old.";

function tokenOf(position: Position): string {
  const token = { v: "meta.k8s.io/v1", rv: position.resourceVersion, start: `${position.after}\u0000` };
  return Buffer.from(JSON.stringify(token)).toString("base64url");
}

function positionOf(token: string): Position {
  let parsed: JsonObject;
  try {
    parsed = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
  } catch (error) {
    throw badRequest(
      `invalid continue token: continue key is not valid: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  const start = asText(parsed?.["start"]);
  if (parsed?.["v"] !== "meta.k8s.io/v1" || !start.endsWith("\u0000")) {
    throw badRequest(
      "invalid continue token: continue key is not valid: server does not recognize this encoded version",
    );
  }
  return { resourceVersion: Number(parsed["rv"]), after: start.slice(0, -1) };
}

interface Snapshot extends Position {
  readonly objects: readonly ApiObject[];
}

function continued(api: Api, call: Call, query: ListQuery): Snapshot {
  if (query.resourceVersion !== "" && query.resourceVersion !== "0") {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  const position = positionOf(query.continue);
  const isLoose = position.resourceVersion < 0;
  const resourceVersion = isLoose ? api.store.resourceVersion : position.resourceVersion;
  const objects = api.store.listAt(call.kind.collection, resourceVersion);
  if (objects === undefined) throw expired(TOO_OLD_CONTINUE, tokenOf({ ...position, resourceVersion: -1 }));
  return { objects, resourceVersion, after: position.after };
}

function fresh(api: Api, call: Call, query: ListQuery): Snapshot {
  const wanted = Number(query.resourceVersion);
  const current = api.store.resourceVersion;
  if (wanted > current) throw tooLargeResourceVersion(wanted, current);
  const isExact =
    query.resourceVersionMatch === "Exact" || (wanted > 0 && query.limit > 0 && query.resourceVersionMatch === "");
  const resourceVersion = isExact && wanted > 0 ? wanted : current;
  const objects = api.store.listAt(call.kind.collection, resourceVersion);
  if (objects === undefined) throw expired(TOO_OLD_LIST);
  return { objects, resourceVersion, after: "" };
}

/** A page of objects, in the version of the call. */
export async function listObjects(api: Api, call: Call, query: ListQuery): Promise<ListPage> {
  const snapshot = query.continue === "" ? fresh(api, call, query) : continued(api, call, query);
  const isAfter = (object: ApiObject): boolean => snapshot.after === "" || storageKey(keyOf(object)) > snapshot.after;
  const matching = snapshot.objects.filter((object) => isAfter(object) && query.matches(object));
  const page = query.limit > 0 ? matching.slice(0, query.limit) : matching;
  const items = await convert(page, call.kind);
  const resourceVersion = String(snapshot.resourceVersion);
  const rest = matching.length - page.length;
  const last = page.at(-1);
  if (rest === 0 || last === undefined) return { items, metadata: { resourceVersion } };
  const token = tokenOf({ resourceVersion: snapshot.resourceVersion, after: storageKey(keyOf(last)) });
  const remaining = query.hasSelector ? {} : { remainingItemCount: rest };
  return { items, metadata: { resourceVersion, continue: token, ...remaining } };
}

/** The object in the version of the call. Throws 404. */
export async function getObject(api: Api, call: Call): Promise<ApiObject> {
  const stored = api.store.get(call.kind.collection, storageKey(call));
  if (stored === undefined) throw notFound(call.kind, call.name);
  const [object = stored] = await convert([stored], call.kind);
  return object;
}

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

/** The change as a watcher with a selector sees it. */
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
    // The version is read now: when the event is sent, there may be later changes that wait behind it.
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

  /** Sends events in the order in which they were made, although conversions take time. */
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
