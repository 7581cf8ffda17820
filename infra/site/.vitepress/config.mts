/** The documents as a site, with a search: what README and docs say, nothing of its own. A dead link fails the build. */
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { type DefaultTheme, defineConfig, type MarkdownOptions } from "vitepress";

const ROOT = new URL("../../../", import.meta.url);

/** Where files that are not pages are shown. */
const SOURCES = process.env["SITE_SOURCES"];
if (!SOURCES?.startsWith("https://"))
  throw new Error(
    "SITE_SOURCES is not set: it says where the site shows files of the repository, such as https://github.com/OWNER/NAME/blob/main",
  );

const GROUPS: Readonly<Record<string, readonly string[]>> = {
  Start: ["README", "docs/demo", "docs/first-steps", "docs/concepts", "docs/faq"],
  Install: [
    "docs/install",
    "docs/deploy",
    "docs/alarms",
    "docs/deploy-by-hand",
    "docs/several-clusters",
    "docs/platforms",
    "docs/gitops",
    "docs/migration",
    "docs/upgrade",
    "docs/authentication",
  ],
  Use: [
    "docs/cli",
    "docs/operations",
    "docs/traces",
    "docs/canary",
    "docs/waves",
    "docs/metric-checks",
    "docs/replace",
    "docs/rights",
    "docs/reasons",
    "docs/check",
    "docs/library",
    "docs/tools",
  ],
  Features: [
    "docs/native-sidecars",
    "docs/resize",
    "docs/disruption-budgets",
    "docs/launch-order",
    "docs/container-recreate",
    "docs/sidecar-terminator",
    "docs/compile",
    "docs/ordered-sets",
    "docs/in-place",
    "docs/read-your-writes",
  ],
  Reference: [
    "docs/settings",
    "docs/annotations",
    "docs/limits",
    "docs/compatibility",
    "docs/benchmarks",
    "docs/speed",
    "CHANGELOG",
    "SECURITY",
    "CONTRIBUTING",
    "AGENTS",
    "ARCHITECTURE",
    "docs/overlapping-ticks",
  ],
  Decisions: [
    "docs/decisions/README",
    "docs/decisions/0001-ledger",
    "docs/decisions/0002-read-your-writes",
    "docs/decisions/0003-annotations",
    "docs/decisions/0004-secret-paths",
    "docs/decisions/0005-no-informer",
    "docs/decisions/0006-raw-json",
    "docs/decisions/0007-double-bundle",
    "docs/decisions/0008-own-kubernetes-client",
    "docs/decisions/0009-embedded-cluster",
    "docs/decisions/0010-kernel-and-rules",
    "docs/decisions/0011-book-of-holds",
    "docs/decisions/0012-yaml-reader",
    "docs/decisions/0013-size-of-the-house",
    "docs/decisions/0014-what-may-go",
    "docs/decisions/0015-steering",
  ],
};

function titleOf(page: string): string {
  const [, title] = /^# (.+)$/m.exec(readFileSync(new URL(`${page}.md`, ROOT), "utf8")) ?? [];
  return title ?? page;
}

const sidebar: DefaultTheme.SidebarItem[] = Object.entries(GROUPS).map(([text, pages]) => ({
  text,
  items: pages.map((page) => ({ text: titleOf(page), link: page === "README" ? "/" : `/${page}` })),
}));

const PAGES = new Set(Object.values(GROUPS).flat());

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

export default defineConfig({
  title: "SidecarSet serverless",
  srcDir: "pages",
  outDir: "../../dist/site",
  rewrites: { "README.md": "index.md" },
  cleanUrls: true,
  markdown: { config },
  vite: { esbuild: { tsconfigRaw: "{}" } },
  themeConfig: { sidebar, search: { provider: "local" }, outline: [2, 3] },
});
