/** Decides what every page has in common: one HTML file that asks for nothing else, and runs only our own script. */
import { createHash } from "node:crypto";
import { type Html, html, verbatim } from "./html.ts";
import { SCRIPT } from "./script.ts";
import { STYLE } from "./style.ts";
import { lengthOf, timeOf } from "./words.ts";

const hashOf = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Nothing is loaded or sent; only this style sheet counts, only this script runs, and it makes no markup from text. */
const POLICY = `default-src 'none'; style-src ${hashOf(STYLE)}; script-src ${hashOf(SCRIPT)}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'`;

/** For a server of the page: in a header it can also forbid frames. */
export const PAGE_POLICY = `${POLICY}; frame-ancestors 'none'`;

/** Of a page that its server can have reload itself. */
export interface Refresh {
  /** undefined: it is not */
  readonly seconds: number | undefined;
  /** address of the page that is, or is not */
  readonly other: string;
}

export interface Frame {
  readonly title: string;
  /** RFC3339: when the cluster was read */
  readonly at: string;
  /** "" where it is not known */
  readonly cluster: string;
  /** absent: it stays as it is */
  readonly refresh?: Refresh | undefined;
  /** address and name of pages above, outermost first */
  readonly up: readonly (readonly [string, string])[];
  /** absent: nothing can be filtered */
  readonly filter?: Html | undefined;
}

export function document({ title, at, cluster, refresh, up, filter }: Frame, body: Html): string {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${verbatim(STYLE)}</style>${refresh?.seconds !== undefined && html`<noscript><meta http-equiv="refresh" content="${refresh.seconds}"></noscript>`}
</head>
<body${refresh?.seconds !== undefined && html` data-refresh="${refresh.seconds}"`}>
<a class="skip" href="#main">Skip to the report</a>
<header class="top"><h1>SidecarSets${cluster !== "" && ` of ${cluster}`}</h1>${filter}<p>As of ${timeOf(at)} UTC${refresh && refreshNote(refresh)}</p></header>
<main id="main" tabindex="-1">
${up.length > 0 && html`<nav aria-label="SidecarSets"><ul>${up.map(([href, name]) => html`<li><a href="${href}">${name}</a></li>`)}</ul></nav>`}
${body}
</main>
<footer class="foot"><p>Pods that are finished or being deleted are left out. All times are UTC.</p></footer>
<a class="up" href="#top">Back to top</a>
<p class="said" role="status"></p>
<script>${verbatim(SCRIPT)}</script>
</body>
</html>
`;
  return page.toString();
}

/** A page that says one thing: there is nothing of that name, or the cluster cannot be read. */
export function renderNotice(sentence: string, frame: Pick<Frame, "at" | "refresh" | "up">): string {
  return document({ ...frame, title: sentence, cluster: "" }, html`<div class="card"><p>${sentence}.</p></div>`);
}

function refreshNote({ seconds, other }: Refresh): Html {
  if (seconds === undefined) return html` · <a href="${other}">Refresh by itself</a>`;
  return html` · refreshed every ${lengthOf(seconds)} · <a href="${other}">Stop</a>`;
}
