/** The tables of attacks name tests that exist, so that a new title does not take attacks out of the count. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";
import { TABLES } from "./tables.ts";

/** Every string and template of a file, since rows and titles make the full names of tests together. */
function textsOf(file: string): readonly string[] {
  const texts: string[] = [];
  const walk = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) texts.push(node.getText().slice(1, -1));
    ts.forEachChild(node, walk);
  };
  walk(ts.createSourceFile(file, readFileSync(join(ROOT, file), "utf8"), ts.ScriptTarget.Latest, true));
  return texts;
}

const ROOT = join(import.meta.dirname, "../..");
const patterns = TABLES.flatMap(({ files }) => (files === "fuzz" ? [] : Object.entries(files)));

test.each(patterns)("%s has a test with a title like %s", (file, pattern) => {
  expect(textsOf(file).filter((text) => pattern.test(text)).length).toBeGreaterThan(0);
});
