/**
 * Builds the contents of the npm package: `node infra/build-package.ts`. Everything is bundled, so the package needs no
 * other. With `--site https://…` its messages link to the documents there. `--pack` leaves dependencies out of
 * package.json while npm packs it, `--unpack` restores the file.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { parseArgs, promisify } from "node:util";
import { build } from "esbuild";
import { buildCli, linkDocs, PACKAGED, packedManifest } from "./build-cli.ts";

const CLI = "dist/cli";
const LIBRARY = "dist/library";
const ENTRIES = ["preview", "plan", "explain", "hash", "lint", "diff", "check", "compile"];

const MANIFEST = "package.json";
const BEFORE = "dist/package.json.before-pack";

const { values } = parseArgs({
  options: { pack: { type: "boolean" }, unpack: { type: "boolean" }, site: { type: "string" } },
});
if (existsSync(BEFORE)) await rename(BEFORE, MANIFEST);
if (!values.unpack) await buildPackage();
if (values.pack) await leaveOutPackages();

async function leaveOutPackages(): Promise<void> {
  const text = await readFile(MANIFEST, "utf8");
  await writeFile(BEFORE, text);
  await writeFile(MANIFEST, packedManifest(text));
}

async function buildPackage(): Promise<void> {
  await rm(CLI, { recursive: true, force: true });
  await rm(LIBRARY, { recursive: true, force: true });
  await buildCli(CLI);

  await mkdir(LIBRARY, { recursive: true });
  await build({
    ...PACKAGED,
    entryPoints: ENTRIES.map((name) => ({ in: `functions/library/${name}.ts`, out: name })),
    outdir: LIBRARY,
  });
  for (const folder of [CLI, LIBRARY]) await linkDocs(folder, values.site);
  await promisify(execFile)("tsc", ["-p", "tsconfig.library.json"]);
}
