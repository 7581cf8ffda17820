import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseJson } from "../../shared/go/json/json-number.ts";
import { formatDifference } from "../runner/compare.ts";
import { controllerSuites } from "../runner/controller.ts";
import { pending } from "../runner/pending.ts";
import { statefulsetSuites } from "../runner/statefulset.ts";
import type { Suite, VectorCase } from "../runner/suite.ts";
import { webhookSuites } from "../runner/webhook.ts";

/** Number of parts of each vector file: a mutant runs only some parts. A file is read when its first part runs. */
const LOTS = 10;

const contents = new Map<string, readonly VectorCase[]>();

function casesOf(side: string, name: string): readonly VectorCase[] {
  const path = join(import.meta.dirname, "../vectors", side, `${name}.json`);
  const cases = contents.get(path) ?? (parseJson(readFileSync(path, "utf8")) as readonly VectorCase[]);
  contents.set(path, cases);
  return cases;
}

async function differencesOf(suite: Suite, vector: VectorCase): Promise<readonly string[]> {
  const differences = await suite(vector.input as never, vector.expected as never, vector);
  return differences.map((difference) => `${vector.name}: ${formatDifference(difference)}`);
}

const lots = Array.from({ length: LOTS }, (_, lot) => lot);

describe.each([
  ["webhook", webhookSuites],
  ["controller", controllerSuites],
  ["statefulset", statefulsetSuites],
] as const)("golden vectors of %s:", (side, suites) => {
  const files = Object.entries(suites).filter(([name]) => !pending[side]?.includes(name));

  describe.each(files)("%s:", (name, suite) => {
    it.each(lots)(`part %i of the golden vectors in ${side}/${name} passes`, async (lot) => {
      const cases = casesOf(side, name).filter((_, index) => index % LOTS === lot);
      const differences: string[] = [];
      for (const vector of cases) differences.push(...(await differencesOf(suite, vector)));
      expect(differences).toEqual([]);
    });
  });
});
