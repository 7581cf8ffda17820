import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { formatDifference } from "./runner/compare.ts";
import { pending } from "./runner/pending.ts";
import { runFile } from "./runner/run.ts";

const VECTORS = join(import.meta.dirname, "vectors");
const files = globSync("*/*.json", { cwd: VECTORS }).sort();

describe("golden vectors:", () => {
  it("there are more than 40 files of golden vectors", () => expect(files.length).toBeGreaterThan(40));

  it.each(files)("every case of the golden vectors in %s passes", async (file) => {
    const result = await runFile(join(VECTORS, file));
    if (result.kind === "refused") expect.fail(`${result.title}: ${result.sentence}`);
    expect(result.total).toBeGreaterThan(0);
    if (result.kind === "pending") return;
    const failed = result.failures.map(({ name, differences, error }) =>
      [name, error ?? "", ...differences.slice(0, 3).map(formatDifference)].join("\n"),
    );
    expect(failed, `${failed.length} of ${result.total} cases differ`).toEqual([]);
  });

  it.each(Object.entries(pending))("every pending file in the folder %s exists", (side, names) => {
    const missing = names.filter((name) => !files.includes(join(side, `${name}.json`)));
    expect(missing).toEqual([]);
  });
});

describe("npm run vectors:", () => {
  let folder = "";

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "vectors-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function write(path: string, content: unknown): void {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), typeof content === "string" ? content : JSON.stringify(content));
  }

  function run(...folders: readonly string[]): { readonly code: number | null; readonly output: string } {
    const main = join(import.meta.dirname, "runner", "main.ts");
    const { status, stdout } = spawnSync(process.execPath, [main, ...folders], { encoding: "utf8" });
    return { code: status, output: stdout };
  }

  const conversion = JSON.parse(readFileSync(join(VECTORS, "webhook", "sidecarset-conversion.json"), "utf8"));

  it("npm run vectors passes for right answers in any folder", () => {
    write("deep/er/webhook/sidecarset-conversion.json", conversion);
    const { code, output } = run(folder);
    expect(output).toBe(
      `webhook/sidecarset-conversion ${conversion.length}/${conversion.length}\n${conversion.length} passed, 0 failed\n`,
    );
    expect(code).toBe(0);
  });

  it("npm run vectors prints the case, the path and both values of a difference, and fails", () => {
    const [first, ...others] = conversion;
    const planted = structuredClone(first);
    planted.expected.object.metadata.name = "planted";
    write("webhook/sidecarset-conversion.json", [planted, ...others]);
    const { code, output } = run(folder);
    expect(output).toContain(`webhook/sidecarset-conversion ${others.length}/${conversion.length}\n`);
    expect(output).toContain(first.name);
    expect(output).toContain("$.value.metadata.name");
    expect(output).toContain('expected "planted"');
    expect(output).toContain(`actual   ${JSON.stringify(first.expected.object.metadata.name)}`);
    expect(output.trimEnd().split("\n").at(-1)).toBe(`${others.length} passed, 1 failed`);
    expect(code).toBe(1);
  });

  it("npm run vectors counts a case as failed when its suite throws", () => {
    write("webhook/helpers.json", [{ name: "unheard-of", input: { helper: "no-such-helper" }, expected: {} }]);
    const { code, output } = run(folder);
    expect(output).toContain('there is no helper "no-such-helper"');
    expect(output).toContain("0 passed, 1 failed");
    expect(code).toBe(1);
  });

  const refusals: readonly (readonly [string, string, unknown, string])[] = [
    ["a file without a suite", "webhook/unknown.json", conversion, "this file has no suite"],
    ["an unknown folder", "elsewhere/match.json", conversion, 'lies in a folder "elsewhere"'],
    ["a file without cases", "webhook/sidecarset-conversion.json", [], "this file has no cases"],
    ["a file that is not a list", "webhook/sidecarset-conversion.json", {}, "this file is not a list of cases"],
    [
      "a case without an expected value",
      "webhook/helpers.json",
      [{ name: "a", input: {} }],
      "not a {name, input, expected}",
    ],
    ["a file that is not JSON", "webhook/sidecarset-conversion.json", "[{", "this file cannot be read"],
  ];

  it.each(refusals)("npm run vectors refuses %s", (_what, path, content, sentence) => {
    write(path, content);
    const { code, output } = run(folder);
    expect(output).toContain(sentence);
    expect(output).toContain("0 passed, 1 failed");
    expect(code).toBe(1);
  });

  it("npm run vectors refuses an empty folder and still checks the other folder", () => {
    write("good/webhook/sidecarset-conversion.json", conversion);
    mkdirSync(join(folder, "empty"));
    const { code, output } = run(join(folder, "good"), join(folder, "empty"));
    expect(output).toContain("empty: there is no vector file in this folder");
    expect(output).toContain(`${conversion.length} passed, 1 failed`);
    expect(code).toBe(1);
  });

  it("npm run vectors refuses a missing folder and a call without folders", () => {
    expect(run(join(folder, "nowhere")).code).toBe(1);
    const { code, output } = run();
    expect(output).toContain("name at least one folder");
    expect(code).toBe(1);
  });
});
