/** Tests the package infra/local from outside. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, matchesGlob, normalize, relative } from "node:path/posix";
import { expect, test } from "vitest";
import { quantityText, readQuantity, sumOf } from "../../infra/local/kinds/quantity.ts";

interface Row {
  readonly text: string;
  readonly shown?: string;
  readonly other?: string;
  readonly sum?: string;
  readonly compare: number;
}

function rowOf({ text, other = "0", compare }: Row): Row {
  const [quantity, before] = [readQuantity(text), readQuantity(other)];
  if (quantity === undefined || before === undefined) return { text, compare };
  const difference = quantity.nano - before.nano;
  return {
    text,
    shown: quantityText(quantity),
    other,
    sum: quantityText(sumOf(quantity, before)),
    compare: difference === 0n ? 0 : difference < 0n ? -1 : 1,
  };
}

test("the local cluster parses, prints, adds and compares quantities like Go", () => {
  const rows: readonly Row[] = JSON.parse(readFileSync("test/core/lib/golden/quantity.json", "utf8"));
  // For a text without digits the suffix decides: the value is 0, or it is refused.
  const golden = rows.filter(({ text }) => /\d/.test(text));
  expect(golden.length).toBeGreaterThan(400);
  const columns = ({ text, shown, other, sum, compare }: Row) =>
    shown === undefined ? { text, compare } : { text, shown, other, sum, compare };
  expect(golden.map(rowOf)).toEqual(golden.map(columns));
});

test("infra/local exports exactly the files that other folders import", () => {
  const { exports } = JSON.parse(readFileSync("infra/local/package.json", "utf8")) as {
    exports: Readonly<Record<string, string>>;
  };
  const files = execFileSync("git", ["ls-files", "functions", "infra", "shared", "test"], { encoding: "utf8" });
  const outside = files.split("\n").filter((file) => file.endsWith(".ts") && !file.startsWith("infra/local/"));
  const imported = outside.flatMap((file) => {
    const paths = readFileSync(file, "utf8").matchAll(/(?:from |import\()"(\.[^"]+)"/g);
    const targets = [...paths].map(([, path = ""]) => relative("infra/local", normalize(`${dirname(file)}/${path}`)));
    return targets.filter((path) => !path.startsWith("..")).map((path) => `./${path}`);
  });
  expect(imported.length).toBeGreaterThan(50);
  const exported = Object.values(exports);
  expect(imported.filter((path) => !exported.some((pattern) => matchesGlob(path, pattern)))).toEqual([]);
  expect(exported.filter((pattern) => !imported.some((path) => matchesGlob(path, pattern)))).toEqual([]);
});
