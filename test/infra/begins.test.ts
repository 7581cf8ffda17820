/** Tests that programs use no constant before its declaration: their top level runs in order. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const FOLDERS = ["functions", "infra", "shared", "test"];
const BEGINNING =
  /^(?:await |(?:try|for|if|else)\b[^\n]*\{\n(?:(?!^\})[\s\S])*?\bawait |(?:export )?const [^\n]*= await |process\.exitCode = )[^\n]*/m;
const CONSTANT = /^const ([A-Za-z_0-9]+)\b/gm;
const FUNCTION = /^(?:export )?(?:async )?function\*? [\s\S]*?^\}/gm;

/** Returns constants that a function uses and that are declared after the program has called it. */
function lateConstants(text: string): readonly string[] {
  const begun = BEGINNING.exec(text);
  if (begun === null) return [];
  const functions = [...text.matchAll(FUNCTION)].map(([body]) => body);
  const later = [...text.slice(begun.index + begun[0].length).matchAll(CONSTANT)].map(([, name = ""]) => name);
  return later.filter((name) => functions.some((body) => new RegExp(`\\b${name}\\b`).test(body)));
}

it("the check finds a constant that is defined below the start of a program and that a function uses", () => {
  const program = "await main();\nconst LATE_MS = 1;\nfunction main() {\n  return LATE_MS;\n}\n";
  expect(lateConstants(program)).toEqual(["LATE_MS"]);
  expect(lateConstants(program.replace("await main();\n", ""))).toEqual([]);
});

it("no program begins before the constants of its functions exist", () => {
  const listed = execFileSync("git", ["ls-files", ...FOLDERS], { encoding: "utf8" }).split("\n");
  const programs = listed
    .filter((file) => file.endsWith(".ts"))
    .map((file) => ({ file, text: readFileSync(file, "utf8") }))
    .filter(({ text }) => BEGINNING.test(text));
  expect(programs.length).toBeGreaterThan(20);
  expect(programs.flatMap(({ file, text }) => lateConstants(text).map((name) => `${file}: ${name}`))).toEqual([]);
});
