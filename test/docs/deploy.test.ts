import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

test("every parameter that a deployment takes is explained, and no other", async () => {
  const settings = ["settings", "door-settings", "clusters-settings", "sizing"].map((file) => `infra/aws/${file}.ts`);
  const sources = ["serverless.yml", ...settings];
  const text = (await Promise.all(sources.map((path) => readFile(path, "utf8")))).join("\n");
  const taken = [
    ...text.matchAll(/\$\{param:([a-z-]+)/g),
    ...text.matchAll(/(?:read|readArn|readFlag|readIds)\("([a-z-]+)"/g),
    ...text.matchAll(/optional(?:Arn)?\("\w+", "([a-z-]+)"/g),
  ].map(([, name]) => name);
  const explained = [...(await readFile("docs/deploy.md", "utf8")).matchAll(/^\| `([a-z-]+)` \|/gm)].map(
    ([, name]) => name,
  );
  expect(explained.length).toBeGreaterThan(10);
  expect(new Set(explained)).toEqual(new Set(taken));
});

test("figures of cold starts say under which runtime client they were taken", async () => {
  const { machine } = JSON.parse(await readFile("figures.json", "utf8")) as { machine: { runtimeClient: string } };
  const said =
    machine.runtimeClient === "aws-lambda-ric" ? "under AWS' runtime client" : "under a small runtime client of ours";
  for (const page of ["docs/deploy.md", "docs/benchmarks.md"])
    expect(await readFile(page, "utf8"), page).toContain(said);
});

test("what the docs say of AWS' emulator and runtime client is what CI does", async () => {
  const [ci, workflow] = [await readFile(".ci/run", "utf8"), await readFile(".github/workflows/ci.yml", "utf8")];
  expect(await readFile("docs/deploy.md", "utf8")).toContain("(../test/install/emulator.install.ts)");
  expect(ci).toMatch(/^tests "install paths" .* npm run --silent test:install --$/m);
  expect(workflow).toContain("AWS_RUNTIME_CLIENT: required");
});
