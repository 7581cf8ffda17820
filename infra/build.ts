/** Bundles each Lambda function, minified, into a folder of dist/ and says how large it is: `node infra/build.ts`. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { type BuildResult, build, type Metafile } from "esbuild";
import { deferredModules, deferredName } from "./aws/deferred.ts";

/** Files in functions/; each has a function in serverless.yml. */
export const FUNCTIONS = [
  "mutate-pod",
  "mutate-sidecarset",
  "validate-sidecarset",
  "convert-sidecarset",
  "rollout",
  "dry-run",
] as const;

export interface BundleSize {
  /** bytes that are loaded before the first request: index.js and all that it imports statically */
  readonly eager: number;
  /** file → bytes, of those that wait until they are needed, with what only they import */
  readonly lazy: Readonly<Record<string, number>>;
  /** bytes of everything, gzipped one by one: about what the zip holds */
  readonly zipped: number;
}

/** All that we use of client-node is its KubeConfig; its index brings 3 MB of generated models along. */
const KUBECONFIG_ONLY = { "@kubernetes/client-node": "./node_modules/@kubernetes/client-node/dist/config.js" };

/** Some packages require at run time, and so do deferred modules. */
const REQUIRE = `import{createRequire as requireOfBundle}from"node:module";const require=requireOfBundle(import.meta.url);`;

/** Writes `directory`/index.js and its chunks; the handler is index.handler. */
export async function bundle(name: string, directory: string): Promise<BundleSize> {
  const { outputFiles, metafile } = await bundleWithDeferred(name);
  await mkdir(directory, { recursive: true });
  for (const { path, contents } of outputFiles) await writeFile(join(directory, basename(path)), contents);
  await writeFile(join(directory, "package.json"), '{"type":"module"}\n');
  const zipped = outputFiles.reduce((sum, { contents }) => sum + gzipSync(contents).length, 0);
  return { ...sizes(metafile), zipped };
}

/** Deferred modules become files of their own, those that only deferred modules lead to included. */
async function bundleWithDeferred(name: string): Promise<BuildResult<{ write: false; metafile: true }>> {
  let entries: readonly string[] = [];
  for (;;) {
    const { plugin, met } = deferredModules(name);
    const result = await build({
      entryPoints: [
        { in: `functions/${name}.ts`, out: "index" },
        ...entries.map((path) => ({ in: path, out: deferredName(path) })),
      ],
      outdir: "dist",
      chunkNames: "chunk-[hash]",
      bundle: true,
      minify: true,
      splitting: true,
      platform: "node",
      target: "node24",
      format: "esm",
      banner: { js: REQUIRE },
      alias: KUBECONFIG_ONLY,
      plugins: [plugin],
      logLevel: "warning",
      metafile: true,
      write: false,
    });
    if (met.size === entries.length) return result;
    entries = [...met].toSorted();
  }
}

function sizes({ outputs }: Metafile): Omit<BundleSize, "zipped"> {
  const files = new Map(Object.entries(outputs));
  const reach = (path: string, reached: Set<string>): Set<string> => {
    if (reached.has(path) || !files.has(path)) return reached;
    reached.add(path);
    for (const { path: next, kind } of files.get(path)?.imports ?? [])
      if (kind === "import-statement") reach(next, reached);
    return reached;
  };
  const total = (paths: readonly string[]) => paths.reduce((sum, path) => sum + (files.get(path)?.bytes ?? 0), 0);
  const eager = reach("dist/index.js", new Set());
  const imported = new Set(
    [...files.values()].flatMap(({ imports }) => imports.filter(isStatic).map(({ path }) => path)),
  );
  const later = [...files.keys()].filter((path) => !eager.has(path) && !imported.has(path));
  const own = (path: string) => [...reach(path, new Set())].filter((reached) => !eager.has(reached));
  const lazy = later.map((path) => [labelOf(path, outputs), total(own(path))] as const);
  return { eager: total([...eager]), lazy: Object.fromEntries(lazy) };
}

function isStatic({ kind }: { readonly kind: string }): boolean {
  return kind === "import-statement";
}

/** A chunk's name says nothing: it goes by the module that it is entered at. */
function labelOf(path: string, outputs: Metafile["outputs"]): string {
  const entry = outputs[path]?.entryPoint ?? path;
  const [, ofPackage] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(entry) ?? [];
  return ofPackage ?? basename(entry, ".ts");
}

if (import.meta.main) {
  await rm("dist", { recursive: true, force: true });
  for (const name of FUNCTIONS) {
    const { eager, lazy, zipped } = await bundle(name, resolve("dist", name));
    const later = Object.entries(lazy).map(([file, bytes]) => `${file} ${kilobytes(bytes)}`);
    const line = `${name.padEnd(20)} ${kilobytes(eager).padStart(6)} kB at once, zipped ${kilobytes(zipped)} kB`;
    process.stdout.write(`${line}${later.length > 0 ? `; when needed: ${later.join(", ")}` : ""}\n`);
  }
}

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(1);
}
