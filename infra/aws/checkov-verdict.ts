/** Reads checkov's report: `node infra/aws/checkov-verdict.ts REPORT`. Fails on a failed check without a reason, a reason without one, and on nothing looked at. */
import { readFile } from "node:fs/promises";

interface Report {
  readonly summary: { readonly passed: number; readonly failed: number; readonly parsing_errors: number };
  readonly results: { readonly failed_checks: readonly { readonly check_id: string; readonly resource: string }[] };
}

const read = async (path: string | URL): Promise<unknown> => JSON.parse(await readFile(path, "utf8"));
const [path = ""] = process.argv.slice(2);
const { summary, results } = (await read(path)) as Report;
const reasons = (await read(new URL("checkov-exceptions.json", import.meta.url))) as Readonly<Record<string, string>>;

const failed = new Set(results.failed_checks.map(({ check_id }) => check_id));
const unlisted = results.failed_checks.filter(({ check_id }) => !Object.hasOwn(reasons, check_id));
const problems = [
  ...unlisted.map(
    ({ check_id, resource }) => `${check_id} fails on ${resource}, and checkov-exceptions.json has no reason`,
  ),
  ...Object.keys(reasons).flatMap((id) =>
    failed.has(id) ? [] : `${id} has a reason in checkov-exceptions.json, but fails nowhere`,
  ),
  ...(summary.parsing_errors > 0 ? [`${summary.parsing_errors} parsing errors`] : []),
  ...(summary.passed === 0 || summary.passed + summary.failed < 50 ? ["next to nothing was looked at"] : []),
];
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.stdout.write(
  `checkov: ${summary.passed + summary.failed} checks ran, ${summary.passed} passed, ${summary.failed} failed for ${failed.size} reasons that are listed\n`,
);
process.exitCode = problems.length > 0 ? 1 : 0;
