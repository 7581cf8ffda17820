/** Tests that every command in a block marked `console` prints the output in that block. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PATIENT } from "../support/patient.ts";
import { commandsOf, type DocScene, openDocScene, patternOf } from "./support/doc-commands.ts";
import { CHANGE, comparable, recordHalt, runInTerminal, SESSION } from "./support/session.ts";
import { type Shown, sessionOf } from "./support/session-svg.ts";

const AGAIN = { ...PATIENT, interval: 3_000 };

/**
 * The least number of commands on each page. Pages that change nothing come first, because all pages share one cluster.
 */
const PAGES = {
  "docs/concepts.md": 1,
  "docs/cli.md": 5,
  "docs/cli-before.md": 6,
  "docs/cli-rollouts.md": 8,
  "docs/cli-steer.md": 8,
  "docs/ordered-sets-use.md": 10,
};

describe("commands of the documents:", () => {
  let scene: DocScene;
  beforeAll(async () => {
    scene = await openDocScene();
  });
  afterAll(() => scene?.close());

  const all = Object.keys(PAGES).flatMap((page) =>
    commandsOf(readFileSync(page, "utf8")).map((shown) => ({ page, shown })),
  );

  it.each(Object.entries(PAGES))("%s shows at least %i commands with output", (page, least) => {
    expect(all.filter((one) => one.page === page).length).toBeGreaterThanOrEqual(least);
  });

  it("README's picture shows the real output of its commands; node test/docs/record.ts recreates it", async () => {
    const svg = readFileSync("docs/session.svg", "utf8");
    expect(svg.length).toBeLessThan(60_000);
    expect(readFileSync("README.md", "utf8")).toMatch(/!\[[^\]]{40,}\]\(docs\/session\.svg\)/);
    const shown = sessionOf(svg);
    expect(shown.map(({ command }) => command)).toEqual(SESSION);
    await scene.run(CHANGE);
    for (const { command, printed } of shown)
      expect(comparable(printed), command).toBe(comparable(await runInTerminal(command, scene)));
  });

  // The commands run in order, because they build on each other.
  it.each(all.map(({ page, shown }) => [`${page}:${shown.line} ${shown.command}`, shown] as const))(
    "the command at %s prints the documented output",
    async (_title, shown) => {
      const pattern = patternOf(shown.printed);
      // Passes run meanwhile, so the documented output may appear later.
      await expect.poll(() => scene.run(shown.command), AGAIN).toMatch(pattern);
    },
  );
});

describe("the recording of a rollout that stops itself:", () => {
  it("README and docs/halt.md show a real rollout that halts and is taken back, in at most 20 seconds", async () => {
    const svg = readFileSync("docs/halt.svg", "utf8");
    for (const page of ["README.md", "docs/halt.md"])
      expect(readFileSync(page, "utf8")).toMatch(/!\[[^\]]{40,}\]\((?:docs\/)?halt\.svg\)/);
    const seconds = [...svg.matchAll(/ ([\d.]+)s step-end/g)].map(([, length]) => Number(length));
    expect(seconds.length).toBeGreaterThan(4);
    expect(Math.max(...seconds)).toBeLessThanOrEqual(20);
    expect(svg).toMatch(/<g class="once [^>]*>\n<text [\s\S]*?ImagePullBackOff/);
    const scene = await openDocScene();
    try {
      const recorded = await recordHalt(scene);
      const last = (session: readonly Shown[]) =>
        session.map(({ command, printed }) => [command, comparable(printed).trimEnd()]);
      expect(last(sessionOf(svg))).toEqual(last(recorded));
    } finally {
      await scene.close();
    }
  });
});

describe("patternOf:", () => {
  it.each([
    ["a block matches the same lines", ["a", "b"], "a\nb\n", true],
    ["a block does not match another line", ["a"], "b\n", false],
    ["… within a line matches any text", ["a … c"], "a b c\n", true],
    ["a line … matches any lines", ["a", "…", "z"], "a\nb\nc\nz\n", true],
    ["a block does not match an output with a missing line", ["a", "b"], "a\n", false],
    ["a block does not match an output with an additional line", ["a"], "a\nb\n", false],
    ["a block does not treat a.* as a pattern", ["a.*"], "abc\n", false],
  ])("%s", (_title, printed, text, isMatched) => {
    expect(patternOf(printed).test(text)).toBe(isMatched);
  });
});
