import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { jsonProblem } from "../../../shared/go/json/json-problem.ts";

/** Texts with the error of Go's encoding/json, which is empty for valid JSON. golden/json.go prints them. */
const golden: readonly (readonly [text: string, message: string])[] = JSON.parse(
  readFileSync(join(import.meta.dirname, "golden/json.json"), "utf8"),
);

test("jsonProblem describes each invalid text with the same message as Go", () => {
  expect(golden.length).toBeGreaterThan(200);
  expect(golden.map(([text]) => [text, jsonProblem(text) ?? ""])).toEqual(golden);
});
