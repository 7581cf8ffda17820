/** Decides how the page looks: calm, on any width, in light and dark. */
import type { RolloutVerdict } from "../../rollout/conditions/verdict.ts";

/** Every colour once: text on its ground at 4.5:1 or more, shapes at 3:1 or more. */
const COLOURS = `:root{color-scheme:light dark;
--ground:#f4f5f3;--card:#fff;--ink:#1a2325;--muted:#556063;--rule:#dde2df;--link:#0b6456;--tint:#e6f1ee;
--updated:#1c8268;--failing:#a3241f;--down:#bd6a12;--changing:#7657c6;--waiting:#7289a0;--notSelected:#838b88;--notUpgradable:#a04a75;--without:#c23b35;
--good:#0f6a53;--warn:#8d4b06;--bad:#a82a25;--quiet:#4d5c6a}
@media (prefers-color-scheme:dark){:root{
--ground:#101516;--card:#182021;--ink:#e5ebe9;--muted:#a2afac;--rule:#2d393a;--link:#67d3b9;--tint:#1b2c2a;
--updated:#37a886;--failing:#ff8a80;--down:#dd9140;--changing:#a58ce8;--waiting:#7590aa;--notSelected:#7f8986;--notUpgradable:#cc78a4;--without:#ea645c;
--good:#63cfae;--warn:#f0b06a;--bad:#ff948c;--quiet:#b3c1ce}}`;

/** The colour of each state's word: trouble is red, what waits is amber, what somebody asked for is grey. */
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

export const STYLE = [COLOURS, TEXT, PAGE, PARTS, FILLS, WORDS, TABLES].join("\n");
