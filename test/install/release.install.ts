/**
 * Tries a release (`npm run release:check`). Every part of a publication is built, with the same names and its
 * checksum. The packed files are installed and run. Nothing is published, and the network is used only once, for Go's
 * proxy.
 */
import { createHash, generateKeyPairSync, verify } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { ROOT, run } from "./run.ts";

const SITE = "https://docs.example.com/sidecarset";
const REPOSITORY = "https://example.com/owner/name";
const OUT = join(ROOT, "dist/release");
const BUILD = ["infra/release/build-release.ts"];
const KREW = "sigs.k8s.io/krew/cmd/validate-krew-manifest";

const digestOf = (data: Buffer | string) => createHash("sha256").update(data).digest("hex");

describe("a release", { timeout: 300_000 }, () => {
  let folder: string;
  let version: string;
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const read = (name: string) => readFile(join(OUT, name), "utf8");
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "sidecarset-release-"));
    ({ version } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")));
    const key = join(folder, "key.pem");
    await writeFile(key, privateKey.export({ type: "pkcs8", format: "pem" }));
    const at = ["--tag", `v${version}`, "--repository", REPOSITORY, "--site", SITE, "--key", key];
    await run(process.execPath, [...BUILD, ...at]);
  }, 300_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it("a release is two packages, a plugin, a chart, the definition, the roles, the modules and a bill of materials", async () => {
    expect((await readdir(OUT)).toSorted()).toEqual(
      [
        "SHA256SUMS",
        "artifacthub-repo.yml",
        `kubectl-sidecarset-${version}.tar.gz`,
        "provenance.dsse.json",
        "provenance.json",
        "sbom.cdx.json",
        `sidecarset-chart-${version}.oci.tar`,
        `sidecarset-chart-${version}.tgz`,
        `sidecarset-local-${version}.tgz`,
        `sidecarset-rbac-${version}.tgz`,
        `sidecarset-serverless-${version}.tgz`,
        `sidecarset-terraform-${version}.tgz`,
        "sidecarset.krew.yaml",
        "sidecarsets-crd.yaml",
      ].toSorted(),
    );
    expect(JSON.parse(await read("sbom.cdx.json"))).toMatchObject({
      bomFormat: "CycloneDX",
      metadata: { component: { name: "sidecarset-serverless", version } },
    });
  });

  it("a release has the checksum of every file, and the plugin's manifest has the checksum of its archive", async () => {
    const sums = (await read("SHA256SUMS")).trimEnd().split("\n");
    expect(sums).toHaveLength(11);
    for (const line of sums) {
      const [sum, name = ""] = line.split("  ");
      expect(digestOf(await readFile(join(OUT, name))), name).toBe(sum);
    }
    const { spec } = parse(await read("sidecarset.krew.yaml"));
    const [{ uri, sha256 }] = spec.platforms;
    expect(uri).toBe(`${REPOSITORY}/releases/download/v${version}/kubectl-sidecarset-${version}.tar.gz`);
    expect(sums).toContain(`${sha256}  kubectl-sidecarset-${version}.tar.gz`);
  });

  it("kubectl finds the release's plugin and runs it where Krew unpacks it, with the demo's objects and the checks", async () => {
    const [store, bin] = [join(folder, "store"), join(folder, "bin")];
    for (const path of [store, bin]) await mkdir(path);
    await run("tar", ["-xzf", join(OUT, `kubectl-sidecarset-${version}.tar.gz`), "-C", store]);
    const [{ bin: program }] = parse(await read("sidecarset.krew.yaml")).spec.platforms;
    await chmod(join(store, program), 0o755);
    // Krew links the program with this name into a folder of the PATH.
    await symlink(join(store, program), join(bin, "kubectl-sidecarset"));
    const env = { PATH: `${bin}:${process.env["PATH"]}`, KUBECONFIG: join(folder, "none") };
    const plugin = (...args: readonly string[]) => run("kubectl", ["sidecarset", ...args], { cwd: folder, env });
    expect(await plugin("version", "--client")).toBe(`sidecarset ${version}\n`);
    expect(await plugin("--help")).toMatch(/^Usage: kubectl sidecarset COMMAND/);
    const [pod, set] = [join(store, "web.yaml"), join(store, "log-agent.yaml")];
    expect(await plugin("preview", "-f", pod, "-f", set)).toContain("kruise.io/sidecarset-injected-list: log-agent");
    expect(await plugin("install", "--url", "https://example.com")).toContain("kind: CustomResourceDefinition");
  });

  it("the plugin's links lead to existing pages of the site, and it names no file of docs", async () => {
    const files = (await run("tar", ["-tzf", join(OUT, `kubectl-sidecarset-${version}.tar.gz`)])).split("\n");
    const programs = files.filter((name) => name.endsWith(".mjs"));
    const unpack = ["-xzOf", join(OUT, `kubectl-sidecarset-${version}.tar.gz`), ...programs];
    const text = await run("tar", unpack);
    const links = [...text.matchAll(/https:\/\/docs\.example\.com\/sidecarset\/docs\/([a-z-]+)/g)];
    expect(links.length).toBeGreaterThan(10);
    for (const [, page = ""] of links) await readFile(join(ROOT, "docs", `${page}.md`));
    expect(text.match(/(?<!\/)\bdocs\/[a-z-]+\.md/g)).toBeNull();
  });

  it("Krew's own validator accepts the plugin's manifest, and refuses one with another name", async () => {
    const validator = join(ROOT, ".cache/validate-krew-manifest");
    const module = { cwd: join(ROOT, "test/install/krew"), env: { CGO_ENABLED: "0" } };
    await run("go", ["build", "-trimpath", "-o", validator, KREW], module);
    const manifest = join(folder, "sidecarset.yaml");
    const validate = (path: string) => run(validator, ["-manifest", path, "-skip-install"]);
    await writeFile(manifest, await read("sidecarset.krew.yaml"));
    await validate(manifest);
    await writeFile(join(folder, "other.yaml"), await read("sidecarset.krew.yaml"));
    await expect(validate(join(folder, "other.yaml"))).rejects.toThrow(/name/);
  });

  it("the package of a release installs in an empty folder, runs there and needs no other package", async () => {
    const user = join(folder, "user");
    await mkdir(user);
    await writeFile(join(user, "package.json"), "{}");
    const archive = join(OUT, `sidecarset-serverless-${version}.tgz`);
    await run("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", archive], { cwd: user });
    expect(await run("npx", ["--offline", "sidecarset", "version", "--client"], { cwd: user })).toBe(
      `sidecarset ${version}\n`,
    );
    const script = 'import { hash } from "sidecarset-serverless/hash"; console.log(typeof hash);';
    expect(await run(process.execPath, ["--input-type=module", "--eval", script], { cwd: user })).toBe("function\n");
    const manifest = JSON.parse(await run("tar", ["-xzOf", archive, "package/package.json"]));
    expect(manifest).not.toHaveProperty("dependencies");
    expect(manifest).not.toHaveProperty("scripts");
    // npm publishes a proof of origin only if the named repository built the package.
    expect(manifest).toMatchObject({
      repository: { type: "git", url: `git+${REPOSITORY}.git` },
      homepage: SITE,
      bugs: `${REPOSITORY}/issues`,
    });
  });

  it("the embedded cluster's package of a release has its types and the repository's address", async () => {
    const archive = join(OUT, `sidecarset-local-${version}.tgz`);
    expect((await run("tar", ["-tzf", archive])).split("\n")).toContain("package/types/cluster.d.ts");
    expect(JSON.parse(await run("tar", ["-xzOf", archive, "package/package.json"]))).toMatchObject({
      ...{ name: "@sidecarset/local", version },
      repository: { url: `git+${REPOSITORY}.git`, directory: "infra/local" },
    });
  });

  it("the chart is in the form of registries: every blob has its digest, and the layer is the chart", async () => {
    const layout = join(folder, "oci");
    await mkdir(layout);
    await run("tar", ["-xf", join(OUT, `sidecarset-chart-${version}.oci.tar`), "-C", layout]);
    const blob = async ({ digest, size }: { readonly digest: string; readonly size: number }) => {
      const data = await readFile(join(layout, "blobs", digest.replace(":", "/")));
      expect([`sha256:${digestOf(data)}`, data.length]).toEqual([digest, size]);
      return data;
    };
    const { manifests } = JSON.parse(await readFile(join(layout, "index.json"), "utf8"));
    const manifest = JSON.parse(String(await blob(manifests[0])));
    expect(manifest.config.mediaType).toBe("application/vnd.cncf.helm.config.v1+json");
    expect(JSON.parse(String(await blob(manifest.config)))).toMatchObject({
      ...{ apiVersion: "v2", name: "sidecarset", version },
      annotations: {
        "artifacthub.io/license": "Apache-2.0",
        "artifacthub.io/crds": expect.stringContaining("SidecarSet"),
      },
    });
    const content = await blob(manifest.layers[0]);
    expect(content).toEqual(await readFile(join(OUT, `sidecarset-chart-${version}.tgz`)));
    expect(parse(await read("artifacthub-repo.yml"))).toMatchObject({ owners: [] });
  });

  it("the Terraform modules of a release have every file that they read", async () => {
    const modules = join(folder, "modules");
    await mkdir(modules);
    await run("tar", ["-xzf", join(OUT, `sidecarset-terraform-${version}.tgz`), "-C", modules]);
    const settings = join(folder, "terraformrc");
    await writeFile(settings, "");
    const env = { TF_CLI_CONFIG_FILE: settings, CHECKPOINT_DISABLE: "1", TF_IN_AUTOMATION: "1" };
    const at = `-chdir=${join(modules, "terraform/objects")}`;
    await run("terraform", [at, "init", "-input=false"], { env });
    const state = `-state=${join(folder, "modules.tfstate")}`;
    await run("terraform", [at, "apply", "-auto-approve", "-input=false", state, "-var=url=https://example.com"], {
      env,
    });
    const { objects } = JSON.parse(await run("terraform", [at, "output", state, "-json"], { env }));
    expect(JSON.stringify(objects.value)).toContain("sidecarsets.apps.kruise.io");
  });

  it("a statement names the files and their commit, and its signature fails for any other text", async () => {
    const statement = await read("provenance.json");
    const { subject, predicate } = JSON.parse(statement);
    const sums = (await read("SHA256SUMS")).trimEnd().split("\n");
    expect(
      subject.map(({ name, digest }: { name: string; digest: { sha256: string } }) => `${digest.sha256}  ${name}`),
    ).toEqual(sums);
    const head = (await run("git", ["rev-parse", "HEAD"])).trim();
    expect(predicate.buildDefinition.resolvedDependencies).toEqual([{ name: "source", digest: { gitCommit: head } }]);
    const { payload, payloadType, signatures } = JSON.parse(await read("provenance.dsse.json"));
    expect(Buffer.from(payload, "base64").toString()).toBe(statement);
    const isSigned = (text: string) => {
      const signed = `DSSEv1 ${payloadType.length} ${payloadType} ${Buffer.byteLength(text)} ${text}`;
      return verify(null, Buffer.from(signed), publicKey, Buffer.from(signatures[0].sig, "base64"));
    };
    expect([isSigned(statement), isSigned(statement.replace(/[0-9a-f]{64}/, "0".repeat(64)))]).toEqual([true, false]);
  });

  it("a release is refused for another version's tag, and without the repository that publishes it", async () => {
    const build = (...args: readonly string[]) => run(process.execPath, [...BUILD, ...args]);
    await expect(build("--tag", "v9.9.9", "--repository", REPOSITORY)).rejects.toThrow(
      `the tag v9.9.9 is not v${version}, the version in package.json: change one of them`,
    );
    await expect(build("--tag", `v${version}`)).rejects.toThrow(
      "--tag needs --repository https://…: the packages name where they come from",
    );
  });

  it("the workflows build the release, name only existing files, and pin every action by its commit", async () => {
    for (const name of ["ci.yml", "release.yml"]) {
      const text = await readFile(join(ROOT, ".github/workflows", name), "utf8");
      const { jobs } = parse(text);
      const steps = Object.values(jobs as Record<string, { steps: { run?: string; uses?: string }[] }>).flatMap(
        (job) => job.steps,
      );
      const commands = steps.flatMap((step) => step.run ?? []);
      expect(commands.length).toBeGreaterThan(0);
      for (const path of commands.flatMap((one) => one.match(/(?:\.ci|infra)\/[\w./-]+/g) ?? []))
        await readFile(join(ROOT, path));
      const actions = steps.flatMap((step) => step.uses ?? []);
      expect(actions.length).toBeGreaterThan(1);
      for (const action of actions) expect(action).toMatch(/^[\w./-]+@[0-9a-f]{40}$/);
    }
    const release = await readFile(join(ROOT, ".github/workflows/release.yml"), "utf8");
    for (const part of [BUILD[0], "dist/release/sidecarset-serverless-", "dist/release/sidecarset-local-"])
      expect(release).toContain(part);
  });
});
