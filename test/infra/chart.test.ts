import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { chartFiles, readChartSource } from "../../infra/helm/chart.ts";

const files = chartFiles(await readChartSource());

test.each([...files])("the checked-in %s equals the output of infra/generate.ts", (path, content) => {
  expect(readFileSync(path, "utf8")).toBe(content);
});

test("the chart has only the files that infra/generate.ts writes", () => {
  const root = "infra/helm/sidecarset";
  const found = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(new Set(found.map(({ parentPath, name }) => `${parentPath}/${name}`))).toEqual(new Set(files.keys()));
});
