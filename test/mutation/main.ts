/** `npm run mutation -- kube …`: Stryker on one directory of `shared`, the core unless it is named; the rest is Stryker's. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { isPart, VARIABLE } from "./parts.ts";

const [first, ...others] = process.argv.slice(2);
const [part, options] = isPart(first) ? [first, others] : ["core", process.argv.slice(2)];
const stryker = fileURLToPath(import.meta.resolve("@stryker-mutator/core/package.json")).replace(
  "package.json",
  "bin/stryker.js",
);
const env = { ...process.env, [VARIABLE]: part };
process.exitCode = spawnSync(process.execPath, [stryker, "run", ...options], { stdio: "inherit", env }).status ?? 1;
