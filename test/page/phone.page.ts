import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { renderNotice } from "../../shared/core/inspect/report/document.ts";
import { renderPage } from "../../shared/core/inspect/report/page.ts";
import { openFile, startBrowser } from "./browser.ts";
import { NOW } from "./fixture.ts";
import { contentOf, explanation, fleet, STORIES, TROUBLED } from "./subjects.ts";

const PHONE = { width: 390, height: 844 };
const OPEN_ALL = 'for (const one of document.querySelectorAll("details")) one.open = true;';
const LONG = { ...TROUBLED, name: "log-agent-of-payment-services-in-europe-west-4-with-a-very-long-name" };
const pages: Readonly<Record<string, () => string>> = {
  "of a rollout in trouble": () => renderPage(contentOf(TROUBLED), { linkToPod: ({ name }) => `pods/${name}` }),
  "of a rollout with long names": () => renderPage(contentOf({ ...LONG, namespaces: ["payments-of-tenant-0012"] })),
  "of a rollout wave by wave": () => renderPage(contentOf(STORIES["wave by wave"] ?? TROUBLED)),
  "of all SidecarSets": () => fleet(300),
  "of an empty cluster": () => renderPage({ at: NOW, cluster: "", idle: undefined, sets: [], details: [] }),
  "of a pod": explanation,
  "of a cluster that cannot be read": () => renderNotice("The cluster cannot be read now", { at: NOW, up: [] }),
};

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

async function openPage(html: string): Promise<Page> {
  const { page } = await openFile(browser, html, { viewport: PHONE });
  return page;
}

/** Script for the page: returns times whose day, or whose time of day, is on more than one line. */
const BROKEN_TIMES = `[...document.querySelectorAll("time")].flatMap((time) => {
  return [...time.childNodes].filter((text) => {
    const range = document.createRange();
    range.selectNodeContents(text);
    return text.nodeType === Node.TEXT_NODE && range.getClientRects().length > 1;
  }).map(({ data }) => data);
})`;

/** Script for the page: returns everything that can be tapped, with its height. */
const SMALL_TARGETS = `[...document.querySelectorAll("a,summary,button,input,select")]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.matches(".skip"))
  .map((one) => [one.tagName, one.textContent.trim().slice(0, 20), one.getBoundingClientRect().height])
  .filter(([tag, , height]) => height < (["BUTTON", "INPUT", "SELECT"].includes(tag) ? 44 : 24))`;

const LONG_REASONS = `document.querySelectorAll("td:has(> .mark)").forEach((cell) => {
  const reason = document.createElement("small");
  reason.textContent = "the pod is not ready (ReadinessGatesNotReady: corresponding condition of a pod readiness gate does not exist)";
  cell.append(reason);
})`;
const NARROWEST_NAME = `Math.min(...[...document.querySelectorAll("tr:has(> td > .mark) > th")]
  .map((one) => one.getBoundingClientRect().width))`;

it("a long reason leaves the names of pods room at 320, 390 and 500 pixels", async () => {
  const page = await openPage(renderPage(contentOf(TROUBLED)));
  await page.evaluate(OPEN_ALL);
  await page.evaluate(LONG_REASONS);
  for (const [width, least] of [
    [320, 50],
    [390, 90],
    [500, 90],
  ] as const) {
    await page.setViewportSize({ width, height: 844 });
    expect(await page.evaluate(NARROWEST_NAME)).toBeGreaterThan(least);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
  }
  await page.context().close();
});

describe.each(Object.entries(pages))("the page %s", (_, render) => {
  it("the page does not break a time over two lines and does not scroll sideways at 320, 390, 768 and 1440 pixels", async () => {
    const page = await openPage(render());
    await page.evaluate(OPEN_ALL);
    for (const width of [320, 390, 768, 1440]) {
      await page.setViewportSize({ width, height: 844 });
      expect([width, await page.evaluate(BROKEN_TIMES)]).toEqual([width, []]);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    }
    await page.context().close();
  });

  it("at 390 pixels everything to tap on the page is at least 24 pixels high, and every control at least 44", async () => {
    const page = await openPage(render());
    await page.evaluate(OPEN_ALL);
    expect(await page.evaluate(SMALL_TARGETS)).toEqual([]);
    await page.context().close();
  });

  it("the page shows the same without a script, and nothing that would need a script", async () => {
    const { page } = await openFile(browser, render(), { viewport: PHONE, javaScriptEnabled: false });
    expect(await page.locator("button:visible, input:visible, select:visible").count()).toBe(0);
    expect(await page.locator("a.up").count()).toBe(1);
    await page.context().close();
  });
});

describe("back to top", () => {
  it("a link to the top is on the screen as soon as somebody has scrolled down", async () => {
    const page = await openPage(fleet(300));
    const link = page.getByRole("link", { name: "Back to top" });
    expect(await link.count()).toBe(0);
    await page.evaluate("scrollTo(0, 5000)");
    await expect.poll(() => link.evaluate((one) => one.getBoundingClientRect().bottom)).toBeLessThanOrEqual(844);
    await link.click();
    await expect.poll(() => page.evaluate("scrollY")).toBe(0);
    await page.context().close();
  });
});

describe("the filter", () => {
  const shown = (page: Page, rows = ".sets tbody tr") =>
    page
      .locator(`${rows}:visible`)
      .evaluateAll((all) => all.map((row) => row.querySelector("th")?.firstChild?.textContent));
  const address = (page: Page) => new URL(page.url()).hash;

  it("the filter shows the SidecarSets with a name and a state, and their share of all SidecarSets", async () => {
    const page = await openPage(fleet(300));
    await page.getByRole("searchbox").fill("TEAM-29");
    expect(await shown(page)).toHaveLength(11);
    expect(await page.locator("output").textContent()).toBe("11 of 300 shown");
    await page.getByRole("combobox").selectOption("Blocked");
    expect(await shown(page)).toEqual(["log-agent-of-team-299"]);
    expect(await page.getByRole("combobox").locator("option").allTextContents()).toEqual(
      expect.arrayContaining(["Any state", "Blocked (1)", "Ready (290)"]),
    );
    await page.getByRole("searchbox").fill("no such name");
    expect(await page.locator("output").textContent()).toBe("0 of 300 shown");
    await page.context().close();
  });

  it("the filter is in the address: a reader who opens it, loads it again or goes back to the top sees the same rows", async () => {
    const html = fleet(300);
    const page = await openPage(html);
    await page.getByRole("searchbox").fill("team-29 log");
    await page.getByRole("combobox").selectOption("Ready");
    const query = address(page);
    expect(new URLSearchParams(query.slice(1)).get("filter")).toBe("team-29 log");
    const { page: other } = await openServed(html, query);
    expect([await shown(other), await other.getByRole("searchbox").inputValue()]).toEqual([
      await shown(page),
      "team-29 log",
    ]);
    await other.reload();
    expect(await shown(other)).toEqual(await shown(page));
    const stop = (await other.getByRole("link", { name: "Stop" }).getAttribute("href")) ?? "";
    expect(stop.endsWith(`/ui?refresh=off${query}`)).toBe(true);
    await page.locator("a.up").evaluate((link) => (link as unknown as Clickable).click());
    await expect.poll(() => address(page)).toBe(query);
    await page.getByRole("searchbox").fill("");
    await page.getByRole("combobox").selectOption("");
    expect([address(page), (await shown(page)).length]).toEqual(["", 300]);
    await page.context().close();
    await other.context().close();
  });

  it("the filter opens the workloads with pods of a namespace and a state, and closes them when it is empty again", async () => {
    const page = await openPage(renderPage(contentOf(TROUBLED)));
    const groups = () => page.locator(".pods > details:visible > summary").allTextContents();
    expect([await shown(page, ".pods tbody tr"), (await groups()).length]).toEqual([[], 3]);
    await page.getByRole("searchbox").fill("billing/");
    expect(await shown(page, ".pods tbody tr")).toHaveLength(16);
    expect(await groups()).toEqual([expect.stringMatching(/^billing\//)]);
    await page.getByRole("combobox").selectOption({ label: "Failing (2)" });
    expect(await shown(page, ".pods tbody tr")).toEqual(["web-6d4cf56db6-xxxxj"]);
    await page.getByRole("combobox").selectOption("");
    await page.getByRole("searchbox").fill("");
    expect([await shown(page, ".pods tbody tr"), (await groups()).length]).toEqual([[], 3]);
    await page.context().close();
  });

  it("the filter shows the whole report of the named SidecarSet, and no pods of other SidecarSets", async () => {
    const page = await openPage(renderPage(contentOf({ ...TROUBLED, name: "one" }, { ...TROUBLED, name: "two" })));
    await page.getByRole("searchbox").fill("two");
    expect(await page.locator("h2:visible").allTextContents()).toEqual(["two"]);
    expect(await shown(page)).toEqual(["two"]);
    await page.getByRole("searchbox").fill("billing");
    expect(await page.locator("h2:visible").allTextContents()).toEqual(["one", "two"]);
    await page.context().close();
  });

  it("the filter finds one of 20,000 pods", async () => {
    const page = await openPage(renderPage(contentOf({ ...TROUBLED, pods: 20_000, updated: 100, nodes: 250 })));
    const begin = performance.now();
    await page.getByRole("searchbox").fill("xxfez");
    expect(await shown(page, ".pods tbody tr")).toHaveLength(1);
    process.stdout.write(`filter of 20,000 pods: ${Math.round(performance.now() - begin)} ms\n`);
    await page.context().close();
  });
});

interface Clickable {
  click(): void;
}

/** Opens the page over plain http on loopback, as behind `kubectl port-forward`. */
async function openServed(html: string, hash = "") {
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end(html));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const context = await browser.newContext({ viewport: PHONE, permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  page.on("close", () => server.close());
  await page.goto(`${origin}/ui${hash}`);
  return { page, origin };
}

describe("the commands", () => {
  const html = () => renderPage(contentOf(TROUBLED));
  const COMMANDS = [
    "sidecarset undo log-agent",
    "kubectl -n billing delete pod web-6d4cf56db6-xxx1a",
    "kubectl -n search delete pod web-6d4cf56db6-xxx1b",
    "kubectl -n shop delete pod web-6d4cf56db6-xxx19",
    "sidecarset promote log-agent",
  ];

  it("each command has a button that copies it over http on loopback, and says so", async () => {
    const { page } = await openServed(html());
    expect(await page.locator(".cmd code").allTextContents()).toEqual(COMMANDS);
    for (const [at, command] of COMMANDS.entries()) {
      const button = page.locator(".cmd").nth(at).getByRole("button");
      await button.click();
      await expect.poll(() => button.textContent()).toBe("Copied");
      expect(await page.evaluate("navigator.clipboard.readText()")).toBe(command);
      expect(await page.getByRole("status").allTextContents()).toContain(`Copied: ${command}`);
    }
    expect(await page.getByRole("button", { name: "Copied" }).count()).toBe(1);
    await page.context().close();
  });

  it("a button selects the command if the browser does not allow copying", async () => {
    const page = await openPage(html());
    await page.evaluate("document.execCommand = () => false");
    await page.evaluate('Object.defineProperty(navigator, "clipboard", { value: undefined })');
    const button = page.locator(".cmd").last().getByRole("button");
    await button.click();
    await expect.poll(() => button.textContent()).toBe("Selected");
    expect(await page.evaluate("String(getSelection())")).toBe("sidecarset promote log-agent");
    await page.context().close();
  });

  it("a tap selects the whole command if no script runs", async () => {
    const { page } = await openFile(browser, html(), { viewport: PHONE, javaScriptEnabled: false });
    await page
      .locator(".cmd code")
      .last()
      .click({ position: { x: 5, y: 5 } });
    expect(await page.evaluate("String(getSelection()).trim()")).toBe("sidecarset promote log-agent");
    await page.context().close();
  });

  it("the commands are printed without buttons, filter and links to the top", async () => {
    const page = await openPage(html());
    await page.emulateMedia({ media: "print" });
    expect(await page.locator("button:visible, input:visible, select:visible, .up:visible").count()).toBe(0);
    expect(await page.locator(".cmd code:visible").allTextContents()).toEqual(COMMANDS);
    await page.context().close();
  });
});

describe("a page that is loaded again", () => {
  it("a page that reloads keeps its filter, its open parts and its scroll position", async () => {
    const { page } = await openServed(
      renderPage(contentOf(TROUBLED), { refresh: { seconds: 1, other: "?refresh=off" } }),
    );
    await page.getByRole("searchbox").fill("billing");
    await page.getByText("and 2 more").first().click();
    await page.evaluate("scrollTo(0, 700); globalThis.isFirst = true");
    await expect.poll(() => page.evaluate("globalThis.isFirst")).toBe(undefined);
    await expect.poll(() => page.evaluate("scrollY")).toBe(700);
    expect(await page.locator("details.more[open]").count()).toBe(1);
    expect(await page.locator("output").textContent()).toBe("16 of 48 shown");
    await page.context().close();
  });

  it.each([
    [390, "the filter", "input"],
    [1200, "the filter", "input"],
    [390, "an opened list", "details.more[open] > summary"],
    [1200, "the button of a command", ".cmd button"],
    [1200, "the link that stops it", 'a[href="?refresh=off"]'],
  ])("a page that reloads keeps the keyboard focus at %i pixels on %s", async (width, _, selector) => {
    const { page } = await openServed(
      renderPage(contentOf(TROUBLED), { refresh: { seconds: 3, other: "?refresh=off" } }),
    );
    await page.setViewportSize({ width, height: 800 });
    await page.getByText("and 2 more").first().click();
    await page.evaluate("globalThis.isFirst = true");
    await page.locator(selector).last().focus();
    await page.evaluate("scrollTo(0, 300)");
    const seen = `[globalThis.isFirst, scrollY, document.activeElement === [...document.querySelectorAll('${selector}')].at(-1)]`;
    await expect.poll(() => page.evaluate(seen), { timeout: 15_000 }).toEqual([undefined, 300, true]);
    await page.context().close();
  });
});
