/** Runs one vector file: finds its suite by folder and file name, and every case in it. */

import { readFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { parseJson } from "../../shared/go/json/json-number.ts";
import { deepFreeze } from "../support/deep-freeze.ts";
import type { Difference } from "./compare.ts";
import { controllerSuites } from "./controller.ts";
import { pending } from "./pending.ts";
import { statefulsetSuites } from "./statefulset.ts";
import type { Suite, SuiteTable, VectorCase } from "./suite.ts";
import { webhookSuites } from "./webhook.ts";

const SIDES: ReadonlyMap<string, SuiteTable> = new Map([
  ["webhook", webhookSuites],
  ["controller", controllerSuites],
  ["statefulset", statefulsetSuites],
]);

export interface CaseFailure {
  readonly name: string;
  readonly differences: readonly Difference[];
  /** the exception, if the suite threw one */
  readonly error?: string;
}

export type FileResult =
  | { readonly kind: "ran"; readonly title: string; readonly total: number; readonly failures: readonly CaseFailure[] }
  | { readonly kind: "pending"; readonly title: string; readonly total: number }
  /** the file itself failed: it is unknown, unreadable or empty */
  | { readonly kind: "refused"; readonly title: string; readonly sentence: string };

function isVectorCase(value: unknown): value is VectorCase {
  return typeof value === "object" && value !== null && "name" in value && "input" in value && "expected" in value;
}

function readCases(file: string): readonly VectorCase[] | string {
  try {
    const content = parseJson(readFileSync(file, "utf8"));
    if (!Array.isArray(content)) return "is not a list of cases";
    if (content.length === 0) return "has no cases";
    if (!content.every(isVectorCase)) return "holds something that is not a {name, input, expected}";
    return content;
  } catch (error) {
    return `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}

async function runCase(suite: Suite, vector: VectorCase): Promise<CaseFailure | undefined> {
  deepFreeze(vector);
  try {
    const differences = await suite(vector.input as never, vector.expected as never, vector);
    return differences.length === 0 ? undefined : { name: vector.name, differences };
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { name: vector.name, differences: [], error: text };
  }
}

async function runCases(suite: Suite, cases: readonly VectorCase[]): Promise<readonly CaseFailure[]> {
  const failures: CaseFailure[] = [];
  for (const vector of cases) {
    const failure = await runCase(suite, vector);
    if (failure !== undefined) failures.push(failure);
  }
  return failures;
}

/** Returns the suite, "pending", or a sentence that says why the file has no suite. */
function suiteOf(side: string, name: string): Suite | "pending" | { readonly sentence: string } {
  const suites = SIDES.get(side);
  if (suites === undefined) {
    return { sentence: `this file lies in a folder "${side}", which is none of ${[...SIDES.keys()].join(", ")}` };
  }
  if (pending[side]?.includes(name)) return "pending";
  return (
    (Object.hasOwn(suites, name) ? suites[name] : undefined) ?? { sentence: "this file has no suite in test/runner" }
  );
}

/** Runs a file. The folder that directly contains it names its side; the file's name names its suite. */
export async function runFile(file: string): Promise<FileResult> {
  const side = basename(dirname(resolve(file)));
  const name = basename(file, ".json");
  const title = `${side}/${name}`;
  const suite = suiteOf(side, name);
  if (typeof suite === "object") return { kind: "refused", title, ...suite };
  const cases = readCases(file);
  if (typeof cases === "string") return { kind: "refused", title, sentence: `this file ${cases}` };
  if (suite === "pending") return { kind: "pending", title, total: cases.length };
  return { kind: "ran", title, total: cases.length, failures: await runCases(suite, cases) };
}
