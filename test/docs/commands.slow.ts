/** Every command in a block marked `console` prints what stands there. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PATIENT } from "../support/patient.ts";
import { commandsOf, type DocScene, openDocScene, patternOf } from "./support/doc-commands.ts";
import { CHANGE, comparable, runInTerminal, SESSION } from "./support/session.ts";
import { sessionOf } from "./support/session-svg.ts";

const AGAIN = { ...PATIENT, interval: 3_000 };

/** How many commands each page shows at least. Those that change nothing come first: all share one cluster. */
const PAGES = {
  "docs/demo.md": 3,
  "docs/concepts.md": 2,
  "docs/faq.md": 4,
  "docs/cli.md": 25,
  "docs/ordered-sets.md": 10,
};

describe("commands of the documents", () => {
  let scene: DocScene;
  beforeAll(async () => {
    scene = await openDocScene();
  });
  afterAll(() => scene?.close());

  const all = Object.keys(PAGES).flatMap((page) =>
    commandsOf(readFileSync(page, "utf8")).map((shown) => ({ page, shown })),
  );

  it.each(Object.entries(PAGES))("%s shows at least %i", (page, least) => {
    expect(all.filter((one) => one.page === page).length).toBeGreaterThanOrEqual(least);
  });

  it("README's picture shows what its commands print; node test/docs/record.ts recreates it", async () => {
    const svg = readFileSync("docs/session.svg", "utf8");
    expect(svg.length).toBeLessThan(60_000);
    expect(readFileSync("README.md", "utf8")).toMatch(/!\[[^\]]{40,}\]\(docs\/session\.svg\)/);
    const shown = sessionOf(svg);
    expect(shown.map(({ command }) => command)).toEqual(SESSION);
    await scene.run(CHANGE);
    for (const { command, printed } of shown)
      expect(comparable(printed), command).toBe(comparable(await runInTerminal(command, scene)));
  });

  // One after the other: a page tells a story.
  it.each(all.map(({ page, shown }) => [`${page}:${shown.line} ${shown.command}`, shown] as const))(
    "%s",
    async (_title, shown) => {
      const pattern = patternOf(shown.printed);
      // Passes go on meanwhile: what the page tells of may come a moment later.
      await expect.poll(() => scene.run(shown.command), AGAIN).toMatch(pattern);
    },
  );
});

describe("what a page says that is printed", () => {
  it.each([
    ["the same", ["a", "b"], "a\nb\n", true],
    ["something else", ["a"], "b\n", false],
    ["anything in a line", ["a … c"], "a b c\n", true],
    ["any lines", ["a", "…", "z"], "a\nb\nc\nz\n", true],
    ["too little", ["a", "b"], "a\n", false],
    ["too much", ["a"], "a\nb\n", false],
    ["what looks like a pattern", ["a.*"], "abc\n", false],
  ])("matches %s", (_title, printed, text, isMatched) => {
    expect(patternOf(printed).test(text)).toBe(isMatched);
  });
});
