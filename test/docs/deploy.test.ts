import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

test("every parameter that a deployment takes is explained, and no other", async () => {
  const settings = ["settings", "door-settings", "clusters-settings", "sizing"].map((file) => `infra/aws/${file}.ts`);
  const sources = ["serverless.yml", ...settings];
  const text = (await Promise.all(sources.map((path) => readFile(path, "utf8")))).join("\n");
  const taken = [
    ...text.matchAll(/\$\{param:([a-z-]+)/g),
    ...text.matchAll(/(?:read|readArn|readFlag|list)\("([a-z-]+)"/g),
    ...text.matchAll(/optional\("\w+", "([a-z-]+)"/g),
  ].map(([, name]) => name);
  const explained = [...(await readFile("docs/deploy.md", "utf8")).matchAll(/^\| `([a-z-]+)` \|/gm)].map(
    ([, name]) => name,
  );
  expect(explained.length).toBeGreaterThan(10);
  expect(new Set(explained)).toEqual(new Set(taken));
});
