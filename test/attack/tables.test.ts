/**
 * Tests that the tables of attacks name existing tests, so that a changed title does not remove attacks from the count.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";
import { TABLES } from "./tables.ts";

/** Returns every string and template of a file, because the full names of tests combine rows and titles. */
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
