/**
 * Builds the embedded cluster as an npm package of its own: `node infra/build-local.ts FOLDER [REPOSITORY [SITE]]`, then
 * `npm pack FOLDER`. Node does not strip types below node_modules, so it holds JavaScript and declarations of types.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { type Published, packageAddresses } from "./build-cli.ts";

const SOURCE = "infra/local";

/** One entry: the cluster. Its other exports are there for simulations and tests of this repository. */
export async function buildLocal(folder: string, published?: Published): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const { private: _private, ...kept } = JSON.parse(await readFile(join(SOURCE, "package.json"), "utf8"));
  await build({
    entryPoints: [join(SOURCE, "cluster.ts")],
    outfile: join(folder, "cluster.mjs"),
    bundle: true,
    packages: "external",
    platform: "node",
    target: "node22",
    format: "esm",
    logLevel: "warning",
  });
  const toTypes = ["-p", join(SOURCE, "tsconfig.types.json"), "--outDir", join(folder, "types")];
  await promisify(execFile)("node_modules/.bin/tsc", toTypes);
  const manifest = {
    ...kept,
    exports: { types: "./types/cluster.d.ts", default: "./cluster.mjs" },
    engines: { node: ">=22.19" },
    ...(published === undefined ? {} : packageAddresses(published, SOURCE)),
  };
  await writeFile(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  await cp(join(SOURCE, "README.md"), join(folder, "README.md"));
  await cp("LICENSE", join(folder, "LICENSE"));
}

if (import.meta.main) {
  const [folder = "dist/local", repository, site] = process.argv.slice(2);
  await buildLocal(folder, repository === undefined ? undefined : { repository, site });
  process.stdout.write(`${folder}\n`);
}
