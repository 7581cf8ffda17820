/** Builds what the npm package holds, so that it runs on a machine with nothing but Node: `node infra/build-package.ts`. */
import { execFile } from "node:child_process";
import { chmod, copyFile, mkdir, rm } from "node:fs/promises";
import { promisify } from "node:util";
import { build } from "esbuild";

const CLI = "dist/cli";
const LIBRARY = "dist/library";
const ENTRIES = ["preview", "plan", "explain", "hash"];

/** Packages that are no ES modules ask for Node's own by require. */
const REQUIRE = 'import { createRequire as _require } from "node:module"; const require = _require(import.meta.url);';

const COMMON = {
  bundle: true,
  splitting: true,
  platform: "node",
  target: "node22",
  format: "esm",
  outExtension: { ".js": ".mjs" },
  logLevel: "warning",
} as const;

await rm(CLI, { recursive: true, force: true });
await rm(LIBRARY, { recursive: true, force: true });
await build({
  ...COMMON,
  entryPoints: [{ in: "functions/cli.ts", out: "cli" }],
  outdir: CLI,
  chunkNames: "chunk-[hash]",
  minify: true,
  banner: { js: REQUIRE },
  alias: { "@kubernetes/client-node": "./node_modules/@kubernetes/client-node/dist/config.js" },
});
for (const name of ["log-agent.yaml", "web.yaml"]) await copyFile(`infra/demo/${name}`, `${CLI}/${name}`);
await copyFile("functions/check-node.mjs", `${CLI}/check-node.mjs`);
await copyFile("functions/sidecarset.mjs", `${CLI}/sidecarset.mjs`);
await chmod(`${CLI}/sidecarset.mjs`, 0o755);

await mkdir(LIBRARY, { recursive: true });
await build({
  ...COMMON,
  entryPoints: ENTRIES.map((name) => ({ in: `functions/library/${name}.ts`, out: name })),
  outdir: LIBRARY,
  packages: "external",
});
await promisify(execFile)("tsc", ["-p", "tsconfig.library.json"]);
