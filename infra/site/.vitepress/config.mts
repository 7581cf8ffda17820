/** The documents as a site, with a search: what README and docs say, nothing of its own. A dead link fails the build. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import { type DefaultTheme, defineConfig, type MarkdownOptions } from "vitepress";

const ROOT = new URL("../../../", import.meta.url);

/** Where files that are not pages are shown. */
const SOURCES = process.env["SITE_SOURCES"];
if (!SOURCES?.startsWith("https://"))
  throw new Error(
    "SITE_SOURCES is not set: it says where the site shows files of the repository, such as https://github.com/OWNER/NAME/blob/main",
  );

/** The menu is the index of the documents: its headings, and the pages below each. */
const INDEX = "docs/README";
const GROUPS: readonly (readonly [heading: string, pages: readonly string[]])[] = readPage(INDEX)
  .split(/^## /m)
  .slice(1)
  .map((part) => [part.slice(0, part.indexOf("\n")), linksIn(part)]);

const DESCRIPTION: string = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8")).description;

const DECISIONS = "docs/decisions/";
const RECORDS = readdirSync(new URL(DECISIONS, ROOT)).map((name) => `${DECISIONS}${name.replace(/\.md$/, "")}`);

function readPage(page: string): string {
  return readFileSync(new URL(`${page}.md`, ROOT), "utf8");
}

/** Each page once, in order. */
function linksIn(part: string): readonly string[] {
  return [...new Set([...part.matchAll(/\]\(([^)#]+)\.md\)/g)].map(([, link = ""]) => posix.join("docs", link)))];
}

function titleOf(page: string): string {
  const [, title] = /^# (.+)$/m.exec(readPage(page)) ?? [];
  return title ?? page;
}

const itemOf = (page: string) => ({ text: titleOf(page), link: page === "README" ? "/" : `/${page}` });
const sidebar: DefaultTheme.SidebarItem[] = [
  itemOf(INDEX),
  ...GROUPS.map(([text, pages]) => ({ text, collapsed: true, items: pages.map(itemOf) })),
];

const PAGES = new Set([INDEX, ...GROUPS.flatMap(([, pages]) => pages), ...RECORDS]);

/** Where a file that a page links to is shown; undefined: it is a page, or a link to elsewhere. */
function sourceOf(page: string, href: string): string | undefined {
  if (/^(?:[a-z]+:|#)/.test(href)) return undefined;
  const path = posix.join(posix.dirname(page), href);
  return PAGES.has(path.replace(/\.md(?:#.*)?$/, "")) ? undefined : `${SOURCES}/${path}`;
}

/** Links to what is no page lead to the repository, and braces in code are text. */
const config: NonNullable<MarkdownOptions["config"]> = (md) => {
  const { code_inline: inline } = md.renderer.rules;
  md.renderer.rules.code_inline = (...given) => inline?.(...given).replace("<code", "<code v-pre") ?? "";
  md.core.ruler.push("sources", ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === "link_open" ? token.attrGet("href") : null;
      const source = href && sourceOf(env.relativePath, href);
      if (source) token.attrSet("href", source);
    }
  });
};

/** What an agent reads first: each page with its first sentence, and the pages as they are written. */
function writeForAgents(folder: string): void {
  const lineOf = (page: string) => {
    const [, sentence = ""] = /^# .+\n\n([A-Z].*?\.(?=\s|$)|[A-Z].*:$)/m.exec(readPage(page)) ?? [];
    return `- [${titleOf(page)}](${page}.md)${sentence ? `: ${sentence.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")}` : ""}`;
  };
  const parts = GROUPS.map(([heading, pages]) => `## ${heading}\n\n${pages.map(lineOf).join("\n")}\n`);
  const begin = `# SidecarSet serverless\n\n> ${DESCRIPTION}\n`;
  writeFileSync(posix.join(folder, "llms.txt"), [begin, ...parts].join("\n"));
  for (const page of PAGES) {
    mkdirSync(posix.join(folder, posix.dirname(page)), { recursive: true });
    writeFileSync(posix.join(folder, `${page}.md`), readPage(page));
  }
}

export default defineConfig({
  title: "SidecarSet serverless",
  srcDir: "pages",
  outDir: "../../dist/site",
  buildEnd: ({ outDir }) => writeForAgents(outDir),
  rewrites: { "README.md": "index.md" },
  cleanUrls: true,
  markdown: { config },
  vite: { esbuild: { tsconfigRaw: "{}" } },
  themeConfig: { sidebar, search: { provider: "local" }, outline: [2, 3] },
});
