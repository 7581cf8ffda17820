/** `npm run test:e2e`: finds or builds a control plane, then runs every test of this folder on it. Exits 2 without one. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { findPrograms, MissingProgram } from "./support/programs.ts";

try {
  await findPrograms(process.env);
} catch (error) {
  if (!(error instanceof MissingProgram)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(2);
}
const config = fileURLToPath(new URL("vitest.config.ts", import.meta.url));
const args = ["vitest", "run", "--config", config, ...process.argv.slice(2)];
const { status } = spawnSync("npx", args, { stdio: "inherit" });
process.exit(status ?? 1);
