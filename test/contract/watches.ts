/** Cases of watches: order, selectors, bookmarks, ends. */
import { expect } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { CONFIG_MAPS, type WatchEvent, type WatchOptions } from "../../shared/kube/port.ts";
import { type Context, type ContractCase, createMap, refused, versionOf } from "./contract.ts";

type Event = WatchEvent<KubernetesObject>;

const LABELS = { labels: { tier: "front" } };

interface Watching {
  readonly events: Event[];
  readonly ended: Promise<void>;
  stop(): void;
}

function watch(
  { cluster, namespace }: Context,
  options: Partial<WatchOptions> & { resourceVersion: string },
): Watching {
  const abort = new AbortController();
  const events: Event[] = [];
  const read = async (): Promise<void> => {
    const all = { namespace, timeoutSeconds: 300, signal: abort.signal, ...options };
    for await (const event of cluster.watch(CONFIG_MAPS, all)) events.push(event);
  };
  const ended = read();
  ended.catch(() => undefined);
  return { events, ended, stop: () => abort.abort() };
}

function seen(events: readonly Event[]): readonly string[] {
  return events.filter(({ type }) => type !== "BOOKMARK").map(({ type, object }) => `${type} ${object.metadata?.name}`);
}

function patch({ cluster, namespace }: Context, name: string, body: object): Promise<KubernetesObject> {
  return cluster.patch(CONFIG_MAPS, { namespace, name }, { type: "merge", body });
}

async function now({ cluster, namespace }: Context): Promise<string> {
  return (await cluster.list(CONFIG_MAPS, { namespace, limit: 1 })).metadata.resourceVersion;
}

/** Returns the lines of a watch, for parameters that the client does not support. */
async function rawWatch({ raw, namespace }: Context, query: string): Promise<readonly Event[]> {
  const answer = await raw({ path: `/api/v1/namespaces/${namespace}/configmaps?watch=true&${query}` });
  expect(answer.code).toBe(200);
  return answer.text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

export const WATCH_CASES: readonly ContractCase[] = [
  {
    sentence: "a watch calls onOpen before its first event",
    async run(context) {
      const before = await now(context);
      let atOpening = -1;
      const onOpen = () => {
        atOpening = events.length;
        stop();
      };
      const { events, ended, stop } = watch(context, { resourceVersion: before, onOpen });
      await ended;
      expect(atOpening).toBe(0);
    },
  },
  {
    sentence: "a watch returns every change after its resourceVersion in order",
    async run(context) {
      const { cluster, namespace } = context;
      const before = await createMap(context, "a", { metadata: LABELS });
      await patch(context, "a", { data: { k: "v" } });
      const watching = watch(context, { resourceVersion: versionOf(before), labelSelector: "tier=front" });
      await createMap(context, "b", { metadata: LABELS });
      await cluster.delete(CONFIG_MAPS, { namespace, name: "a" });
      await expect.poll(() => seen(watching.events)).toEqual(["MODIFIED a", "ADDED b", "DELETED a"]);
      watching.stop();
    },
  },
  {
    sentence: "the resourceVersions of watch events increase",
    async run(context) {
      const watching = watch(context, { resourceVersion: await now(context), labelSelector: "tier=front" });
      for (const name of ["a", "b", "c"]) await createMap(context, name, { metadata: LABELS });
      await expect.poll(() => seen(watching.events)).toHaveLength(3);
      const versions = watching.events.map(({ object }) => Number(versionOf(object)));
      expect(versions).toEqual(versions.toSorted((left, right) => left - right));
      watching.stop();
    },
  },
  {
    sentence: "a DELETED event has the last state and the resourceVersion of the deletion",
    async run(context) {
      const { cluster, namespace } = context;
      const created = await createMap(context, "a", { data: { k: "v" } });
      const watching = watch(context, { resourceVersion: versionOf(created) });
      await cluster.delete(CONFIG_MAPS, { namespace, name: "a" });
      await expect.poll(() => seen(watching.events)).toEqual(["DELETED a"]);
      const [event] = watching.events;
      expect(event?.object).toMatchObject({ data: { k: "v" }, metadata: { uid: created.metadata?.uid } });
      expect(Number(versionOf(event?.object ?? {}))).toBeGreaterThan(Number(versionOf(created)));
      watching.stop();
    },
  },
  {
    sentence: "a watch reports ADDED when an object starts to match, and DELETED when it stops to match",
    async run(context) {
      await createMap(context, "a");
      const watching = watch(context, { resourceVersion: await now(context), labelSelector: "tier=front" });
      await patch(context, "a", { metadata: LABELS });
      await patch(context, "a", { data: { k: "v" } });
      await patch(context, "a", { metadata: { labels: null } });
      await patch(context, "a", { data: { k: "w" } });
      await expect.poll(() => seen(watching.events)).toEqual(["ADDED a", "MODIFIED a", "DELETED a"]);
      watching.stop();
    },
  },
  {
    sentence: "a watch with the field selector metadata.name watches one object",
    async run(context) {
      const watching = watch(context, { resourceVersion: await now(context), fieldSelector: "metadata.name=a" });
      await createMap(context, "b");
      await createMap(context, "a");
      await expect.poll(() => seen(watching.events)).toEqual(["ADDED a"]);
      watching.stop();
    },
  },
  {
    sentence: "a watch of one namespace returns no events of another namespace",
    async run(context) {
      const watching = watch(context, { resourceVersion: await now(context), labelSelector: "tier=front" });
      await createMap({ ...context, namespace: "default" }, `x-${context.namespace}`, { metadata: LABELS });
      await createMap(context, "a", { metadata: LABELS });
      await expect.poll(() => seen(watching.events)).toEqual(["ADDED a"]);
      await context.cluster.delete(CONFIG_MAPS, { namespace: "default", name: `x-${context.namespace}` });
      watching.stop();
    },
  },
  {
    sentence: "a watch from resourceVersion 0 starts with ADDED events for the existing objects",
    async run(context) {
      for (const name of ["a", "b"]) await createMap(context, name, { metadata: LABELS });
      const watching = watch(context, { resourceVersion: "0", labelSelector: "tier=front" });
      await expect.poll(() => [...seen(watching.events)].sort()).toEqual(["ADDED a", "ADDED b"]);
      watching.stop();
    },
  },
  {
    sentence: "a watch ends after its timeoutSeconds",
    async run(context) {
      const begun = Date.now();
      await watch(context, { resourceVersion: await now(context), timeoutSeconds: 1 }).ended;
      expect(Date.now() - begun).toBeGreaterThanOrEqual(900);
    },
  },
  {
    sentence: "a long watch gets a bookmark with a newer resourceVersion before it ends",
    async run(context) {
      const version = await now(context);
      const watching = watch(context, { resourceVersion: version, timeoutSeconds: 8 });
      await createMap(context, "a");
      const bookmark = () => watching.events.find(({ type }) => type === "BOOKMARK")?.object;
      await expect.poll(bookmark).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
      expect(Number(versionOf(bookmark() ?? {}))).toBeGreaterThan(Number(version));
      watching.stop();
    },
  },
  {
    sentence: "sendInitialEvents sends ADDED events for the existing objects and then a bookmark",
    from: 34,
    async run(context) {
      await createMap(context, "a", { metadata: LABELS });
      const initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
      const events = await rawWatch(context, `${initial}&labelSelector=tier%3Dfront&timeoutSeconds=1`);
      const end = events.findIndex(
        ({ object }) => object.metadata?.annotations?.["k8s.io/initial-events-end"] === "true",
      );
      expect(seen(events.slice(0, end))).toEqual(["ADDED a"]);
      expect(events[end]?.type).toBe("BOOKMARK");
    },
  },
  {
    sentence: "sendInitialEvents without resourceVersionMatch is refused with 422",
    async run({ raw, namespace }) {
      const path = `/api/v1/namespaces/${namespace}/configmaps?watch=true&sendInitialEvents=true&timeoutSeconds=1`;
      expect(await raw({ path })).toMatchObject({ code: 422, body: { reason: "Invalid" } });
    },
  },
  {
    sentence: "a watch from a compacted resourceVersion is refused with 410 Expired",
    needs: "compact",
    async run(context) {
      const created = await createMap(context, "a");
      await createMap(context, "b");
      await context.compact?.();
      const watching = watch(context, { resourceVersion: versionOf(created) });
      await refused(watching.ended, { code: 410, reason: "Expired", message: /^too old resource version/ });
    },
  },
  {
    sentence: "a Table watch sends Tables, and only the first Table has the columns",
    async run(context) {
      const version = await now(context);
      for (const name of ["a", "b"]) await createMap(context, name, { metadata: LABELS });
      const query = `watch=true&timeoutSeconds=1&labelSelector=tier%3Dfront&resourceVersion=${version}`;
      const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
      const path = `/api/v1/namespaces/${context.namespace}/configmaps?${query}`;
      const { text } = await context.raw({ path, headers: { accept } });
      const tables = text
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line).object);
      expect(tables).toMatchObject([
        { kind: "Table", rows: [{ cells: ["a", 0, expect.anything()] }] },
        { rows: [{ cells: ["b", 0, expect.anything()] }] },
      ]);
      expect(tables.map(({ columnDefinitions }) => columnDefinitions?.length ?? 0)).toEqual([3, 0]);
    },
  },
];
