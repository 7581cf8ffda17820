/** GET of one object and of lists: pages of one resourceVersion, continued until that is forgotten. */

import { convert } from "../admission/conversion.ts";
import type { ListQuery } from "../http/query.ts";
import type { Api, Call } from "./api.ts";
import { type ApiObject, asText, type JsonObject, keyOf, storageKey } from "./json.ts";
import { badRequest, expired, notFound, tooLargeResourceVersion } from "./status-error.ts";

export interface ListPage {
  readonly items: readonly ApiObject[];
  readonly metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
}

interface Position {
  /** -1: the present state */
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
