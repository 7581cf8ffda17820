/** Tests that the page on a phone names a hold with the word and the colour of the book. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { renderPage } from "../../shared/core/inspect/report/page.ts";
import type { Reason } from "../../shared/core/inspect/report/reasons.ts";
import { reportOnSidecarSet } from "../../shared/core/inspect/report/report.ts";
import type { RolloutVerdict } from "../../shared/core/rollout/conditions/verdict.ts";
import { HOLDS } from "../../shared/core/rollout/hold.ts";
import { HOLD_SCENES } from "../core/holds/scenes.ts";
import { NOW } from "../support/rollout-fixture.ts";
import { startBrowser } from "./browser.ts";

let browser: Browser;
let page: Page;
beforeAll(async () => {
  browser = await startBrowser();
  page = await (await browser.newContext({ viewport: { width: 390, height: 844 } })).newPage();
});
afterAll(() => browser.close());

const TONES: Readonly<Record<RolloutVerdict, string>> = {
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
};
const KINDS: Readonly<Record<Reason["kind"], string>> = { trouble: "bad", wait: "warn", held: "quiet" };

/** Script for the page: returns the text of each element, the name of its colour, and where it ends. */
const WORDS = `(() => {
  const probe = document.createElement("i");
  document.body.append(probe);
  const colorOf = (name) => { probe.style.color = "var(--" + name + ")"; return getComputedStyle(probe).color; };
  const names = new Map(["good", "warn", "bad", "quiet", "link"].map((name) => [colorOf(name), name]));
  const pill = document.querySelector(".verdict");
  return {
    verdict: [pill.textContent, names.get(getComputedStyle(pill).color)],
    isWhole: pill.getClientRects().length === 1 && pill.getBoundingClientRect().right <= innerWidth,
    reasons: [...document.querySelectorAll("ul.reasons > li")].map((item) =>
      [item.firstElementChild.textContent, names.get(getComputedStyle(item).borderInlineStartColor)]),
    width: document.documentElement.scrollWidth,
  };
})()`;

const scenes = HOLDS.flatMap((hold) => HOLD_SCENES[hold].map((scene, at) => [hold, at, scene] as const));

it.each(scenes)(
  "a rollout held by %s (cluster %i) has the state, the reasons and the colours of the book at 390 pixels",
  async (_, __, { observation, context }) => {
    const detail = reportOnSidecarSet({ observation, events: [], missed: new Set(), lastPass: NOW }, context);
    await page.goto("about:blank");
    await page.setContent(renderPage({ at: NOW, cluster: "", idle: undefined, details: [detail] }));
    expect(await page.evaluate(WORDS)).toEqual({
      verdict: [detail.verdict, TONES[detail.verdict]],
      isWhole: true,
      reasons: detail.reasons.map(({ title, kind }) => [title, KINDS[kind]]),
      width: 390,
    });
  },
);
