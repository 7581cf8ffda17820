import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { jsonProblem } from "../../../shared/go/json/json-problem.ts";

/** Written by golden/json.go: texts, and what Go's encoding/json says of them; nothing of those that are JSON. */
const golden: readonly (readonly [text: string, message: string])[] = JSON.parse(
  readFileSync(join(import.meta.dirname, "golden/json.json"), "utf8"),
);

test("every problem is told in Go's words", () => {
  expect(golden.length).toBeGreaterThan(200);
  expect(golden.map(([text]) => [text, jsonProblem(text) ?? ""])).toEqual(golden);
});
