/** The documents as a site with a search. It shows README and docs, and nothing else. A dead link fails the build. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import { type DefaultTheme, defineConfig, type MarkdownOptions } from "vitepress";

const ROOT = new URL("../../../", import.meta.url);

/** Address of files that are not pages, such as https://github.com/OWNER/NAME/blob/main; undefined: they are plain text. */
const SOURCES = process.env["SITE_SOURCES"];

/** The menu is the index of the documents: its headings, with the pages below each heading. */
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

/** All pages, each once, in order. */
function linksIn(part: string): readonly string[] {
  return [...new Set([...part.matchAll(/\]\(([^)#]+)\.md\)/g)].map(([, link = ""]) => posix.join("docs", link)))];
}

function titleOf(page: string): string {
  const [, title] = /^# (.+)$/m.exec(readPage(page)) ?? [];
  return title ?? page;
}

const itemOf = (page: string) => ({ text: titleOf(page), link: `/${page.replace(/README$/, "")}` });
const sidebar: DefaultTheme.SidebarItem[] = [
  itemOf(INDEX),
  ...GROUPS.map(([text, pages]) => ({ text, collapsed: true, items: pages.map(itemOf) })),
];

const PAGES = new Set([INDEX, ...GROUPS.flatMap(([, pages]) => pages), ...RECORDS]);

/** The path of a file in the repository that a page links to; undefined: the link leads to a page or outside. */
function fileOf(page: string, href: string): string | undefined {
  if (/^(?:[a-z]+:|#)/.test(href)) return undefined;
  const path = posix.join(posix.dirname(page), href);
  return PAGES.has(path.replace(/\.md(?:#.*)?$/, "")) ? undefined : path;
}

/** A part of a line, in the form of markdown-it. */
interface Part {
  readonly type: string;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

/** Makes the link at `index` lead to the repository, or plain text if the repository's address is unknown. */
function showSource(parts: readonly Part[], index: number, file: string): void {
  if (SOURCES) parts[index]?.attrSet("href", `${SOURCES}/${file}`);
  const close = parts.slice(index).find(({ type }) => type === "link_close");
  if (!SOURCES) for (const part of [parts[index], close]) Object.assign(part ?? {}, { tag: "span", attrs: null });
}

/** Links to files that are no pages lead to the repository, and braces in code are text. */
const config: NonNullable<MarkdownOptions["config"]> = (md) => {
  const { code_inline: inline, fence } = md.renderer.rules;
  // Indented code gets the frame of a fenced block, which scrolls by itself on a phone.
  md.renderer.rules.code_block = (...given) => fence?.(...given) ?? "";
  md.renderer.rules.code_inline = (...given) => inline?.(...given).replace("<code", "<code v-pre") ?? "";
  md.core.ruler.push("sources", ({ tokens, env }) => {
    const parts: readonly Part[] = tokens.flatMap(({ children }) => children ?? []);
    for (const [index, part] of parts.entries()) {
      const file = part.type === "link_open" ? fileOf(env.relativePath, part.attrGet("href") ?? "#") : undefined;
      if (file) showSource(parts, index, file);
    }
  });
};

/** Writes texts for agents: each page with its first sentence, and the source of the pages. */
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
  rewrites: { "README.md": "index.md", "docs/README.md": "docs/index.md" },
  cleanUrls: true,
  markdown: { config },
  vite: { esbuild: { tsconfigRaw: "{}" } },
  themeConfig: { sidebar, search: { provider: "local" }, outline: [2, 3] },
});
