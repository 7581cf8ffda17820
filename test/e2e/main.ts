/** `npm run test:e2e` and `npm run soak`: every test of this folder on a real control plane. Exits 2 without one. */
import { fileURLToPath } from "node:url";
import { parseCLI, startVitest } from "vitest/node";
import { findPrograms, MissingProgram } from "./support/programs.ts";

const CONFIG = fileURLToPath(new URL("vitest.config.ts", import.meta.url));

try {
  await findPrograms(process.env);
} catch (error) {
  if (!(error instanceof MissingProgram)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(2);
}
const own = process.argv.slice(2);
if (own.includes("--soak")) process.env["E2E_SOAK"] = "1";
const { filter, options } = parseCLI(["vitest", "run", ...own.filter((argument) => argument !== "--soak")]);
// A few files are not worth a second control plane.
const workers = filter.length > 0 ? { maxWorkers: 1 } : {};
// Within this process, so that none outlives it.
await startVitest(filter, { ...workers, ...options, config: CONFIG });
process.exit();
