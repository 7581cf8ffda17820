/** `npm run test:e2e`: finds or builds a control plane, then runs every test of this folder on it. Exits 2 without one. */
import { fileURLToPath } from "node:url";
import { parseCLI, startVitest } from "vitest/node";
import { findPrograms, MissingProgram } from "./support/programs.ts";

try {
  await findPrograms(process.env);
} catch (error) {
  if (!(error instanceof MissingProgram)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(2);
}
const { filter, options } = parseCLI(["vitest", "run", ...process.argv.slice(2)]);
// Few files are not worth a second control plane.
const workers = filter.length > 0 ? { maxWorkers: 1 } : {};
// Within this process, so that none outlives it.
await startVitest(filter, {
  ...workers,
  ...options,
  config: fileURLToPath(new URL("vitest.config.ts", import.meta.url)),
});
process.exit();
