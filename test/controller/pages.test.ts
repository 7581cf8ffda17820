import { expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { keepSmall, noPages, readPages } from "../../shared/controller/loop/pages.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, type ListOptions, PODS, type Resource } from "../../shared/kube/port.ts";

const named = (name: string) => ({ metadata: { name } });

/** Returns an API server with a list of two pages, whose token expires `times` times before the second page is read. */
function expiring(times: number) {
  const asked: string[] = [];
  const list = async (_: Resource, options: ListOptions = {}) => {
    asked.push(options.continue ?? "first");
    if (options.continue === undefined)
      return { metadata: { resourceVersion: "7", continue: "more" }, items: [named("a"), named("b")] };
    if (asked.filter((token) => token === "more").length <= times)
      throw new KubeError("the continue token is too old", { code: 410, reason: "Expired" });
    return { metadata: { resourceVersion: "7" }, items: [named("c")] };
  };
  return { asked, cluster: { list } as unknown as Cluster };
}

const listing = {
  resource: PODS,
  options: {},
  keep: ({ metadata }: KubernetesObject) => (metadata?.name === "b" ? undefined : metadata?.name),
};

it("readPages reads all pages and keeps what the keep function returns", async () => {
  const { asked, cluster } = expiring(0);
  const pages = await readPages(cluster, listing, noPages<string>());
  expect(pages).toEqual({ items: ["a", "c"], resourceVersion: "7", token: undefined, isComplete: true });
  expect(asked).toEqual(["first", "more"]);
});

it("readPages accepts a list of one page whose items the cluster already reduced", async () => {
  const list = async (_: Resource, { keep }: ListOptions = {}) => {
    const kept = ["a", "b", "c"].map((name) => keep?.(named(name)));
    return { metadata: { resourceVersion: "7" }, items: [], kept };
  };
  const pages = await readPages({ list } as unknown as Cluster, listing, noPages<string>());
  expect(pages).toMatchObject({ items: ["a", "c"], isComplete: true });
});

it("readPages starts a list again when its token expires, and returns no item twice", async () => {
  const { asked, cluster } = expiring(2);
  expect((await readPages(cluster, listing, noPages<string>())).items).toEqual(["a", "c"]);
  expect(asked).toEqual(["first", "more", "first", "more", "first", "more"]);
});

it("readPages fails after repeated expired tokens and leaves no items behind", async () => {
  const { asked, cluster } = expiring(9);
  const pages = noPages<string>();
  await expect(readPages(cluster, listing, pages)).rejects.toMatchObject({ code: 410 });
  expect(pages).toEqual({ items: [], resourceVersion: "", token: undefined, isComplete: false });
  expect(asked).toHaveLength(6);
});

it("readPages continues a list that was interrupted between two pages", async () => {
  const { asked, cluster } = expiring(0);
  let over = false;
  const pages = noPages<string>();
  const keep = (item: KubernetesObject) => {
    over = true;
    return listing.keep(item);
  };
  await readPages(cluster, { ...listing, keep, isOver: () => over }, pages);
  expect(pages).toMatchObject({ items: ["a"], token: "more", isComplete: false });
  await readPages(cluster, listing, pages);
  expect(pages).toMatchObject({ items: ["a", "c"], isComplete: true });
  expect(asked).toEqual(["first", "more"]);
});

it("a list whose next page is the page that was just read ends with an error", async () => {
  let asked = 0;
  const list = async () => {
    asked++;
    return { metadata: { resourceVersion: "7", continue: "same" }, items: [named("a")] };
  };
  await expect(readPages({ list } as unknown as Cluster, listing, noPages())).rejects.toThrow(
    "LIST pods: the answer names the page that was just read as the next one, so the list has no end",
  );
  expect(asked).toBe(2);
});

it("a page that does not arrive is requested again with a tenth of its items, and later pages grow", async () => {
  const limits: unknown[] = [];
  const list = async (_: Resource, { limit = 0 }: ListOptions = {}) => {
    limits.push(limit);
    if (limit > 100) throw new KubeError("there was no answer in time", { code: 0, reason: "DeadlineExceeded" });
    const token = limits.length < 6 ? { continue: `page-${limits.length}` } : {};
    return { metadata: { resourceVersion: "7", ...token }, items: [named(`p${limits.length}`)] };
  };
  const pages = noPages<string>();
  const cluster = { list } as unknown as Cluster;
  await expect(readPages(cluster, listing, pages)).rejects.toMatchObject({ reason: "DeadlineExceeded" });
  await expect(readPages(cluster, listing, pages)).rejects.toMatchObject({ reason: "DeadlineExceeded" });
  expect((await readPages(cluster, listing, pages)).items).toEqual(["p2", "p3", "p5", "p6"]);
  expect(limits).toEqual([500, 50, 100, 200, 20, 40]);
});

it("keepSmall leaves out objects that are too large, and one problem names the first of them", () => {
  const problems: string[] = [];
  const keep = keepSmall({ problems }, "pod", (item: KubernetesObject) => item);
  const large = (name: string) => ({
    metadata: { namespace: "shop", name, annotations: { text: "x".repeat(65_536) } },
  });
  const many = {
    metadata: { name: "m", labels: Object.fromEntries(Array.from({ length: 7_000 }, (_, at) => [at, ""])) },
  };
  expect([keep(large("a")), keep(large("b")), keep(many)]).toEqual([undefined, undefined, undefined]);
  expect(keep(named("small"))).toEqual(named("small"));
  expect(problems).toEqual(["pod shop/a is left out: a pass would keep more than 65536 characters of it"]);
});

it("keepSmall keeps an object of 65,536 characters, with ten for each value, and no larger object", () => {
  const isKept = (kept: unknown) => keepSmall({ problems: [] }, "pod", () => kept)({}) !== undefined;
  const fits = "x".repeat(65_515);
  expect([[fits], [`${fits}x`], [fits, ""], "x".repeat(65_526), { spec: null }].map(isKept)).toEqual([
    true,
    false,
    false,
    true,
    true,
  ]);
});

it("keepSmall names an object once per kind, also if there are other problems of that kind", () => {
  const why = "is left out: a pass would keep more than 65536 characters of it";
  const problems = ["pod shop/a is refused", `Lease shop/a ${why}`];
  const keep = keepSmall({ problems }, "pod", () => "x".repeat(65_536));
  keep({ metadata: { namespace: "shop", name: "b" } });
  expect(problems.slice(2)).toEqual([`pod shop/b ${why}`]);
});
