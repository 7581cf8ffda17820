/**
 * Bundles the command line, so that it runs on a machine with nothing but Node. `node infra/build-cli.ts serve …` runs the
 * bundle's command at once: it takes half the memory of the sources, whose types are stripped.
 */
import { chmod, copyFile, readdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { build, stop } from "esbuild";
import { kubeconfigOnly } from "./build.ts";

/** Packages that are no ES modules ask for Node's own by require. */
const REQUIRE = 'import { createRequire as _require } from "node:module"; const require = _require(import.meta.url);';

/** The build options of everything in the npm package. */
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

/**
 * Messages name pages as `docs/check.md`, which a checkout has. In a package they become addresses on the site. `site`:
 * https, without a slash at the end; absent: nothing is changed, since there is no site.
 */
export async function linkDocs(folder: string, site: string | undefined): Promise<void> {
  if (site === undefined) return;
  if (!/^https:\/\/[^?#\s]*[^/?#\s]$/.test(site))
    throw new Error(`--site ${site} is not written as https://docs.example.com`);
  for (const name of await readdir(folder)) {
    if (!/\.(?:mjs|yaml)$/.test(name)) continue;
    const text = await readFile(join(folder, name), "utf8");
    await writeFile(join(folder, name), text.replaceAll(/\bdocs\/([a-z-]+)\.md\b/g, `${site}/docs/$1`));
  }
}

// The package.json of the npm package: everything is bundled, so it depends on no other package.

const OF_THE_REPOSITORY = [
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "workspaces",
  "scripts",
  "allowScripts",
];

/**
 * `text` is the repository's package.json; `published`: the public addresses, which npm shows, and whose repository it
 * compares with the proof of the build.
 */
export function packedManifest(text: string, published?: Published): string {
  const kept = Object.entries(JSON.parse(text)).filter(([name]) => !OF_THE_REPOSITORY.includes(name));
  const addresses = published === undefined ? {} : packageAddresses(published);
  return `${JSON.stringify({ ...Object.fromEntries(kept), ...addresses }, null, 2)}\n`;
}

export interface Published {
  readonly repository: string;
  /** absent: README on the repository's page */
  readonly site: string | undefined;
}

/** `directory`: the package's folder in the repository; absent: the root. npm resolves links of its README there. */
export function packageAddresses({ repository, site }: Published, directory?: string): object {
  return {
    repository: { type: "git", url: `git+${repository}.git`, ...(directory === undefined ? {} : { directory }) },
    homepage: site || `${repository}#readme`,
    bugs: `${repository}/issues`,
  };
}

if (import.meta.main) {
  // Nothing else writes there: what runs goes on finding its files.
  const program = resolve(await buildCli("dist/serve"));
  await stop();
  process.argv[1] = program;
  await import(pathToFileURL(program).href);
}
