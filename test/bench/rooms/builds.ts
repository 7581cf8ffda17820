/** Builds a function in simpler ways than the shipped one. Each build writes `folder`/index.js with the handler. */
import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { build, type Plugin } from "esbuild";
import { deferredModules, deferredName, toCommonJs } from "../../../infra/aws/deferred.ts";
import { BUNDLING } from "../../../infra/build.ts";

const entryOf = (name: string) => ({ in: `functions/lambda/${name}.ts`, out: "index" });

async function write(folder: string, files: ReadonlyMap<string, string>): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [file, code] of files) await writeFile(join(folder, file), code);
  await writeFile(join(folder, "package.json"), '{"type":"commonjs"}\n');
}

/** Builds as the shipped build does, split and as CommonJS, but with all deferred modules in index.js. */
export async function bundleEager(name: string, folder: string): Promise<void> {
  const split = await build({
    ...BUNDLING,
    entryPoints: [entryOf(name)],
    outdir: "dist",
    splitting: true,
    format: "esm",
  });
  const { eager, lazy } = await toCommonJs(split);
  await write(folder, new Map([...lazy, ["index.js", eager]]));
}

/** Builds a bundle in one file. `isDeferred`: its deferred modules run when they are first called. */
export async function bundleSingle(name: string, folder: string, isDeferred: boolean): Promise<void> {
  const { plugin, met } = deferredModules(name);
  const plugins = isDeferred ? [inTheSameFile(met), plugin, ...BUNDLING.plugins] : BUNDLING.plugins;
  const { outputFiles } = await build({
    ...BUNDLING,
    entryPoints: [entryOf(name)],
    outdir: "dist",
    format: "cjs",
    plugins,
  });
  await write(folder, new Map(outputFiles.map(({ path, text }) => [basename(path), text])));
}

/** Runs before the plugin that would write the modules to files. */
function inTheSameFile(met: ReadonlySet<string>): Plugin {
  return {
    name: "in-the-same-file",
    setup: ({ onResolve }) => {
      onResolve({ filter: /^\.\/.*[.]js$/, namespace: "deferred" }, ({ path }) => ({
        path: [...met].find((module) => `./${deferredName(module)}.js` === path) ?? "",
      }));
    },
  };
}
