/** Decides the words of the page: names of standings, times, lengths of time, counts. */

import { type Html, html } from "./html.ts";
import type { Standing } from "./pod-standing.ts";

/** In the order in which they are shown. */
export const STANDINGS: readonly (readonly [Standing, string])[] = [
  ["updated", "Updated"],
  ["failing", "Failing"],
  ["down", "Not ready"],
  ["changing", "Changing"],
  ["waiting", "Waiting"],
  ["notSelected", "Not selected"],
  ["notUpgradable", "Needs a new pod"],
  ["without", "Without sidecars"],
];

export function standingName(standing: Standing): string {
  return STANDINGS.find(([key]) => key === standing)?.[1] ?? standing;
}

/** "2026-01-02T03:04:05Z" → 2026-01-02 03:04:05, and on that day itself 03:04:05; UTC is said once on the page. */
export function timeOf(at: string | undefined, now = ""): Html {
  if (at === undefined || at === "") return html`–`;
  const [day = "", time = ""] = at.replace(/(\.\d+)?Z$/, "").split("T");
  return html`<time datetime="${at}">${now.startsWith(`${day}T`) ? time : html`${day}<wbr> ${time}`}</time>`;
}

/** 200 → "3 min 20 s" */
export function lengthOf(seconds: number): string {
  const units: readonly (readonly [string, number])[] = [
    ["d", 86_400],
    ["h", 3_600],
    ["min", 60],
    ["s", 1],
  ];
  const first = units.findIndex(([, size]) => seconds >= size);
  const [unit, size] = units[first] ?? ["s", 1];
  const [nextUnit, nextSize] = units[first + 1] ?? ["", 0];
  const rest = nextSize === 0 ? 0 : Math.floor((seconds % size) / nextSize);
  return `${Math.floor(seconds / size)} ${unit}${rest > 0 ? ` ${rest} ${nextUnit}` : ""}`;
}

/** In its largest unit: 200 → "3 min" */
export function roughLengthOf(seconds: number): string {
  return lengthOf(seconds).split(" ").slice(0, 2).join(" ");
}

export function countOf(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : noun.endsWith("ch") ? "es" : "s"}`;
}
