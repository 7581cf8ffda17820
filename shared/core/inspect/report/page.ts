/** Decides how a report reads as a page: one HTML file that asks for nothing else and runs nothing. */
import { createHash } from "node:crypto";
import type { ReportContent, SetDetail } from "./content.ts";
import { html, verbatim } from "./html.ts";
import { section } from "./section.ts";
import { STYLE } from "./style.ts";
import { setsTable } from "./tables.ts";
import { timeOf } from "./words.ts";

const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

/** Nothing is loaded, run or sent; only this style sheet counts. */
const POLICY = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'`;

/** For whoever serves the page: in a header it can also forbid frames. */
export const PAGE_POLICY = `${POLICY}; frame-ancestors 'none'`;

export interface PageOptions {
  /** where the SidecarSets of the list are shown; absent: further down on the same page */
  readonly linkTo?: (name: string) => string;
  /** where the list of all is; absent: here */
  readonly up?: string;
}

/** Pure. The whole document, as text. */
export function renderPage(content: ReportContent, options: PageOptions = {}): string {
  const { at, cluster, sets, details } = content;
  const ids = new Map(details.map(({ name }, index) => [name, `set-${index + 1}`]));
  const linkTo = options.linkTo ?? ((name: string) => `#${ids.get(name) ?? "main"}`);
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${titleOf(details)}</title>
<style>${verbatim(STYLE)}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
<header class="top"><h1>SidecarSets${cluster !== "" && ` of ${cluster}`}</h1><p>As of ${timeOf(at)} UTC</p></header>
<main id="main" tabindex="-1">
${options.up !== undefined && html`<nav aria-label="SidecarSets"><a href="${options.up}">All SidecarSets</a></nav>`}
${(sets.length !== 1 || details.length === 0) && html`<div class="card">${setsTable(sets, linkTo, at)}</div>`}
${details.map((detail) => section(detail, ids.get(detail.name) ?? ""))}
</main>
<footer class="foot"><p>Pods that are finished or being deleted are left out. All times are UTC.</p></footer>
</body>
</html>
`;
  return page.toString();
}

function titleOf(details: readonly SetDetail[]): string {
  const [only] = details;
  return only !== undefined && details.length === 1 ? `${only.name}: ${only.verdict} · SidecarSet` : "SidecarSets";
}
