/** Tests the documents' site in a browser, as `npm ci && npm run build` in infra/site builds it. */

import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT, run } from "../install/run.ts";
import { openAddress, startBrowser } from "./browser.ts";

const BUILT = join(ROOT, "dist/site");
const PHONE = { viewport: { width: 390, height: 844 } };
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

/** Serves static files with addresses that have no extension. */
function serveFiles(): Server {
  return createServer(async ({ url = "/" }, response) => {
    const path = normalize(decodeURIComponent(url.split(/[?#]/)[0] ?? "/"));
    const file = path.endsWith("/") ? `${path}index.html` : extname(path) === "" ? `${path}.html` : path;
    const content = await readFile(join(BUILT, file)).catch(() => undefined);
    response.writeHead(content ? 200 : 404, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
    response.end(content);
  });
}

describe("the site of the documents", { timeout: 300_000 }, () => {
  let browser: Browser;
  let server: Server;
  let home: string;
  beforeAll(async () => {
    const site = { cwd: join(ROOT, "infra/site") };
    await run("npm", ["ci"], site);
    await run("npm", ["run", "build"], site);
    server = serveFiles().listen(0, "127.0.0.1");
    await new Promise((listening) => server.once("listening", listening));
    home = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await startBrowser();
  }, 300_000);
  afterAll(async () => {
    await browser?.close();
    server?.close();
  });

  it("no page of the site scrolls sideways on a phone that is 390 pixels wide", async () => {
    const pages = globSync("**/*.html", { cwd: BUILT }).filter((name) => name !== "404.html");
    expect(pages.length).toBeGreaterThan(70);
    const { page } = await openAddress(browser, home, PHONE);
    const wide: string[] = [];
    for (const name of pages) {
      await page.goto(`${home}/${name.replace(/(?:index)?\.html$/, "")}`);
      const width = await page.evaluate("document.documentElement.scrollWidth");
      if (Number(width) > PHONE.viewport.width) wide.push(`${name}: ${width}`);
    }
    expect(wide).toEqual([]);
  });

  it.each([
    ["exclude namespace", "/docs/exclude"],
    ["rollback", "/docs/cli-steer"],
    ["ci", "/docs/ci"],
  ])("the search of the site finds “%s” at %s", async (words, address) => {
    const { page } = await openAddress(browser, home);
    await page.waitForLoadState("networkidle");
    await page.click("#local-search button");
    await page.fill("input.search-input", words);
    await page.waitForSelector("a.result");
    const found = await page.$$eval("a.result", (links) => links.slice(0, 5).map((link) => link.getAttribute("href")));
    expect(found.map((link) => link?.split("#")[0])).toContain(address);
  });
});
