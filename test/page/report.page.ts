import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReportContent, SetDetail } from "../../shared/core/inspect/report/content.ts";
import { SCRIPT } from "../../shared/core/inspect/report/document.ts";
import { renderPage } from "../../shared/core/inspect/report/page.ts";
import { addAttacks } from "../support/attacks.ts";
import { openFile, startBrowser } from "./browser.ts";
import { PAYLOADS } from "./payloads.ts";
import { contentOf, STORIES, TROUBLED } from "./subjects.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

/** The texts of the page, read from its document. */
interface Shown {
  readonly heading: string;
  readonly verdict: string;
  readonly lead: string;
  readonly legend: readonly (readonly [string, string])[];
  readonly facts: readonly (readonly [string, string])[];
  readonly reasons: readonly string[];
  readonly next: readonly string[];
  /** title of the card → rows of all its tables without the head, with a text for each cell */
  readonly tables: Readonly<Record<string, readonly (readonly string[])[]>>;
}

/** Reads the texts; runs in the page. */
function readPage(): Shown {
  const root = (globalThis as unknown as { document: ParentNodeLike }).document;
  const text = (node: NodeLike | null | undefined) => (node?.textContent ?? "").replace(/\s+/g, " ").trim();
  const all = (selector: string, from: ParentNodeLike = root) => [...from.querySelectorAll(selector)];
  const pairs = (selector: string) =>
    all(selector).map((pair) => [text(all("dt", pair)[0]), text(all("dd", pair)[0])] as const);
  const cards = all(".card").map((card): [string, string[][]] => {
    const rows = all("tbody tr", card).map((row) => all("th,td", row).map(text));
    return [text(all("h3", card)[0]), rows];
  });
  return {
    heading: text(all("h2")[0]),
    verdict: text(all(".verdict")[0]),
    lead: text(all(".lead")[0]),
    legend: pairs(".legend div"),
    facts: pairs(".facts div"),
    reasons: all(".reasons .why > strong").map(text),
    next: all("ol.reasons > li > strong").map(text),
    tables: Object.fromEntries(cards),
  };
}
interface NodeLike {
  readonly textContent: string | null;
}
interface ParentNodeLike {
  querySelectorAll(selector: string): Iterable<NodeLike & ParentNodeLike>;
}

it("the page shows each wave, its state, and what the later waves wait for", async () => {
  const { page } = await openFile(browser, renderPage(contentOf(STORIES["wave by wave"] ?? TROUBLED)), {
    javaScriptEnabled: true,
  });
  const { facts, reasons } = await page.evaluate(readPage);
  expect(facts.filter(([name]) => name.startsWith("Wave "))).toEqual([
    ["Wave dev", "soaking until 2026-03-02T11:19:00Z, 6 of 6 pods updated and ready"],
    ["Wave staging", "waiting, 0 of 3 pods updated and ready"],
    ["Wave production", "waiting, 0 of 3 pods updated and ready"],
  ]);
  expect(reasons).toContain("6 pods wait for their wave");
  await page.context().close();
});

describe("values shown equal the data", () => {
  it.each(Object.keys(STORIES))("the page shows the values of the data for a rollout that is %s", async (title) => {
    const content = contentOf(STORIES[title] ?? TROUBLED);
    const [detail] = content.details;
    if (detail === undefined) throw new Error("nothing to show");
    const { page, requests, said } = await openFile(browser, renderPage(content), { javaScriptEnabled: true });
    const shown = await page.evaluate(readPage);
    expect(shown).toMatchObject({ heading: detail.name, verdict: detail.verdict, lead: detail.headline });
    expect(shown.legend.map(([, count]) => Number(count)).sort()).toEqual(Object.values(detail.counts).sort());
    expect(shown.facts).toEqual(expect.arrayContaining(detail.facts.map((fact) => [...fact])));
    expect(shown.reasons).toEqual(detail.reasons.map((reason) => reason.title));
    expect(shown.next).toEqual(detail.next.map(({ pods }) => `${pods.length} pod${pods.length === 1 ? "" : "s"}`));
    expectTables(shown.tables, detail);
    expect(requests).toHaveLength(1);
    expect(said).toEqual([]);
    await page.context().close();
  });

  function expectTables(tables: Shown["tables"], detail: SetDetail): void {
    const rowsOf = (card: string) => tables[card] ?? [];
    const pods = new Map(detail.pods.map((pod) => [pod.name, pod]));
    expect(pods.size).toBe(detail.pods.length);
    const shownPods = rowsOf("Pods");
    expect(shownPods).toHaveLength(detail.pods.length);
    for (const [pod = "", state = ""] of shownPods) {
      const known = [...pods.values()].find(({ name, node }) => pod === `${name}${node}`);
      expect(known, pod).toBeDefined();
      expect(state.endsWith(known?.why ?? "?")).toBe(true);
    }
    expect(rowsOf("Nodes").map((row) => row.at(-1))).toEqual(detail.nodes.map(({ total }) => `${total}`));
    expect(rowsOf("Nodes").map(([node]) => node)).toEqual(detail.nodes.map(({ name }) => name));
    const batches = detail.batches.map(({ at, ready }) => [at.slice(11, 19), `${ready}`]);
    expect(rowsOf("Batches").map((row) => [row[0], row.at(-1)])).toEqual(batches);
    expect(rowsOf("Revisions").map((row) => row.at(-1))).toEqual(detail.revisions.map(({ pods: count }) => `${count}`));
    expect(rowsOf("Events")).toHaveLength(detail.events?.length ?? 0);
  }

  it("the page draws the bars and the curve to scale", async () => {
    const content = contentOf(TROUBLED);
    const { page } = await openFile(browser, renderPage(content));
    const widths = await page
      .locator(".big rect")
      .evaluateAll((rects) => rects.map((rect) => [rect.getAttribute("class"), Number(rect.getAttribute("width"))]));
    const counts = content.details[0]?.counts ?? {};
    expect(Object.fromEntries(widths)).toEqual(
      Object.fromEntries(Object.entries(counts).map(([key, count]) => [key, Math.round((count / 48) * 10_000) / 100])),
    );
    const path = (await page.locator(".line").first().getAttribute("d")) ?? "";
    const heights = [...path.matchAll(/V([\d.]+)/g)].map(([, y]) => Math.round((1 - Number(y) / 300) * 48));
    expect(heights).toEqual([5, 10, 15, 20, 21]);
    await page.context().close();
  });

  it("the list links to each SidecarSet", async () => {
    const content = contentOf({ ...TROUBLED, name: "one" }, { ...TROUBLED, name: "two", updated: 3 });
    const { page } = await openFile(browser, renderPage(content));
    await page.getByRole("link", { name: "two" }).click();
    expect(new URL(page.url()).hash).toBe("#set-2");
    expect(await page.locator("section:target h2").textContent()).toBe("two");
    await page.context().close();
  });
});

describe("what a cluster's objects contain is shown and never obeyed", () => {
  const POLICY = /<meta http-equiv="Content-Security-Policy"[^>]*>/;

  /** Replaces every text of a report by `payload`, whatever its type. */
  function poisoned<T>(value: T, payload: string, poison: { count: number }): T {
    if (typeof value === "string") {
      poison.count++;
      return payload as T;
    }
    if (Array.isArray(value)) return value.map((one) => poisoned(one, payload, poison)) as T;
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, poisoned(one, payload, poison)])) as T;
  }

  /**
   * Script for the page: returns every element with the names of its attributes, in order. Places where a word may
   * break do not count.
   */
  const SKELETON = `[...document.querySelectorAll("*:not(wbr)")].map((one) => one.tagName + " " + one.getAttributeNames()).join("\\n")`;

  async function show(content: ReportContent) {
    const html = renderPage(content);
    expect(html).toMatch(POLICY);
    // The page's policy is removed, so that only the escaping is tested.
    const { page, requests, said } = await openFile(browser, html.replace(POLICY, ""));
    await page.evaluate("globalThis.pwned = () => { globalThis.wasPwned = true; }");
    await page.evaluate('for (const one of document.querySelectorAll("details")) one.open = true;');
    await page.evaluate(
      'for (const one of document.querySelectorAll("*")) for (const type of ["mouseover", "focus", "click"]) one.dispatchEvent(new Event(type, { bubbles: true }));',
    );
    const wasPwned = await page.evaluate("globalThis.wasPwned === true");
    const skeleton = await page.evaluate(SKELETON);
    const links = await page.locator("a").evaluateAll((all) => all.map((link) => link.getAttribute("href") ?? ""));
    await page.context().close();
    return { requests: requests.filter((url) => !url.startsWith("file:")), said, wasPwned, skeleton, links };
  }

  const SMALL = { ...TROUBLED, pods: 12, updated: 6, batch: 2, failing: 1, fixed: 1 };

  it("50 hostile strings in every field stay text on the page", async () => {
    const benign = await show(poisoned(contentOf(SMALL, SMALL), "plain", { count: 0 }));
    const poison = { count: 0 };
    expect(new Set(PAYLOADS).size).toBeGreaterThanOrEqual(50);
    for (const payload of PAYLOADS) {
      const shown = await show(poisoned(contentOf(SMALL, SMALL), payload, poison));
      expect(shown.wasPwned, payload).toBe(false);
      expect(shown, payload).toEqual(benign);
      expect(shown.links.every((link) => link.startsWith("#"))).toBe(true);
    }
    expect(poison.count).toBeGreaterThan(50 * 200);
    addAttacks(PAYLOADS.length);
    process.stdout.write(`${PAYLOADS.length} strings, ${poison.count} fields\n`);
  });

  it("hostile strings in the objects themselves stay text on the page", async () => {
    for (const hostile of PAYLOADS.slice(0, 10)) {
      const html = renderPage(contentOf({ ...TROUBLED, hostile }));
      const { page, requests, said } = await openFile(browser, html);
      expect([requests.length, said], hostile).toEqual([1, []]);
      expect(await page.locator("script").allTextContents()).toEqual([SCRIPT]);
      expect(await page.locator("img,iframe,object,embed,base,form,link").count()).toBe(0);
      expect(await page.locator("h2").count()).toBe(1);
      await page.context().close();
    }
  });

  it("a script that got into the page would not run", async () => {
    const html = renderPage(contentOf(TROUBLED)).replace(
      "</main>",
      '<script>document.title = "pwned"</script><button onclick="document.title = `pwned`">x</button><img src="https://evil.example/x.png"><p style="color:red">x</p></main>',
    );
    const { page, said } = await openFile(browser, html);
    await page.getByRole("button", { name: "x", exact: true }).click();
    expect(await page.title()).not.toBe("pwned");
    expect(said.filter((line) => /Content Security Policy/.test(line))).toHaveLength(4);
    await page.context().close();
  });

  it("the page's own script cannot make markup from a text", async () => {
    const { page } = await openFile(browser, renderPage(contentOf(TROUBLED)));
    const tried = await page.evaluate(
      '(() => { try { document.body.innerHTML = "<b>x</b>"; return "made"; } catch (error) { return error.name; } })()',
    );
    expect(tried).toBe("TypeError");
    await page.context().close();
  });
});
