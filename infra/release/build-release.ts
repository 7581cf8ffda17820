/**
 * Builds everything that a release publishes, into dist/release, and publishes nothing: `node infra/release/build-release.ts
 * --tag v0.2.0 --repository https://github.com/OWNER/NAME`. The packages name this repository, which package.json leaves
 * out because it has no public address yet. Without --tag it is a trial of the version in package.json. With --site
 * https://… messages of commands link to the documents there. With --key, the file of a private key, the statement of
 * how it was built is signed.
 */
import { execFile } from "node:child_process";
import { createHash, sign } from "node:crypto";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { readYaml, writeYaml } from "../../shared/kube/yaml.ts";
import { linkDocs, packedManifest } from "../build-cli.ts";

const run = promisify(execFile);
const OUT = "dist/release";
const STAGE = "dist/release-stage";
const OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const IN_TOTO = "application/vnd.in-toto+json";

const { values } = parseArgs({
  options: {
    tag: { type: "string" },
    repository: { type: "string" },
    key: { type: "string" },
    site: { type: "string" },
  },
});
const manifest = await readFile("package.json", "utf8");
const { name, version } = JSON.parse(manifest) as { readonly name: string; readonly version: string };
const { repository = "https://releases.invalid/owner/name", site } = values;
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
  await run(process.execPath, ["infra/build-local.ts", join(STAGE, "local"), repository, ...(site ? [site] : [])]);
  await packFolder(join(STAGE, "local"));
  await packPlugin();
  const chart = `sidecarset-chart-${version}.tgz`;
  await cp("infra/helm/sidecarset", join(STAGE, "sidecarset"), { recursive: true });
  await linkDocs(join(STAGE, "sidecarset/templates"), values.site);
  await tar(STAGE, ["sidecarset"], chart);
  await packOciChart(await readFile(join(OUT, chart)));
  await cp("infra/helm/artifacthub-repo.yml", join(OUT, "artifacthub-repo.yml"));
  await tar("infra", ["rbac"], `sidecarset-rbac-${version}.tgz`);
  // The modules read the manifests that are beside their folder.
  await tar("infra", ["terraform", "rbac", "crd", "webhooks"], `sidecarset-terraform-${version}.tgz`);
  await cp("infra/crd/sidecarsets.yaml", join(OUT, "sidecarsets-crd.yaml"));
  await writeSbom();
  await writeChecksums();
  await writeProvenance();
  await rm(STAGE, { recursive: true });
  for (const file of (await readdir(OUT)).sort()) process.stdout.write(`${OUT}/${file}\n`);
}

/** The problem if parts of a release name different versions, or no repository. */
async function problemOf(): Promise<string | undefined> {
  const { tag } = values;
  if (tag !== undefined && tag !== `v${version}`)
    return `the tag ${tag} is not v${version}, the version in package.json: change one of them`;
  if (tag !== undefined && values.repository === undefined)
    return "--tag needs --repository https://…: the packages name where they come from";
  const changes = await readFile("CHANGELOG.md", "utf8");
  if (!changes.includes(`\n## ${version}\n`)) return `CHANGELOG.md has no section ${version}: write what changed`;
  const chart = await readFile("infra/helm/sidecarset/Chart.yaml", "utf8");
  if (!chart.includes(`\nversion: ${version}\n`))
    return `the chart has another version than ${version}: run node infra/generate.ts`;
  const local = JSON.parse(await readFile("infra/local/package.json", "utf8")) as { readonly version: string };
  if (local.version !== version)
    return `infra/local/package.json has version ${local.version}, not ${version}: write the same, then run npm install`;
  return undefined;
}

async function packNpm(): Promise<void> {
  await run(process.execPath, ["infra/build-package.ts", ...(site ? ["--site", site] : [])]);
  const stage = join(STAGE, "npm");
  for (const path of ["dist/cli", "dist/library", "README.md", "LICENSE"])
    await cp(path, join(stage, path), { recursive: true });
  await writeFile(join(stage, "package.json"), packedManifest(manifest, { repository, site }));
  await packFolder(stage);
}

async function packFolder(folder: string): Promise<void> {
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", join(process.cwd(), OUT)], { cwd: folder });
}

/** npm takes the root's name from its folder and not from package.json. */
async function writeSbom(): Promise<void> {
  const stage = join(STAGE, name);
  for (const file of ["package.json", "package-lock.json"]) await cp(file, join(stage, file));
  const { stdout } = await run("npm", ["run", "--silent", "sbom"], { cwd: stage, maxBuffer: 1 << 26 });
  await writeFile(join(OUT, "sbom.cdx.json"), stdout);
}

/** Files for kubectl's plugin manager: the program, its licence, and the manifest with the archive's checksum. */
async function packPlugin(): Promise<void> {
  const stage = join(STAGE, "plugin");
  await cp("dist/cli", stage, { recursive: true });
  await cp("LICENSE", join(stage, "LICENSE"));
  const archive = `kubectl-sidecarset-${version}.tar.gz`;
  await tar(stage, ["."], archive);
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
      platforms: [
        {
          selector,
          uri: `${repository}/releases/download/v${version}/${archive}`,
          sha256,
          bin: "sidecarset.mjs",
          files,
        },
      ],
    },
  };
}

/**
 * The chart in the form of a registry: an OCI folder in one file, so that its digest is known before it is published.
 * Source: Helm, pkg/registry, and OCI's image layout 1.0.
 */
async function packOciChart(content: Buffer): Promise<void> {
  const stage = join(STAGE, "oci");
  await mkdir(join(stage, "blobs/sha256"), { recursive: true });
  const blob = async (mediaType: string, data: Buffer | string) => {
    const digest = createHash("sha256").update(data).digest("hex");
    await writeFile(join(stage, "blobs/sha256", digest), data);
    return { mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(data) };
  };
  const [metadata] = readYaml(await readFile("infra/helm/sidecarset/Chart.yaml", "utf8"));
  const manifest = {
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    config: await blob("application/vnd.cncf.helm.config.v1+json", JSON.stringify(metadata?.value)),
    layers: [await blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", content)],
    annotations: { "org.opencontainers.image.title": "sidecarset", "org.opencontainers.image.version": version },
  };
  const { size, digest } = await blob(OCI_MANIFEST, JSON.stringify(manifest));
  const annotations = { "org.opencontainers.image.ref.name": version };
  const manifests = [{ mediaType: OCI_MANIFEST, digest, size, annotations }];
  await writeFile(join(stage, "index.json"), JSON.stringify({ schemaVersion: 2, manifests }));
  await writeFile(join(stage, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  await tar(stage, ["blobs", "index.json", "oci-layout"], `sidecarset-chart-${version}.oci.tar`);
}

/** A reproducible archive: the same content gives the same bytes. */
async function tar(from: string, what: readonly string[], archive: string): Promise<void> {
  const same = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  const packing = archive.endsWith(".oci.tar") ? [] : ["--use-compress-program=gzip -n"];
  await run("tar", [...same, ...packing, "-cf", join(OUT, archive), "-C", from, ...what]);
}

async function writeChecksums(): Promise<void> {
  const files = (await readdir(OUT)).sort();
  const lines = await Promise.all(files.map(async (file) => `${await sha256Of(join(OUT, file))}  ${file}\n`));
  await writeFile(join(OUT, "SHA256SUMS"), lines.join(""));
}

/**
 * Writes which files were built from which commit, as SLSA provenance 1.0 in an in-toto statement, and with --key in a
 * signed envelope (DSSE) too. A release proves it by GitHub's attestation, because anybody with a key can sign
 * anything.
 */
async function writeProvenance(): Promise<void> {
  const { stdout: commit } = await run("git", ["rev-parse", "HEAD"]);
  const sums = (await readFile(join(OUT, "SHA256SUMS"), "utf8")).trimEnd().split("\n");
  const subject = sums.map((line) => ({ name: line.slice(66), digest: { sha256: line.slice(0, 64) } }));
  const parameters = { tag: values.tag ?? "", repository };
  const buildDefinition = {
    buildType: "infra/release/build-release.ts",
    externalParameters: parameters,
    resolvedDependencies: [{ name: "source", digest: { gitCommit: commit.trim() } }],
  };
  const predicate = { buildDefinition, runDetails: { builder: { id: `node-${process.version}` } } };
  const predicateType = "https://slsa.dev/provenance/v1";
  const statement = JSON.stringify({ _type: "https://in-toto.io/Statement/v1", subject, predicateType, predicate });
  await writeFile(join(OUT, "provenance.json"), statement);
  if (values.key === undefined) return;
  const signature = sign(null, preAuthentication(statement), await readFile(values.key)).toString("base64");
  const payload = Buffer.from(statement).toString("base64");
  const envelope = { payloadType: IN_TOTO, payload, signatures: [{ sig: signature }] };
  await writeFile(join(OUT, "provenance.dsse.json"), JSON.stringify(envelope));
}

/** The bytes that are signed. Source: DSSE, protocol. */
function preAuthentication(payload: string): Buffer {
  return Buffer.from(`DSSEv1 ${IN_TOTO.length} ${IN_TOTO} ${Buffer.byteLength(payload)} ${payload}`);
}

async function sha256Of(file: string): Promise<string> {
  return createHash("sha256")
    .update(await readFile(file))
    .digest("hex");
}
