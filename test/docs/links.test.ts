/** Tests that every link of every document leads to an existing file and an existing heading. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";

const PAGES = execFileSync("git", ["ls-files", "*.md"], { encoding: "utf8" })
  .split("\n")
  .filter((path) => path !== "" && existsSync(path));

interface Link {
  readonly path: string;
  readonly anchor: string | undefined;
}

/** Returns the text without code. */
function proseOf(page: string): string {
  return readFileSync(page, "utf8")
    .replace(/^```[\s\S]*?^```/gm, "")
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ""));
}

function linksOf(page: string): readonly Link[] {
  return [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path = "", anchor] = target.split("#");
      return { path: path === "" ? page : normalize(join(dirname(page), path)), anchor };
    });
}

/** Returns the anchors that GitHub makes of headings. */
function anchorsOf(page: string): ReadonlySet<string> {
  const text = readFileSync(page, "utf8").replace(/^```[\s\S]*?^```/gm, "");
  const headings = [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{Letter}\p{Number} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
  const named = [...text.matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, name = ""]) => name);
  return new Set([...headings, ...named]);
}

describe("links of the documents:", () => {
  it.each(PAGES)("%s links only to existing files and headings", (page) => {
    const broken = linksOf(page).filter(
      ({ path, anchor }) =>
        !existsSync(path) || (anchor !== undefined && statSync(path).isFile() && !anchorsOf(path).has(anchor)),
    );
    expect(broken).toEqual([]);
  });

  it("another page links to each page of docs", () => {
    const links = PAGES.flatMap((page) => linksOf(page).map(({ path }) => ({ page, path })));
    expect(links.length).toBeGreaterThan(100);
    const linked = new Set(links.filter(({ page, path }) => page !== path).map(({ path }) => path));
    expect(PAGES.filter((page) => page.startsWith("docs/") && !linked.has(page))).toEqual([]);
  });

  it("git ignores the files that docs/first-steps.md writes", () => {
    const steps = readFileSync("docs/first-steps.md", "utf8");
    const written = ["tls.key", "tls.crt", "path-secrets", "new.yaml", "kubeconfig"];
    for (const file of written) expect(steps).toContain(file);
    const ignored = execFileSync("git", ["check-ignore", ...written], { encoding: "utf8" });
    expect(ignored.trim().split("\n")).toEqual(written);
  });

  it("the index of the documents, which is the menu of the site, links to each page at the top and in docs", () => {
    const index = "docs/README.md";
    const linked = new Set([index, ...linksOf(index).map(({ path }) => path)]);
    const pages = PAGES.filter((page) => /^(?:docs\/)?[^/]+\.md$/.test(page));
    expect(pages.length).toBeGreaterThan(60);
    expect(pages.filter((page) => !linked.has(page))).toEqual([]);
  });
});
