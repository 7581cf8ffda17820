/** Bundles each Lambda function, minified, into a folder of dist/ and says how large it is: `node infra/build.ts`. */
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { type BuildResult, build, type Metafile, type Plugin } from "esbuild";
import { deferredModules, deferredName, reachable, toCommonJs } from "./aws/deferred.ts";
import { DEPLOYED } from "./aws/deployed.ts";
import { CHECKER } from "./aws/names.ts";

/** Modules on the client's own way to a cluster, also through proxies: transport.ts and kubeconfig.ts replace them. */
const NEVER_REACHED = /^(?:undici|socks|socks-proxy-agent|hpagent|\.\/gen\/(?:index|rxjsStub)\.js)$/;
const CLIENT_NODE = /[\\/]@kubernetes[\\/]client-node[\\/]/;

/** A plugin for esbuild. client-node's imports of left-out modules get undefined exports. */
export const kubeconfigOnly: Plugin = {
  name: "kubeconfig-only",
  setup: ({ onLoad, onResolve, resolve }) => {
    onResolve({ filter: /^@kubernetes\/client-node$/ }, () =>
      resolve("./node_modules/@kubernetes/client-node/dist/config.js", { kind: "import-statement", resolveDir: "." }),
    );
    onResolve({ filter: NEVER_REACHED }, ({ path, importer }) =>
      CLIENT_NODE.test(importer) ? { path, namespace: "left-out" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "left-out" }, () => ({ contents: "module.exports = {};" }));
  },
};

/** Files in functions/lambda/. */
export const FUNCTIONS: readonly string[] = DEPLOYED.map(({ name }) => name);

export interface BundleSize {
  /** bytes that are loaded before the first request: index.js and all that it imports statically */
  readonly eager: number;
  /** bytes by file, for the files that load later, with the imports that only they need */
  readonly lazy: Readonly<Record<string, number>>;
  /** bytes of everything, gzipped one by one: about the size of the zip */
  readonly zipped: number;
}

/** Build options of every bundle for Lambda's Node. */
export const BUNDLING = {
  bundle: true,
  minify: true,
  platform: "node",
  target: "node24",
  plugins: [kubeconfigOnly] as Plugin[],
  logLevel: "warning",
  metafile: true,
  write: false,
} as const;

/** Writes `directory`/index.js and its chunks; the handler is index.handler. */
export async function bundle(name: string, directory: string): Promise<BundleSize> {
  const split = await bundleWithDeferred(name);
  const { eager, lazy } = await toCommonJs(split);
  await mkdir(directory, { recursive: true });
  const files = new Map([...lazy, ["index.js", eager]]);
  for (const [file, code] of files) await writeFile(join(directory, file), code);
  await writeFile(join(directory, "package.json"), '{"type":"commonjs"}\n');
  const zipped = [...files.values()].reduce((sum, code) => sum + gzipSync(code).length, 0);
  return { eager: Buffer.byteLength(eager), lazy: lazySizes(split.metafile, lazy), zipped };
}

/** The handler that Lambda calls instead of index.handler where traces are wanted: traced.handler, in each function. */
export async function bundleTraced(): Promise<string> {
  const entry = `import { handler as inner } from "./index.js"; import { traced } from "./functions/lambda/traced.ts"; export const handler = traced(inner);`;
  const { outputFiles } = await build({
    ...BUNDLING,
    stdin: { contents: entry, resolveDir: resolve(".") },
    format: "cjs",
    plugins: [besideIndex, ...BUNDLING.plugins],
  });
  return outputFiles[0]?.text ?? "";
}

const besideIndex: Plugin = {
  name: "beside-index",
  setup: ({ onResolve }) => {
    onResolve({ filter: /^\.\/index\.js$/ }, ({ path }) => ({ path, external: true }));
  },
};

/** Deferred modules become files of their own, together with modules that only they import. */
async function bundleWithDeferred(name: string): Promise<BuildResult<{ write: false; metafile: true }>> {
  let entries: readonly string[] = [];
  for (;;) {
    const { plugin, met } = deferredModules(name);
    const result = await build({
      ...BUNDLING,
      entryPoints: [
        { in: `functions/lambda/${name}.ts`, out: "index" },
        ...entries.map((path) => ({ in: path, out: deferredName(path) })),
      ],
      outdir: "dist",
      chunkNames: "chunk-[hash]",
      splitting: true,
      format: "esm",
      plugins: [plugin, ...BUNDLING.plugins],
    });
    if (met.size === entries.length) return result;
    entries = [...met].toSorted();
  }
}

/** The size of each deferred file, with the files that only deferred ones load. */
function lazySizes({ outputs }: Metafile, lazy: ReadonlyMap<string, string>): Readonly<Record<string, number>> {
  const bytes = (path: string) => Buffer.byteLength(lazy.get(basename(path)) ?? "");
  const imported = new Set(
    Object.values(outputs).flatMap(({ imports }) => imports.filter(isStatic).map(({ path }) => path)),
  );
  const entered = Object.keys(outputs).filter((path) => lazy.has(basename(path)) && !imported.has(path));
  const total = (path: string) => [...reachable(path, outputs)].reduce((sum, part) => sum + bytes(part), 0);
  return Object.fromEntries(entered.map((path) => [labelOf(path, outputs), total(path)]));
}

/** A chunk's name says nothing, so its label is the module of its entry. */
function labelOf(path: string, outputs: Metafile["outputs"]): string {
  const entry = outputs[path]?.entryPoint ?? path;
  const [, ofPackage] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(entry) ?? [];
  return ofPackage ?? basename(entry, ".ts");
}

if (import.meta.main) {
  // Builds may run side by side with the same result: each makes its own, and puts it in place at once.
  const [fresh, old] = [`.dist-${process.pid}-new`, `.dist-${process.pid}-old`];
  const tracing = await bundleTraced();
  for (const name of [...FUNCTIONS, CHECKER]) {
    const { eager, lazy, zipped } = await bundle(name, resolve(fresh, name));
    if (name !== CHECKER) await writeFile(resolve(fresh, name, "traced.js"), tracing);
    const later = Object.entries(lazy).map(([file, bytes]) => `${file} ${kilobytes(bytes)}`);
    const line = `${name.padEnd(20)} ${kilobytes(eager).padStart(6)} kB at once, zipped ${kilobytes(zipped)} kB`;
    process.stdout.write(`${line}${later.length > 0 ? `; when needed: ${later.join(", ")}` : ""}\n`);
  }
  process.stdout.write(`${"with traces".padEnd(20)} ${kilobytes(Buffer.byteLength(tracing)).padStart(6)} kB more\n`);
  await rename("dist", old).catch(() => undefined);
  // Another build may have put its own there by now.
  await rename(fresh, "dist").catch(() => undefined);
  for (const folder of [fresh, old]) await rm(folder, { recursive: true, force: true });
}

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(1);
}

function isStatic({ kind }: { readonly kind: string }): boolean {
  return kind === "import-statement";
}
