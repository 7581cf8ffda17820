/** Builds what the npm package holds: `node infra/build-package.ts`. */
import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { promisify } from "node:util";
import { build } from "esbuild";
import { buildCli, PACKAGED } from "./build-cli.ts";

const CLI = "dist/cli";
const LIBRARY = "dist/library";
const ENTRIES = ["preview", "plan", "explain", "hash", "lint"];

await rm(CLI, { recursive: true, force: true });
await rm(LIBRARY, { recursive: true, force: true });
await buildCli(CLI);

await mkdir(LIBRARY, { recursive: true });
await build({
  ...PACKAGED,
  entryPoints: ENTRIES.map((name) => ({ in: `functions/library/${name}.ts`, out: name })),
  outdir: LIBRARY,
  packages: "external",
});
await promisify(execFile)("tsc", ["-p", "tsconfig.library.json"]);
