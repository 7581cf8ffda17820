/** Server-side apply for kubectl: a field belongs to the managers whose last apply has it. Other writes own nothing. */
import { parse } from "yaml";
import type { Answer, ApiRequest } from "../local/http/http-message.ts";
import { isEqual, isObject, type JsonObject, setField, textAt } from "../local/storage/json.ts";
import { badRequest, isStatus, StatusError } from "../local/storage/status-error.ts";

type Ask = (request: ApiRequest) => Promise<Answer>;

export const APPLY_PATCH = "application/apply-patch+yaml";

/** The managers of one object, with the fields that each applied last. */
interface Applied {
  readonly uid: string;
  readonly managers: ReadonlyMap<string, JsonObject>;
}

export function serverSideApply(): (request: ApiRequest, ask: Ask) => Promise<Answer> {
  const known = new Map<string, Applied>();
  return async (request, ask) => {
    const wanted = wantedIn(request);
    const manager = request.parameters.get("fieldManager") ?? "";
    const itemsOf = isBuiltIn(request.path) ? namedItems : () => undefined;
    const managers = await managersNow(request, ask, known.get(request.path));
    const others = [...managers].filter(([name]) => name !== manager);
    if (request.parameters.get("force") !== "true") refuseConflicts(others, wanted, itemsOf);
    const held = others.map(([, theirs]) => theirs);
    const patch = withRemovals(managers.get(manager) ?? {}, wanted, { held, itemsOf });
    const answer = await write(request, ask, { wanted, patch });
    if (request.parameters.has("dryRun")) return answer;
    const kept = others.map(([name, theirs]) => [name, withoutTaken(theirs, wanted, itemsOf)] as const);
    const uid = "body" in answer ? textAt(answer.body, "metadata", "uid") : "";
    known.set(request.path, { uid, managers: new Map([...kept, [manager, wanted]]) });
    return answer;
  };
}

function wantedIn({ body }: ApiRequest): JsonObject {
  const wanted: unknown = parse(body.toString("utf8"), { schema: "yaml-1.1" });
  if (isObject(wanted)) return wanted;
  throw badRequest("error decoding YAML: not an object");
}

/** The present managers; none where the object was replaced or deleted. */
async function managersNow(request: ApiRequest, ask: Ask, applied?: Applied): Promise<Applied["managers"]> {
  if (applied === undefined) return new Map();
  const answer = await ask({ ...request, method: "GET", accept: "application/json" }).catch((error: unknown) => {
    if (!isStatus(error, 404)) throw error;
    return undefined;
  });
  const isSame = answer && "body" in answer && textAt(answer.body, "metadata", "uid") === applied.uid;
  return isSame ? applied.managers : new Map();
}

/** Custom resources know no strategic merge: their lists are replaced. */
function isBuiltIn(path: string): boolean {
  return /^\/(?:api|apis\/(?:[^/.]+|[^/]+\.k8s\.io))\//.test(path);
}

interface Written {
  readonly wanted: JsonObject;
  readonly patch: JsonObject;
}

function write(request: ApiRequest, ask: Ask, { wanted, patch }: Written): Promise<Answer> {
  const mediaType = `application/${isBuiltIn(request.path) ? "strategic-" : ""}merge-patch+json`;
  return ask({ ...request, mediaType, body: Buffer.from(JSON.stringify(patch)) }).catch((error: unknown) => {
    if (!isStatus(error, 404)) throw error;
    const path = request.path.replace(/\/[^/]+$/, "");
    const body = Buffer.from(JSON.stringify(wanted));
    return ask({ ...request, method: "POST", mediaType: "application/json", path, body });
  });
}

type Items = ReadonlyMap<string, JsonObject>;
/** The items of a list by their names; undefined: the list is one value. */
type ItemsOf = (key: string, value: unknown) => Items | undefined;

const NAMED: ReadonlySet<string> = new Set(["containers", "initContainers", "volumes", "env", "imagePullSecrets"]);

function namedItems(key: string, value: unknown): Items | undefined {
  if (!NAMED.has(key) || !Array.isArray(value) || !value.every(isObject)) return undefined;
  return new Map(value.map((item) => [textAt(item, "name"), item]));
}

interface Compared {
  readonly theirs: JsonObject;
  readonly wanted: JsonObject;
  readonly itemsOf: ItemsOf;
}

/** The fields that both have, with different values. */
function differing({ theirs, wanted, itemsOf }: Compared, above: string): readonly string[] {
  return Object.entries(wanted).flatMap(([key, value]) => {
    const [other, path] = [theirs[key], `${above}.${key}`];
    if (other === undefined || isEqual(other, value)) return [];
    if (isObject(other) && isObject(value)) return differing({ theirs: other, wanted: value, itemsOf }, path);
    const [before, now] = [itemsOf(key, other), itemsOf(key, value)];
    if (before === undefined || now === undefined) return [path];
    return [...now].flatMap(([name, item]) =>
      differing({ theirs: before.get(name) ?? {}, wanted: item, itemsOf }, `${path}[name=${JSON.stringify(name)}]`),
    );
  });
}

type Manager = readonly [name: string, applied: JsonObject];

/** Refuses with the API server's words. @throws StatusError */
function refuseConflicts(others: readonly Manager[], wanted: JsonObject, itemsOf: ItemsOf): void {
  const conflicts = others
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([manager, theirs]) => ({ manager, paths: differing({ theirs, wanted, itemsOf }, "") }))
    .filter(({ paths }) => paths.length > 0);
  const causes = conflicts.flatMap(({ manager, paths }) =>
    paths.map((field) => ({ reason: "FieldManagerConflict", message: `conflict with "${manager}"`, field })),
  );
  const [only] = causes;
  if (only === undefined) return;
  const lines = conflicts.flatMap(({ manager, paths }) => [
    `conflicts with "${manager}":`,
    ...paths.map((path) => `- ${path}`),
  ]);
  const what =
    causes.length === 1
      ? `1 conflict: ${only.message}: ${only.field}`
      : `${causes.length} conflicts: ${lines.join("\n")}`;
  throw new StatusError({ code: 409, reason: "Conflict", message: `Apply failed with ${what}`, details: { causes } });
}

/** The fields that a manager keeps after another one has taken some by force. */
function withoutTaken(theirs: JsonObject, taken: JsonObject, itemsOf: ItemsOf): JsonObject {
  const left = Object.entries(theirs).flatMap(([key, value]): readonly [string, unknown][] => {
    const other = taken[key];
    if (other === undefined || isEqual(other, value)) return [[key, value]];
    if (isObject(value) && isObject(other)) return [[key, withoutTaken(value, other, itemsOf)]];
    const [mine, now] = [itemsOf(key, value), itemsOf(key, other)];
    if (mine === undefined || now === undefined) return [];
    return [[key, [...mine].map(([name, item]) => withoutTaken(item, now.get(name) ?? {}, itemsOf))]];
  });
  return Object.fromEntries(left);
}

interface Others {
  /** other managers' fields in this place */
  readonly held: readonly JsonObject[];
  readonly itemsOf: ItemsOf;
}

/** A patch that also removes fields of the manager's last apply that it now lacks and that no other manager has. */
function withRemovals(before: JsonObject, now: JsonObject, { held, itemsOf }: Others): JsonObject {
  const result: JsonObject = { ...now };
  for (const [key, value] of Object.entries(before)) {
    const theirs = held.map((one) => one[key]).filter((one) => one !== undefined);
    const next = nextValue(value, now[key], { key, theirs, itemsOf });
    if (next !== undefined) setField(result, key, next);
  }
  return result;
}

/** Undefined: the value stays as the manager wants it, or as others do. */
function nextValue(before: unknown, now: unknown, others: OtherLists): unknown {
  const { key, theirs, itemsOf } = others;
  if (now === undefined && theirs.length === 0) return null;
  if (isObject(before)) {
    const next = now ?? {};
    return isObject(next) ? withRemovals(before, next, { held: theirs.filter(isObject), itemsOf }) : undefined;
  }
  const [mine, items] = [itemsOf(key, before), itemsOf(key, now)];
  return mine && items ? withRemovedItems(mine, items, others) : undefined;
}

interface OtherLists {
  readonly key: string;
  readonly theirs: readonly unknown[];
  readonly itemsOf: ItemsOf;
}

function withRemovedItems(before: Items, now: Items, { key, theirs, itemsOf }: OtherLists): readonly JsonObject[] {
  const heldOf = (name: string): readonly JsonObject[] => {
    const items = theirs.map((list) => itemsOf(key, list)?.get(name));
    return items.filter((item) => item !== undefined);
  };
  const gone = [...before.keys()].filter((name) => !now.has(name) && heldOf(name).length === 0);
  return [
    ...[...now].map(([name, item]) => withRemovals(before.get(name) ?? {}, item, { held: heldOf(name), itemsOf })),
    ...gone.map((name) => ({ name, $patch: "delete" })),
  ];
}
