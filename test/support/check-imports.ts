/**
 * Runs dependency-cruiser, and refuses a run over too few modules: with a wrong TypeScript it finds none and succeeds.
 */
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";

const config = ["--config", "dependency-cruiser.config.mjs", "--output-type", "json"];
const run = spawnSync("node_modules/.bin/depcruise", [...config, "functions", "shared", "infra"], {
  encoding: "utf8",
  maxBuffer: 1 << 28,
});
if (!run.stdout.startsWith("{")) {
  process.stderr.write(`dependency-cruiser did not run: ${run.stderr || run.stdout}\n`);
  process.exit(2);
}

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { readonly name: string };
  readonly comment?: string;
}
const { modules, summary } = JSON.parse(run.stdout) as {
  modules: readonly { readonly source: string }[];
  summary: { readonly violations: readonly Violation[] };
};

const onDisk = globSync("{functions,shared,infra}/**/*.ts", {
  exclude: (path) => path.endsWith("node_modules"),
}).length;
const seen = modules.filter(({ source }) => /^(functions|shared|infra)\/.*\.ts$/.test(source)).length;
for (const { rule, from, to } of summary.violations) process.stdout.write(`${rule.name}: ${from} → ${to}\n`);
process.stdout.write(`imports: ${seen} of ${onDisk} modules seen, ${summary.violations.length} violations\n`);
process.exit(seen === 0 || seen < onDisk || summary.violations.length > 0 ? 1 : 0);
