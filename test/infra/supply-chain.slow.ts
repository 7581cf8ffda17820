/** Tests the packages that are shipped, their sources, and that builds are reproducible. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundle, FUNCTIONS } from "../../infra/build.ts";

const run = promisify(execFile);

interface Lock {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly version?: string;
        readonly license?: string;
        readonly integrity?: string;
        readonly resolved?: string;
        readonly link?: boolean;
      }
    >
  >;
}
/** Returns the installed packages without the packages of this repository. */
const installedOf = (packages: Lock["packages"]) =>
  Object.entries(packages).filter(([path, { link }]) => path.includes("node_modules/") && !link);
const readJson = async (path: string): Promise<unknown> => JSON.parse(await readFile(path, "utf8"));

test("package.json has at most 8 dependencies besides 4 of OpenTelemetry, each at an exact version", async () => {
  const { dependencies } = (await readJson("package.json")) as { dependencies: Record<string, string> };
  const [ofTraces, others] = [true, false].map((is) =>
    Object.keys(dependencies).filter((name) => name.startsWith("@opentelemetry/") === is),
  );
  expect(others?.length).toBeGreaterThan(0);
  expect(others?.length).toBeLessThanOrEqual(8);
  // These four packages install six more of the same project, with its licence. Only users of traces load them.
  const { packages } = (await readJson("package-lock.json")) as Lock;
  const brought = Object.entries(packages).filter(([path]) => path.startsWith("node_modules/@opentelemetry/"));
  expect([ofTraces?.length, brought.length]).toEqual([4, 10]);
  for (const [path, { license }] of brought) expect([path, license]).toEqual([path, "Apache-2.0"]);
  for (const version of Object.values(dependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
});

test.each(["package-lock.json", "test/lambda/package-lock.json", "infra/site/package-lock.json"])(
  "%s pins every package by its checksum",
  async (path) => {
    const { packages } = (await readJson(path)) as Lock;
    const installed = installedOf(packages);
    expect(installed.length).toBeGreaterThan(50);
    const unpinned = installed.filter(
      ([, { integrity = "", resolved }]) => !integrity.startsWith("sha512-") || resolved !== undefined,
    );
    expect(unpinned.map(([name]) => name)).toEqual([]);
  },
);

test("package-lock.json pins Node for at least three platforms at one version, and that Node runs the tests", async () => {
  const { packages } = (await readJson("package-lock.json")) as Lock;
  const nodes = installedOf(packages).filter(([path]) => /^node_modules\/node-(linux|win|darwin)-\w+$/.test(path));
  expect(nodes.length).toBeGreaterThanOrEqual(3);
  const versions = [...new Set(nodes.map(([, { version }]) => version))];
  expect(versions).toHaveLength(1);
  if (process.execPath.includes("node_modules")) expect(`v${versions[0]}`).toBe(process.version);
});

test("npm run sbom prints the shipped packages in CycloneDX without development packages", async () => {
  const { stdout } = await run("npm", ["run", "--silent", "sbom"], { maxBuffer: 64 * 1024 * 1024 });
  const { bomFormat, components } = JSON.parse(stdout) as { bomFormat: string; components: { name: string }[] };
  expect(bomFormat).toBe("CycloneDX");
  const names = components.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(["@kubernetes/client-node", "re2js", "hono", "@modelcontextprotocol/sdk"]),
  );
  expect(names).not.toContain("vitest");
});

describe("two builds:", () => {
  const folders: string[] = [];
  beforeAll(async () => {
    for (let build = 0; build < 2; build++) folders.push(await mkdtemp(join(tmpdir(), "sidecarset-build-")));
  });
  afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

  test.each(FUNCTIONS)("two builds of %s have the same bytes", async (name) => {
    const hashes: Record<string, string>[] = [];
    for (const folder of folders) {
      await bundle(name, join(folder, name));
      const files = (await readdir(join(folder, name))).toSorted();
      const entries = files.map(async (file) => {
        const content = await readFile(join(folder, name, file));
        return [file, createHash("sha256").update(content).digest("hex")] as const;
      });
      hashes.push(Object.fromEntries(await Promise.all(entries)));
    }
    expect(Object.keys(hashes[0] ?? {})).toContain("index.js");
    expect(hashes[1]).toEqual(hashes[0]);
  });
});
