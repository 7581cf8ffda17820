import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

test("docs/deploy-parameters.md explains exactly the parameters of a deployment", async () => {
  const settings = ["settings", "door-settings", "clusters-settings"].map((file) => `infra/aws/${file}.ts`);
  const sources = ["serverless.yml", ...settings];
  const text = (await Promise.all(sources.map((path) => readFile(path, "utf8")))).join("\n");
  const taken = [
    ...text.matchAll(/\$\{param:([a-z-]+)/g),
    ...text.matchAll(/(?:read|readArn|readFlag|readIds)\("([a-z-]+)"/g),
    ...text.matchAll(/optional(?:Arn|Place)?\("\w+", "([a-z-]+)"/g),
  ].map(([, name]) => name);
  const page = await readFile("docs/deploy-parameters.md", "utf8");
  const explained = [...page.matchAll(/^- (?:`[a-z-]+`(?:, )?)+/gm)].flatMap(([names]) =>
    [...names.matchAll(/[a-z-]{2,}/g)].map(([name]) => name),
  );
  expect(explained.length).toBeGreaterThan(10);
  expect(new Set(explained)).toEqual(new Set(taken));
});

test("docs/benchmarks.md and test/bench/README.md name the runtime client of the cold start figures", async () => {
  const { machine } = JSON.parse(await readFile("test/bench/figures.json", "utf8")) as {
    machine: { runtimeClient: string };
  };
  const said =
    machine.runtimeClient === "aws-lambda-ric" ? "under AWS' runtime client" : "under a small runtime client of ours";
  for (const page of ["test/bench/README.md", "docs/benchmarks.md"])
    expect(await readFile(page, "utf8"), page).toContain(said);
});

test("CI runs the tests with AWS' emulator and AWS' runtime client that docs/deploy.md names", async () => {
  const [ci, workflow] = [await readFile(".ci/run", "utf8"), await readFile(".github/workflows/ci.yml", "utf8")];
  expect(await readFile("docs/deploy.md", "utf8")).toContain("(../test/install/emulator.install.ts)");
  expect(ci).toMatch(/^tests "install paths" .* npm run --silent test:install --$/m);
  expect(workflow).toContain("AWS_RUNTIME_CLIENT: required");
});
