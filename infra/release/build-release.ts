/**
 * Builds everything that a release publishes, into dist/release, and publishes nothing: `node infra/release/build-release.ts
 * --tag v0.2.0 --url https://…/releases/download/v0.2.0`. Without --tag it is a trial of the version in package.json.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { writeYaml } from "../../shared/kube/yaml.ts";
import { packedManifest } from "../packed-manifest.ts";

const run = promisify(execFile);
const OUT = "dist/release";
const STAGE = "dist/release-stage";

const { values } = parseArgs({
  options: { tag: { type: "string" }, url: { type: "string", default: "https://releases.invalid" } },
});
const manifest = await readFile("package.json", "utf8");
const { version } = JSON.parse(manifest) as { readonly version: string };
await main();

async function main(): Promise<void> {
  const problem = await problemOf();
  if (problem !== undefined) {
    process.stderr.write(`${problem}\n`);
    process.exitCode = 2;
    return;
  }
  for (const folder of [OUT, STAGE]) {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
  }
  await packNpm();
  await packPlugin();
  await packFolder("infra/helm/sidecarset", `sidecarset-chart-${version}.tgz`);
  await packFolder("infra/rbac", `sidecarset-rbac-${version}.tgz`);
  await cp("infra/crd/sidecarsets.yaml", join(OUT, "sidecarsets-crd.yaml"));
  const { stdout: sbom } = await run("npm", ["run", "--silent", "sbom"], { maxBuffer: 1 << 26 });
  await writeFile(join(OUT, "sbom.cdx.json"), sbom);
  await writeChecksums();
  await rm(STAGE, { recursive: true });
  for (const name of (await readdir(OUT)).sort()) process.stdout.write(`${OUT}/${name}\n`);
}

/** A release says the same everywhere, or there is none. */
async function problemOf(): Promise<string | undefined> {
  const { tag } = values;
  if (tag !== undefined && tag !== `v${version}`)
    return `the tag ${tag} is not v${version}, the version in package.json: change one of them`;
  const changes = await readFile("CHANGELOG.md", "utf8");
  if (!changes.includes(`\n## ${version}\n`)) return `CHANGELOG.md has no section ${version}: write what changed`;
  const chart = await readFile("infra/helm/sidecarset/Chart.yaml", "utf8");
  if (!chart.includes(`\nversion: ${version}\n`))
    return `the chart has another version than ${version}: run node infra/generate.ts`;
  return undefined;
}

async function packNpm(): Promise<void> {
  await run(process.execPath, ["infra/build-package.ts"]);
  const stage = join(STAGE, "npm");
  for (const name of ["dist/cli", "dist/library", "README.md", "LICENSE"])
    await cp(name, join(stage, name), { recursive: true });
  await writeFile(join(stage, "package.json"), packedManifest(manifest));
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", join(process.cwd(), OUT)], { cwd: stage });
}

/** For kubectl's plugin manager: the program, its licence, and the manifest that names the archive's checksum. */
async function packPlugin(): Promise<void> {
  const stage = join(STAGE, "plugin");
  await cp("dist/cli", stage, { recursive: true });
  await cp("LICENSE", join(stage, "LICENSE"));
  const archive = `kubectl-sidecarset-${version}.tar.gz`;
  await tar(stage, ".", archive);
  const sha256 = await sha256Of(join(OUT, archive));
  await writeFile(join(OUT, "sidecarset.krew.yaml"), writeYaml(krewManifest(archive, sha256)));
}

function krewManifest(archive: string, sha256: string): object {
  const selector = { matchExpressions: [{ key: "os", operator: "In", values: ["darwin", "linux"] }] };
  const files = [{ from: "./*", to: "." }];
  return {
    apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
    kind: "Plugin",
    metadata: { name: "sidecarset" },
    spec: {
      version: `v${version}`,
      shortDescription: "Plan, explain and steer SidecarSet rollouts",
      description:
        "Says what a change of a SidecarSet will do to which pod before it is made, why a rollout waits, and steers it.\n",
      caveats: "Needs Node.js 22.19 or newer in the PATH.\n",
      platforms: [{ selector, uri: `${values.url}/${archive}`, sha256, bin: "sidecarset.mjs", files }],
    },
  };
}

async function packFolder(folder: string, archive: string): Promise<void> {
  const at = folder.lastIndexOf("/");
  await tar(folder.slice(0, at), folder.slice(at + 1), archive);
}

/** Reproducible: the same content gives the same bytes. */
async function tar(from: string, what: string, archive: string): Promise<void> {
  const same = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  await run("tar", [...same, "--use-compress-program=gzip -n", "-cf", join(OUT, archive), "-C", from, what]);
}

async function writeChecksums(): Promise<void> {
  const names = (await readdir(OUT)).sort();
  const lines = await Promise.all(names.map(async (name) => `${await sha256Of(join(OUT, name))}  ${name}\n`));
  await writeFile(join(OUT, "SHA256SUMS"), lines.join(""));
}

async function sha256Of(file: string): Promise<string> {
  return createHash("sha256")
    .update(await readFile(file))
    .digest("hex");
}
