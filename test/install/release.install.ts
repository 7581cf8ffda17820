/** A release in a trial: everything is built, named alike, with its checksum, and what was packed runs. */
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { ROOT, run } from "./run.ts";

const OUT = join(ROOT, "dist/release");
const BUILD = ["infra/release/build-release.ts"];

describe("a release", { timeout: 300_000 }, () => {
  let folder: string;
  let version: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "sidecarset-release-"));
    ({ version } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")));
    await run(process.execPath, [...BUILD, "--tag", `v${version}`, "--url", "https://example.com/v"]);
  }, 300_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it("is a package, a plugin, a chart, the definition, the roles and a bill of materials", async () => {
    expect((await readdir(OUT)).toSorted()).toEqual(
      [
        "SHA256SUMS",
        `kubectl-sidecarset-${version}.tar.gz`,
        "sbom.cdx.json",
        `sidecarset-chart-${version}.tgz`,
        `sidecarset-rbac-${version}.tgz`,
        `sidecarset-serverless-${version}.tgz`,
        "sidecarset.krew.yaml",
        "sidecarsets-crd.yaml",
      ].toSorted(),
    );
  });

  it("has the checksum of every file, and the plugin's manifest that of its archive", async () => {
    const sums = (await readFile(join(OUT, "SHA256SUMS"), "utf8")).trimEnd().split("\n");
    expect(sums).toHaveLength(7);
    for (const line of sums) {
      const [sum, name = ""] = line.split("  ");
      expect(
        createHash("sha256")
          .update(await readFile(join(OUT, name)))
          .digest("hex"),
        name,
      ).toBe(sum);
    }
    const { spec } = parse(await readFile(join(OUT, "sidecarset.krew.yaml"), "utf8"));
    const [{ uri, sha256 }] = spec.platforms;
    expect(uri).toBe(`https://example.com/v/kubectl-sidecarset-${version}.tar.gz`);
    expect(sums).toContain(`${sha256}  kubectl-sidecarset-${version}.tar.gz`);
  });

  it("has a plugin that runs where it is unpacked, and a package that asks for no other", async () => {
    await run("tar", ["-xzf", join(OUT, `kubectl-sidecarset-${version}.tar.gz`), "-C", folder]);
    expect(await run(process.execPath, [join(folder, "sidecarset.mjs"), "version", "--client"])).toBe(
      `sidecarset ${version}\n`,
    );
    const manifest = JSON.parse(
      await run("tar", ["-xzOf", join(OUT, `sidecarset-serverless-${version}.tgz`), "package/package.json"]),
    );
    expect(manifest).not.toHaveProperty("dependencies");
    expect(manifest).not.toHaveProperty("scripts");
  });

  it("is refused for a tag that says something else", async () => {
    await expect(run(process.execPath, [...BUILD, "--tag", "v9.9.9"])).rejects.toThrow(
      `the tag v9.9.9 is not v${version}, the version in package.json: change one of them`,
    );
  });

  it("is what the workflows build, which name no file that is not there", async () => {
    for (const name of ["ci.yml", "release.yml"]) {
      const text = await readFile(join(ROOT, ".github/workflows", name), "utf8");
      const { jobs } = parse(text);
      const steps = Object.values(jobs as Record<string, { steps: { run?: string }[] }>).flatMap((job) => job.steps);
      const commands = steps.flatMap((step) => step.run ?? []);
      expect(commands.length).toBeGreaterThan(0);
      for (const path of commands.flatMap((one) => one.match(/(?:\.ci|infra)\/[\w./-]+/g) ?? []))
        await readFile(join(ROOT, path));
    }
    expect(await readFile(join(ROOT, ".github/workflows/release.yml"), "utf8")).toContain(BUILD[0]);
  });
});
