/** Cases of lists: pages, snapshots, selectors. */
import { expect } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { CONFIG_MAPS, type ListOptions, NAMESPACES, type ObjectList, PODS } from "../../shared/kube/port.ts";
import { type Context, type ContractCase, createMap, createPod, refused, versionOf } from "./contract.ts";

type List = ObjectList<KubernetesObject>;

/** The label of the case's own objects, because a cluster may create another ConfigMap in every namespace. */
const OURS = "made-by=contract";
const LABELS = { labels: { "made-by": "contract" } };

async function makeFive(context: Context): Promise<void> {
  for (const name of ["a", "b", "c", "d", "e"]) await createMap(context, name, { metadata: LABELS });
}

function list({ cluster, namespace }: Context, options: ListOptions = {}): Promise<List> {
  return cluster.list(CONFIG_MAPS, { namespace, labelSelector: OURS, ...options });
}

function names(page: List): readonly (string | undefined)[] {
  return page.items.map((item) => item.metadata?.name);
}

function next(context: Context, page: List, limit = 2): Promise<List> {
  return list(context, { limit, continue: page.metadata.continue ?? "" });
}

export const PAGE_CASES: readonly ContractCase[] = [
  {
    sentence: "a list is sorted by name",
    async run(context) {
      for (const name of ["b", "a-1", "a.b", "a"]) await createMap(context, name, { metadata: LABELS });
      expect(names(await list(context))).toEqual(["a", "a-1", "a.b", "b"]);
    },
  },
  {
    sentence: "pages of two items contain every item once",
    async run(context) {
      await makeFive(context);
      const first = await list(context, { limit: 2 });
      const second = await next(context, first);
      const third = await next(context, second);
      expect([first, second, third].map(names)).toEqual([["a", "b"], ["c", "d"], ["e"]]);
      expect(third.metadata.continue ?? "").toBe("");
    },
  },
  {
    sentence: "all pages have the resourceVersion and the state of the first page, despite later writes",
    async run(context) {
      const { cluster, namespace } = context;
      await makeFive(context);
      const first = await list(context, { limit: 2 });
      await createMap(context, "ba", { metadata: LABELS });
      await cluster.delete(CONFIG_MAPS, { namespace, name: "d" });
      const body = { data: { k: "v" } };
      await cluster.patch(CONFIG_MAPS, { namespace, name: "e" }, { type: "merge", body });
      const rest = await next(context, first, 10);
      expect(names(rest)).toEqual(["c", "d", "e"]);
      expect(rest.items.at(-1)).not.toHaveProperty("data");
      expect(rest.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    },
  },
  {
    sentence: "the first page of a list without a selector has the number of remaining items",
    async run(context) {
      await makeFive(context);
      const { cluster, namespace } = context;
      const all = await cluster.list(CONFIG_MAPS, { namespace });
      const page = await cluster.list(CONFIG_MAPS, { namespace, limit: 2 });
      expect(page.metadata.remainingItemCount).toBe(all.items.length - 2);
    },
  },
  {
    sentence: "an invalid continue token is refused with 400",
    async run(context) {
      await refused(list(context, { limit: 2, continue: "nonsense" }), { code: 400, reason: "BadRequest" });
    },
  },
  {
    sentence: "a continue token of a compacted resourceVersion is refused with 410 and a new token",
    needs: "compact",
    async run(context) {
      await makeFive(context);
      const first = await list(context, { limit: 2 });
      await context.compact?.();
      await refused(next(context, first), {
        code: 410,
        reason: "Expired",
        message: /^The provided continue parameter is too old to display a consistent list result/,
      });
      const query = `limit=9&labelSelector=${encodeURIComponent(OURS)}`;
      const path = `/api/v1/namespaces/${context.namespace}/configmaps?${query}&continue=`;
      const { body } = await context.raw({ path: path + first.metadata.continue });
      const token = (body as { metadata: { continue: string } }).metadata.continue;
      const { body: rest } = await context.raw({ path: path + token });
      expect(names(rest as List)).toEqual(["c", "d", "e"]);
    },
  },
  {
    sentence: "a list at an exact resourceVersion returns the state at that version",
    async run(context) {
      await createMap(context, "a", { metadata: LABELS });
      const before = await list(context);
      await createMap(context, "b", { metadata: LABELS });
      const { resourceVersion } = before.metadata;
      const again = await list(context, { resourceVersion, resourceVersionMatch: "Exact" });
      expect(names(again)).toEqual(["a"]);
      expect(again.metadata.resourceVersion).toBe(resourceVersion);
    },
  },
  {
    sentence: "a list at a compacted resourceVersion is refused with 410 Expired",
    needs: "compact",
    async run(context) {
      await makeFive(context);
      const { resourceVersion } = (await list(context)).metadata;
      await createMap(context, "f");
      await context.compact?.();
      const old = list(context, { resourceVersion, resourceVersionMatch: "Exact" });
      await refused(old, { code: 410, reason: "Expired" });
    },
  },
  {
    sentence: "a list with NotOlderThan and an object's resourceVersion contains that object",
    async run(context) {
      const created = await createMap(context, "a", { metadata: LABELS });
      const options = { resourceVersion: versionOf(created), resourceVersionMatch: "NotOlderThan" as const };
      expect(names(await list(context, options))).toEqual(["a"]);
    },
  },
  {
    sentence: "a list at a future resourceVersion is refused with 504 and a time to retry",
    async run(context) {
      const current = Number((await list(context)).metadata.resourceVersion);
      const query = `resourceVersion=${current + 1_000_000}&resourceVersionMatch=NotOlderThan`;
      const answer = await context.raw({ path: `/api/v1/namespaces/${context.namespace}/configmaps?${query}` });
      expect(answer).toMatchObject({ code: 504, body: { reason: "Timeout", details: { retryAfterSeconds: 1 } } });
      expect(answer.text).toContain("Too large resource version");
    },
  },
  {
    sentence: "resourceVersionMatch without resourceVersion is refused with 422",
    async run(context) {
      const answer = await context.raw({
        path: `/api/v1/namespaces/${context.namespace}/configmaps?resourceVersionMatch=Exact`,
      });
      expect(answer).toMatchObject({ code: 422, body: { reason: "Invalid" } });
    },
  },
];

async function makeTiers(context: Context): Promise<void> {
  const make = (name: string, labels: object) =>
    createMap(context, name, { metadata: { labels: { "made-by": "contract", ...labels } } });
  await make("web", { tier: "front", zone: "a" });
  await make("api", { tier: "back" });
  await make("job", {});
}

async function matching(context: Context, selector: string): Promise<readonly (string | undefined)[]> {
  return names(await list(context, { labelSelector: `${OURS},${selector}` }));
}

const SELECTORS: readonly (readonly [string, string, readonly string[]])[] = [
  ["the selector key=value selects objects with that value", "tier=front", ["web"]],
  ["the selector key==value selects objects with that value", "tier==front", ["web"]],
  ["the selector key!=value selects objects with another value or without the key", "tier!=front", ["api", "job"]],
  ["the selector key in (…) selects objects with one of the values", "tier in (front, back)", ["api", "web"]],
  [
    "the selector key notin (…) selects objects with another value or without the key",
    "tier notin (front)",
    ["api", "job"],
  ],
  ["the selector key selects objects with the key", "tier", ["api", "web"]],
  ["the selector !key selects objects without the key", "!tier", ["job"]],
  ["a selector with several terms selects objects that match all terms", "tier in (front,back),zone=a", ["web"]],
];

export const SELECTOR_CASES: readonly ContractCase[] = [
  ...SELECTORS.map(([sentence, selector, wanted]) => ({
    sentence,
    async run(context: Context) {
      await makeTiers(context);
      expect(await matching(context, selector)).toEqual(wanted);
    },
  })),
  {
    sentence: "a malformed label selector is refused with 400",
    async run(context) {
      await refused(list(context, { labelSelector: "tier in front" }), { code: 400, reason: "BadRequest" });
    },
  },
  {
    sentence: "the field selector metadata.name selects one object or all others",
    async run(context) {
      await makeTiers(context);
      expect(names(await list(context, { fieldSelector: "metadata.name=api" }))).toEqual(["api"]);
      expect(names(await list(context, { fieldSelector: "metadata.name!=api" }))).toEqual(["job", "web"]);
    },
  },
  {
    sentence: "the field selector metadata.namespace works in a list over all namespaces",
    async run({ cluster, namespace, ...rest }) {
      await createMap({ cluster, namespace, ...rest }, "a", { metadata: LABELS });
      const page = await cluster.list(CONFIG_MAPS, {
        labelSelector: OURS,
        fieldSelector: `metadata.namespace=${namespace}`,
      });
      expect(page.items.map(({ metadata }) => [metadata?.namespace, metadata?.name])).toEqual([[namespace, "a"]]);
    },
  },
  {
    sentence: "the field selectors spec.nodeName and status.phase select pods",
    async run(context) {
      const { cluster, namespace } = context;
      await createPod(context, "p", { spec: { containers: [{ name: "main", image: "a:1" }], nodeName: "nowhere" } });
      await createPod(context, "q");
      const select = async (fieldSelector: string) => names(await cluster.list(PODS, { namespace, fieldSelector }));
      expect(await select("spec.nodeName=nowhere")).toEqual(["p"]);
      expect(await select("spec.nodeName=")).toEqual(["q"]);
      expect(await select("status.phase=Running")).toEqual([]);
      expect(await select("status.phase!=Running,spec.nodeName=")).toEqual(["q"]);
    },
  },
  {
    sentence: "an unsupported field selector is refused with 400",
    async run(context) {
      const page = list(context, { fieldSelector: "data.k=v" });
      await refused(page, { code: 400, reason: "BadRequest", message: '"data.k" is not a known field selector' });
      const pods = context.cluster.list(PODS, { fieldSelector: "spec.color=red" });
      await refused(pods, { code: 400, message: "field label not supported: spec.color" });
    },
  },
  {
    sentence: "a cluster-scoped kind can be listed without a namespace",
    async run({ cluster, namespace }) {
      const page = await cluster.list(NAMESPACES, { fieldSelector: `metadata.name=${namespace}` });
      expect(names(page)).toEqual([namespace]);
    },
  },
  {
    sentence: "a list of a namespace that does not exist is empty",
    async run({ cluster }) {
      expect((await cluster.list(PODS, { namespace: "nowhere" })).items).toEqual([]);
    },
  },
];
