/** Tests that test/docs/pins.md names the tests of SECURITY.md by their titles, as Vitest prints them. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { pinsOf } from "./support/pins.ts";

const tests = ["Security: threats", "Security: sections"].flatMap((heading) => [...pinsOf(heading).values()].flat());
/** True for a file that needs another configuration of Vitest. */
const isApart = (path: string) => !/\.(?:test|slow)\.ts$/.test(path);

/** Returns file → titles of its tests and groups. */
function titlesIn(paths: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const folder = mkdtempSync(join(tmpdir(), "sidecarset-titles-"));
  const file = join(folder, "list.json");
  const options = ["list", "--config", "vitest.all.config.ts", "--staticParse=false", `--json=${file}`];
  const { status, stderr } = spawnSync(process.execPath, ["node_modules/vitest/vitest.mjs", ...options, ...paths]);
  expect([status, String(stderr)]).toEqual([0, expect.any(String)]);
  const listed = JSON.parse(readFileSync(file, "utf8")) as readonly { readonly name: string; readonly file: string }[];
  rmSync(folder, { recursive: true });
  const byFile = Map.groupBy(listed, (one) => relative(".", one.file));
  return new Map([...byFile].map(([path, all]) => [path, new Set(all.flatMap(({ name }) => name.split(" > ")))]));
}

/** True if the file contains this title in quotes, or a template such as "the account %s" that results in it. */
function isWritten(title: string, path: string): boolean {
  const quoted = [...readFileSync(path, "utf8").matchAll(/"([^"\n]{8,})"/g)].map(([, text = ""]) => text);
  const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  return quoted.some((text) => {
    const parts = text.split(/%s|\$what/).map(escaped);
    return new RegExp(`^${parts.join(".+")}$`).test(title);
  });
}

test("each test that test/docs/pins.md names for SECURITY.md has exactly this title", () => {
  expect(tests.length).toBeGreaterThan(150);
  const titles = titlesIn([...new Set(tests.map(({ path }) => path).filter((path) => !isApart(path)))]);
  const isThere = ({ title, path }: (typeof tests)[number]) =>
    isApart(path) ? isWritten(title, path) : titles.get(path)?.has(title) === true;
  expect(tests.filter((one) => !isThere(one))).toEqual([]);
});
