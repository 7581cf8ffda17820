/** Bundles the command line, so that it runs on a machine with nothing but Node. */
import { chmod, copyFile } from "node:fs/promises";
import { build } from "esbuild";
import { kubeconfigOnly } from "./kubeconfig-only.ts";

/** Packages that are no ES modules ask for Node's own by require. */
const REQUIRE = 'import { createRequire as _require } from "node:module"; const require = _require(import.meta.url);';

/** What everything in the npm package is built with. */
export const PACKAGED = {
  bundle: true,
  splitting: true,
  platform: "node",
  target: "node22",
  format: "esm",
  outExtension: { ".js": ".mjs" },
  logLevel: "warning",
} as const;

/** @returns the program, in that folder */
export async function buildCli(folder: string): Promise<string> {
  await build({
    ...PACKAGED,
    entryPoints: [
      { in: "functions/cli.ts", out: "cli" },
      { in: "functions/server/behind-thread.ts", out: "behind-thread" },
    ],
    outdir: folder,
    chunkNames: "chunk-[hash]",
    minify: true,
    banner: { js: REQUIRE },
    plugins: [kubeconfigOnly],
  });
  for (const name of ["log-agent.yaml", "web.yaml"]) await copyFile(`infra/demo/${name}`, `${folder}/${name}`);
  await copyFile("functions/check-node.mjs", `${folder}/check-node.mjs`);
  await copyFile("functions/sidecarset.mjs", `${folder}/sidecarset.mjs`);
  await chmod(`${folder}/sidecarset.mjs`, 0o755);
  return `${folder}/sidecarset.mjs`;
}
