import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { type Figures, tables, withTable } from "../bench/figures-table.ts";

test("the tables of docs/deploy.md are those of figures.json", async () => {
  const figures = JSON.parse(await readFile("figures.json", "utf8")) as Figures;
  const document = await readFile("docs/deploy.md", "utf8");
  const all = Object.entries(tables(figures));
  expect(all).toHaveLength(2);
  for (const [name, table] of all) {
    expect(table).not.toContain("NaN");
    expect(withTable(document, name, table)).toBe(document);
  }
});

test("every parameter that a deployment takes is explained, and no other", async () => {
  const sources = ["serverless.yml", "infra/aws/settings.ts", "infra/aws/domain-settings.ts"];
  const text = (await Promise.all(sources.map((path) => readFile(path, "utf8")))).join("\n");
  const taken = [
    ...text.matchAll(/\$\{param:([a-z-]+)/g),
    ...text.matchAll(/(?:read|readArn|list)\("([a-z-]+)"/g),
    ...text.matchAll(/optional\("\w+", "([a-z-]+)"/g),
  ].map(([, name]) => name);
  const explained = [...(await readFile("docs/deploy.md", "utf8")).matchAll(/^\| `([a-z-]+)` \|/gm)].map(
    ([, name]) => name,
  );
  expect(explained.length).toBeGreaterThan(10);
  expect(new Set(explained)).toEqual(new Set(taken));
});
