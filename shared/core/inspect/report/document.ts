/** The common frame of every page: one HTML file that loads nothing else and runs only its own script. */
import { createHash } from "node:crypto";
import type { RolloutVerdict } from "../../rollout/conditions/verdict.ts";
import { lengthOf, timeOf } from "./content.ts";
import { type Html, html, verbatim } from "./html.ts";

// The style of the page, for any width, in light and dark.

/** All colours in one place: text has a contrast of 4.5:1 or more, shapes 3:1 or more. */
const COLOURS = `:root{color-scheme:light dark;
--ground:#f4f5f3;--card:#fff;--ink:#1a2325;--muted:#556063;--rule:#dde2df;--link:#0b6456;--tint:#e6f1ee;
--updated:#1c8268;--failing:#a3241f;--down:#bd6a12;--changing:#7657c6;--waiting:#7289a0;--notSelected:#838b88;--notUpgradable:#a04a75;--without:#c23b35;
--good:#0f6a53;--warn:#8d4b06;--bad:#a82a25;--quiet:#4d5c6a}
@media (prefers-color-scheme:dark){:root{
--ground:#101516;--card:#182021;--ink:#e5ebe9;--muted:#a2afac;--rule:#2d393a;--link:#67d3b9;--tint:#1b2c2a;
--updated:#37a886;--failing:#ff8a80;--down:#dd9140;--changing:#a58ce8;--waiting:#7590aa;--notSelected:#7f8986;--notUpgradable:#cc78a4;--without:#ea645c;
--good:#63cfae;--warn:#f0b06a;--bad:#ff948c;--quiet:#b3c1ce}}`;

/** The colour of each state: trouble is red, waiting is amber, and a user's choice is grey. */
const TONES: Readonly<Record<RolloutVerdict | "unseen", string>> = {
  Halted: "bad",
  Blocked: "bad",
  Degraded: "bad",
  NotUpgradable: "bad",
  WaitingForApproval: "warn",
  WaitingForMetrics: "warn",
  Updating: "link",
  Incomplete: "warn",
  Paused: "quiet",
  HeldByPartition: "quiet",
  Ready: "good",
  unseen: "quiet",
};

const TEXT = `*,*::before,*::after{box-sizing:border-box}
[hidden]{display:none!important}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--ground);color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;font-variant-numeric:tabular-nums}
h1,h2,h3,p,dl,dd,ul,ol,figure{margin:0;padding:0}
h1{font-size:1.05rem;font-weight:650;letter-spacing:.01em}
h2{font-size:1.6rem;font-weight:650;line-height:1.2;overflow-wrap:anywhere}
h3{font-size:1rem;font-weight:650}
a{color:var(--link);text-underline-offset:.15em;padding-block:.3rem}
time{white-space:nowrap}time wbr{white-space:normal}
code{font:.9em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
small,.muted{color:var(--muted);font-size:.875rem}
ul,ol{list-style:none}
:focus-visible{outline:3px solid var(--link);outline-offset:2px;border-radius:4px}
.skip{position:absolute;left:-100vw}.skip:focus{left:1rem;top:.5rem;background:var(--card);padding:.5rem 1rem;z-index:1}`;

const PAGE = `.top,main,.foot{max-width:70rem;margin-inline:auto;padding-inline:clamp(1rem,3vw,2rem)}
.top{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;align-items:baseline;justify-content:space-between;padding-block:1rem .75rem}
.top p,.foot p{color:var(--muted);font-size:.875rem}
.foot{padding-block:1rem 2rem}
nav ul{display:flex;flex-wrap:wrap;gap:0 1.25rem}nav a{display:block;padding-block:.6rem}
button,input,select{font:inherit;min-width:2.75rem;min-height:2.75rem;padding:.25rem .7rem;border:1px solid var(--muted);border-radius:8px;background:var(--card);color:var(--ink)}::placeholder{color:var(--muted);opacity:1}
.filter{flex:1 1 20rem;max-width:40rem;display:flex;flex-wrap:wrap;gap:.5rem;align-items:center}.filter input{flex:2 1 12rem;min-width:0;max-width:24rem}.filter select{flex:1 1 8rem;min-width:0;max-width:14rem}.filter output{color:var(--muted);font-size:.875rem}
.cmd{display:flex;gap:.5rem;align-items:center;margin-block:.35rem;padding:.3rem .3rem .3rem .7rem;border-radius:8px;background:var(--tint)}.cmd code{flex:1;min-width:0;user-select:all;-webkit-user-select:all}
.up{display:block;position:sticky;bottom:1rem;width:fit-content;margin:0 1rem 1rem auto;padding:.6rem 1rem;border:1px solid var(--muted);border-radius:99px;background:var(--card)}
@supports (animation-timeline:scroll()){.up{visibility:hidden;animation:up linear both;animation-timeline:scroll();animation-range:0 90vh}@keyframes up{0%,99%{visibility:hidden}to{visibility:visible}}}
.said{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden;white-space:nowrap}
.set{padding-block:.75rem 2rem}
.set+.set{border-top:1px solid var(--rule);padding-top:2rem}
.head{display:flex;flex-wrap:wrap;gap:.5rem .9rem;align-items:center}
.verdict{font-size:.875rem;font-weight:650;padding:.1rem .7rem;border:1px solid currentcolor;border-radius:99px;background:var(--card);white-space:nowrap}
.lead{font-size:1.1rem;margin-top:.6rem;max-width:75ch}
.cards{display:grid;grid-template-columns:minmax(0,1fr);gap:1rem;margin-top:1.25rem}
@media (min-width:56rem){.cards{grid-template-columns:minmax(0,1fr) minmax(0,1fr)}.card.wide{grid-column:1/-1}}
.card{background:var(--card);border:1px solid var(--rule);border-radius:12px;padding:1.1rem clamp(.9rem,2.5vw,1.4rem)}
.card>h3{margin-bottom:.6rem}
.bar{display:block;width:100%;height:.75rem;border-radius:99px;overflow:hidden;background:var(--rule)}
.big{margin-block:1rem .8rem}.big .bar{height:1.1rem}
rect{stroke:var(--card);stroke-width:2px;vector-effect:non-scaling-stroke}`;

const PARTS = `.legend{display:flex;flex-wrap:wrap;gap:.35rem 1.4rem}
.legend div{display:flex;gap:.45rem;align-items:baseline}
.legend dd{font-weight:650;order:-1}
.mark{display:inline-block;width:.7rem;height:.7rem;border-radius:3px;margin-inline-end:.45rem;fill:currentcolor;background:currentcolor;flex:none;align-self:center}
.legend .mark{order:-2;margin:0}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(7.5rem,1fr));gap:.7rem 1.2rem}
.facts .wide{grid-column:1/-1}.facts dt{color:var(--muted);font-size:.875rem}.facts dd{overflow-wrap:anywhere}
.reasons{display:grid;gap:.9rem}
.reasons li.why{border-inline-start:4px solid var(--quiet);padding-inline-start:.9rem}
.reasons li.trouble{border-color:var(--bad)}.reasons li.wait{border-color:var(--warn)}
.reasons strong{display:block}.trouble>strong{color:var(--bad)}.wait>strong{color:var(--warn)}
.names{margin-top:.3rem;font-size:.875rem}.names li{overflow-wrap:anywhere}
.plot{display:grid;grid-template-columns:auto minmax(0,1fr);gap:.25rem .6rem;margin-top:.6rem}
.plot p{display:flex;justify-content:space-between;color:var(--muted);font-size:.8125rem}
.plot .y{flex-direction:column;min-width:3.1em;text-align:end;line-height:1}
.plot .x{grid-column:2;flex-wrap:wrap;gap:0 1rem}
.plot svg{width:100%;height:clamp(9rem,24vw,13rem);border-bottom:1px solid var(--muted);overflow:visible}
.line,.target,.ticks{fill:none;vector-effect:non-scaling-stroke;stroke:var(--updated);stroke-width:2.5px;stroke-linejoin:round}
.area{fill:var(--updated);opacity:.16}
.unavailable{margin-top:1rem}.unavailable .plot svg{height:4rem}.unavailable .line{stroke:var(--down)}.unavailable .area{fill:var(--down)}
.target{stroke:var(--muted);stroke-width:1.5px;stroke-dasharray:6 5}.ticks{stroke:var(--muted);stroke-width:1.5px}`;

const TABLES = `table{width:100%;border-collapse:collapse;font-size:.9375rem}
caption{text-align:start;color:var(--muted);font-size:.875rem;padding-bottom:.4rem}
th,td{text-align:start;vertical-align:top;padding:.45rem .8rem .45rem 0;border-top:1px solid var(--rule);overflow-wrap:anywhere}
thead th{border-top:0;color:var(--muted);font-weight:500;font-size:.875rem}
tbody th{font-weight:500}
th:last-child,td:last-child{padding-inline-end:0}
.num{text-align:end;white-space:nowrap;overflow-wrap:normal}
tr:has(>td>.mark)>th{min-width:min(6rem,100vw - 16.5rem)}
td:has(>.mark){white-space:nowrap}td>small{white-space:normal}
td small,th small{display:block;font-weight:400}
td .bar{margin-top:.45rem}
.sets{table-layout:fixed}.sets th,.sets td{padding-block:.35rem}.sets th:first-child{width:32%}.sets th:last-child{width:22%}.state{font-weight:650}td .since{display:inline}
.clause{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden}.images{white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.bars{table-layout:fixed}.bars th:first-child{width:36%}.bars .num{width:3.5rem}
.now th,.now td{background:var(--tint)}.now th{padding-inline-start:.6rem}
details>summary{cursor:pointer;padding:.5rem 0;border-top:1px solid var(--rule);overflow-wrap:anywhere}
details>summary:hover{color:var(--link)}
.card>details:first-of-type>summary{border-top:0}
.more>summary{border:0;padding:.35rem 0;color:var(--link);font-size:.875rem}
summary .bar{margin-top:.3rem}
@media (max-width:34rem){body{line-height:1.45}.top{padding-block:.75rem .5rem}th,td{padding-inline-end:.5rem}table{font-size:.875rem}
.sets{font-size:.875rem;line-height:1.35}.sets th,.sets td{padding-block:.3rem}.sets small,.sets caption{font-size:.8rem}.sets .images{display:none}.sets .state{font-size:.8125rem}.sets td .bar{margin-block:.25rem .15rem;height:.6rem}}
@media print{body{background:#fff}.card{break-inside:avoid-page}.filter,.up,.skip,nav,button{display:none!important}}
@media (forced-colors:active){rect,.mark{forced-color-adjust:none}}`;

const FILLS = ["updated", "failing", "down", "changing", "waiting", "notSelected", "notUpgradable", "without"]
  .map((standing) => `rect.${standing}{fill:var(--${standing})}.mark.${standing}{color:var(--${standing})}`)
  .join("\n");

const WORDS = Object.entries(TONES)
  .map(([verdict, tone]) => `.${verdict}{color:var(--${tone})}`)
  .join("");

const STYLE = [COLOURS, TEXT, PAGE, PARTS, FILLS, WORDS, TABLES].join("\n");

// The page's actions: copying a command, filtering rows, and reloading in the same state.

/**
 * One text, so that the page's policy can name it by its hash. It reads only its own document. Without the script the
 * page shows the same, and a tap on a command selects it.
 *
 * The filter is in the fragment of the address: users can share it, a reload keeps it, and no server receives it.
 */
export const SCRIPT = `(() => {
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const said = document.querySelector(".said");
const copy = async (box, button) => {
  const code = box.firstElementChild, text = code.textContent;
  let isCopied = true;
  try { await navigator.clipboard.writeText(text); }
  catch {
    getSelection().selectAllChildren(code);
    isCopied = document.execCommand("copy");
  }
  for (const other of all(".cmd button")) other.textContent = "Copy";
  button.textContent = isCopied ? "Copied" : "Selected";
  said.textContent = (isCopied ? "Copied: " : "Selected, not copied: ") + text;
};
for (const box of all(".cmd")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.onclick = () => copy(box, button);
  box.append(button);
}
const seconds = Number(document.body.dataset.refresh);
let timer;
const reloadLater = () => {
  clearTimeout(timer);
  if (seconds > 0) timer = setTimeout(() => { history.replaceState({ ...history.state, focus: focusKey(document.activeElement) }, ""); location.reload(); }, seconds * 1000);
};
const focusKey = (node) => [node.tagName, node.closest("li,tr,section,header")?.firstElementChild, node.previousElementSibling, node].map((one) => (one?.textContent ?? one ?? "").replace(/\\d+/g, "")).join();
reloadLater();
const keyOf = (details) => (details.closest("li,tr,section").firstElementChild.textContent + details.firstElementChild.textContent).replace(/(?<![:\\d])\\d+(?![:\\d])/g, "");
addEventListener("click", ({ target }) => {
  const details = target.closest("summary")?.parentNode;
  if (details) history.replaceState({ ...history.state, [keyOf(details)]: !details.open }, "");
});
if (history.state) for (const details of all("details")) details.open = history.state[keyOf(details)] ?? details.open;
queueMicrotask(() => all("a,button,summary,input,select").find((node) => focusKey(node) === history.state?.focus)?.focus({ preventScroll: true }));
const filter = document.querySelector(".filter");
if (!filter) return;
const [input, select, output] = filter.children;
const stateOf = (from) => from.querySelector(".state,.mark,.verdict")?.classList[1];
const groups = all(".pods>details").map((node) => ({ node, isOpen: node.open }));
const rows = all(".sets tbody tr,.pods tbody tr").map((node) => {
  const group = node.closest("details"), set = node.closest(".set");
  const text = (node.textContent + " " + (group ? group.firstElementChild.textContent : "")).toLowerCase();
  return { node, group, set, text, state: stateOf(node) };
});
const sections = all(".set");
const sets = (sections.length > 1 ? sections : []).map((node) => {
  const row = document.querySelector('.sets a[href="#' + node.id + '"]')?.closest("tr");
  return { node, row, text: node.querySelector("h2").textContent.toLowerCase(), state: stateOf(node) };
});
const apply = () => {
  const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean), state = select.value;
  const isOn = words.length > 0 || state !== "";
  const isHit = (one) => words.every((word) => one.text.includes(word)) && (state === "" || state === one.state);
  const hits = new Set(rows.filter(isHit).map(({ node }) => node));
  const whole = new Set(sets.filter((set) => isHit(set) || hits.has(set.row)).map(({ node }) => node));
  const kept = new Set(whole);
  let shown = 0;
  for (const { node, group, set } of rows) {
    node.hidden = !(hits.has(node) || whole.has(set));
    if (!node.hidden) { shown++; kept.add(group).add(set); }
  }
  for (const { node, isOpen } of groups) {
    node.hidden = isOn && !kept.has(node);
    node.open = isOn ? kept.has(node) : isOpen;
  }
  for (const { node } of sets) node.hidden = isOn && !kept.has(node);
  output.textContent = isOn ? shown + " of " + rows.length + " shown" : "";
};
const write = () => {
  const query = new URLSearchParams();
  if (input.value) query.set("filter", input.value);
  if (select.value) query.set("state", select.value);
  history.replaceState(history.state, "", String(query) ? "#" + query : location.pathname + location.search);
  for (const link of all(".top a")) link.hash = query;
};
const read = () => {
  const query = new URLSearchParams(location.hash.slice(1));
  if (!query.has("filter") && !query.has("state")) return output.textContent === "" || write();
  input.value = query.get("filter") ?? "";
  select.value = query.get("state") ?? "";
  if (select.selectedIndex < 0) select.value = "";
  apply();
  write();
};
filter.hidden = false;
filter.onfocusin = reloadLater;
filter.oninput = () => { reloadLater(); apply(); write(); };
addEventListener("hashchange", read);
read();
})();`;

const hashOf = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** The page loads and sends nothing. Only this style sheet and this script run; the script creates no markup. */
const POLICY = `default-src 'none'; style-src ${hashOf(STYLE)}; script-src ${hashOf(SCRIPT)}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'`;

/** The policy for a server of the page. As a header it can also forbid frames. */
export const PAGE_POLICY = `${POLICY}; frame-ancestors 'none'`;

/** The reload links of a page. */
export interface Refresh {
  /** seconds between reloads; undefined: the page does not reload */
  readonly seconds: number | undefined;
  /** address of the same page with the other choice */
  readonly other: string;
}

export interface Frame {
  readonly title: string;
  /** time at which the cluster was read, RFC3339 */
  readonly at: string;
  /** name of the cluster; "" if unknown */
  readonly cluster: string;
  /** reload links; absent: the page cannot reload */
  readonly refresh?: Refresh | undefined;
  /** addresses and names of the parent pages, outermost first */
  readonly up: readonly (readonly [string, string])[];
  /** the filter; absent: the page has none */
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

/** A page with one sentence, such as an unknown name or a cluster that cannot be read. */
export function renderNotice(sentence: string, frame: Pick<Frame, "at" | "refresh" | "up">): string {
  return document({ ...frame, title: sentence, cluster: "" }, html`<div class="card"><p>${sentence}.</p></div>`);
}

function refreshNote({ seconds, other }: Refresh): Html {
  if (seconds === undefined) return html` · <a href="${other}">Refresh by itself</a>`;
  return html` · refreshed every ${lengthOf(seconds)} · <a href="${other}">Stop</a>`;
}
