/**
 * Builds the embedded cluster as an npm package of its own: `node infra/build-local.ts FOLDER`, then `npm pack FOLDER` or
 * `npm publish FOLDER`. Node does not strip types below node_modules, so the package holds JavaScript. It publishes nothing.
 */
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const SOURCE = "infra/local";

interface PackageManifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

/** One entry: the cluster. Its other exports are there for simulations and tests of this repository. */
export async function buildLocal(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const text = await readFile(join(SOURCE, "package.json"), "utf8");
  const { name, version, description, license, dependencies } = JSON.parse(text) as PackageManifest;
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
  const manifest = {
    ...{ name, version, description, license, type: "module", exports: "./cluster.mjs" },
    engines: { node: ">=22.19" },
    dependencies,
  };
  await writeFile(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  await cp(join(SOURCE, "README.md"), join(folder, "README.md"));
  await cp("LICENSE", join(folder, "LICENSE"));
}

if (import.meta.main) {
  const folder = process.argv[2] ?? "dist/local";
  await buildLocal(folder);
  process.stdout.write(`${folder}\n`);
}
