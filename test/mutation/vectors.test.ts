import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseJson } from "../../shared/core/lib/json-number.ts";
import { formatDifference } from "../runner/compare.ts";
import { controllerSuites } from "../runner/controller.ts";
import { pending } from "../runner/pending.ts";
import type { Suite, VectorCase } from "../runner/suite.ts";
import { webhookSuites } from "../runner/webhook.ts";

/** Small lots, so that a mutant meets only the vectors that reach it. */
const LOT = 10;

async function differencesOf(suite: Suite, vector: VectorCase): Promise<readonly string[]> {
  const differences = await suite(vector.input as never, vector.expected as never, vector);
  return differences.map((difference) => `${vector.name}: ${formatDifference(difference)}`);
}

function lots(side: string, name: string): readonly (readonly [number, readonly VectorCase[]])[] {
  const text = readFileSync(join(import.meta.dirname, "../vectors", side, `${name}.json`), "utf8");
  const cases = parseJson(text) as readonly VectorCase[];
  const count = Math.ceil(cases.length / LOT);
  return Array.from({ length: count }, (_, lot) => [lot * LOT, cases.slice(lot * LOT, (lot + 1) * LOT)]);
}

const sides = Object.entries({ webhook: webhookSuites, controller: controllerSuites });

describe.each(sides)("the golden vectors of %s", (side, suites) => {
  const names = Object.keys(suites).filter((name) => !pending[side]?.includes(name));

  describe.each(names)("%s", (name) => {
    it.each(lots(side, name))("from case %i on", async (_first, cases) => {
      const suite = suites[name];
      if (suite === undefined) throw new Error("the table has this name");
      const differences: string[] = [];
      for (const vector of cases) differences.push(...(await differencesOf(suite, vector)));
      expect(differences).toEqual([]);
    });
  });
});
