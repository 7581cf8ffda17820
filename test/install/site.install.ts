/**
 * Tests that the documents' site builds with its own packages, that its menu has every page, and that no link is dead.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { ROOT, run } from "./run.ts";

const SITE = join(ROOT, "infra/site");
const SOURCES = "https://example.com/blob/main";

describe("the site", { timeout: 300_000 }, () => {
  let pages: readonly string[];
  let built: string;
  beforeAll(async () => {
    const names = async (folder: string) =>
      (await readdir(join(ROOT, folder))).filter((name) => name.endsWith(".md")).map((name) => join(folder, name));
    pages = [...(await names("")), ...(await names("docs"))].map((path) => path.replace(/\.md$/, ""));
    await run("npm", ["ci"], { cwd: SITE });
    built = await run("npm", ["run", "build"], { cwd: SITE, env: { SITE_SOURCES: SOURCES } });
  }, 300_000);

  const read = (page: string) => readFile(join(ROOT, "dist/site", `${page}.html`), "utf8");

  it("the site has a page for each document, in its menu, and no page fails", async () => {
    expect(pages.length).toBeGreaterThan(25);
    expect(built).toContain("build complete");
    expect(built).not.toMatch(/error|at _sfc/i);
    const index = await read("index");
    for (const page of pages) {
      expect(await read(page.replace(/README$/, "index"))).toContain("<h1");
      expect(index, page).toContain(`href="/${page.replace(/README$/, "")}"`);
    }
  });

  it("the site has llms.txt with a line for each page, and each page as text", async () => {
    const text = await readFile(join(ROOT, "dist/site/llms.txt"), "utf8");
    expect(text).toMatch(/^# SidecarSet serverless\n\n> \S.*\n\n## /);
    const links = [...text.matchAll(/^- \[[^\]]+\]\(([^)]+)\)(?:: [A-Z].*[.:])?$/gm)].map(([, link = ""]) => link);
    expect(links.length).toBe(text.split("\n").filter((line) => line.startsWith("- ")).length);
    expect(links).toEqual(expect.arrayContaining(["docs/faq.md", "docs/tools.md", "docs/cli.md"]));
    for (const link of links)
      expect(await readFile(join(ROOT, "dist/site", link), "utf8")).toBe(await readFile(join(ROOT, link), "utf8"));
  });

  it("the site links to the repository for files that are not pages", async () => {
    expect(await read("docs/install")).toContain(`href="${SOURCES}/infra/container"`);
    expect(await read("ARCHITECTURE")).toContain(`href="${SOURCES}/infra/local/README.md"`);
  });

  it("the site shows files as text if the repository's address is not given", async () => {
    await run("npm", ["run", "build"], { cwd: SITE, env: { SITE_SOURCES: "" } });
    const page = await read("docs/install");
    expect(page).toContain("<span>infra/container</span>");
    expect(page).not.toMatch(/href="[^"]*infra\/container/);
  });
});
