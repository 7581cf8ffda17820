/** Bundles each Lambda function into one minified file in dist/ and says how large it is: `node infra/build.ts`. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

/** Files in functions/; each has a function in serverless.yml. */
const FUNCTIONS = [
  "mutate-pod",
  "mutate-sidecarset",
  "validate-sidecarset",
  "convert-sidecarset",
  "rollout",
  "dry-run",
];

/** All that we use of client-node is its KubeConfig; its index brings 3 MB of generated models along. */
const KUBECONFIG_ONLY = { "@kubernetes/client-node": "./node_modules/@kubernetes/client-node/dist/config.js" };

/** CommonJS, because client-node requires at run time, which an ESM bundle cannot. */
export async function bundle(
  name: string,
  directory: string,
): Promise<{ readonly bytes: number; readonly zipped: number }> {
  const { outputFiles } = await build({
    entryPoints: [`functions/${name}.ts`],
    outfile: `${directory}/${name}.cjs`,
    bundle: true,
    minify: true,
    platform: "node",
    target: "node24",
    format: "cjs",
    alias: KUBECONFIG_ONLY,
    logLevel: "warning",
    write: false,
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error(`esbuild wrote nothing for ${name}`);
  await mkdir(directory, { recursive: true });
  await writeFile(file.path, file.contents);
  return { bytes: file.contents.length, zipped: gzipSync(file.contents).length };
}

if (import.meta.main) {
  await rm("dist", { recursive: true, force: true });
  for (const name of FUNCTIONS) {
    const { bytes, zipped } = await bundle(name, "dist");
    process.stdout.write(`${`dist/${name}.cjs`.padEnd(32)}${kilobytes(bytes)} kB, zipped ${kilobytes(zipped)} kB\n`);
  }
}

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(1).padStart(7);
}
