/** Starts Debian's Chromium without a window, and opens pages that record their requests and messages. */
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export function startBrowser(): Promise<Browser> {
  const executablePath = process.env["CHROMIUM"] ?? PLACES.find((place) => existsSync(place));
  if (executablePath === undefined)
    throw new Error("there is no Chromium here: apt-get install chromium, or set CHROMIUM to its path");
  // Chromium refuses its sandbox for root.
  return chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
}

export interface OpenPage {
  readonly page: Page;
  /** addresses that the page requested, its own first */
  readonly requests: readonly string[];
  /** lines on the page's console, with violations of its policy, and dialogs */
  readonly said: readonly string[];
}

/** Opens a document as a file, like a person who received a report. */
export async function openFile(browser: Browser, html: string, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-page-"));
  const file = join(folder, "report.html");
  await writeFile(file, html);
  const opened = await openAddress(browser, pathToFileURL(file).href, options);
  await rm(folder, { recursive: true });
  return opened;
}

export async function openAddress(
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
): Promise<OpenPage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const requests: string[] = [];
  const said: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  page.on("dialog", (dialog) => {
    said.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => undefined);
  });
  await page.goto(address);
  return { page, requests, said };
}
