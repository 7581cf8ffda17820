import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findPrograms, MissingProgram } from "../e2e/support/programs.ts";
import { allVersions, filesNotOn, filesOn, MAIN_VERSION, versionTable } from "../e2e/support/versions.ts";

const MAIN = fileURLToPath(new URL("../e2e/main.ts", import.meta.url));
const PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] as const;

let folder: string;
let environment: NodeJS.ProcessEnv;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-programs-"));
  await mkdir(join(folder, "bin"));
  // This PATH has no Go.
  environment = { PATH: join(folder, "bin"), XDG_CACHE_HOME: join(folder, "cache"), HOME: folder };
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function makeAssets(names: readonly string[]): Promise<string> {
  const assets = join(folder, "assets");
  await mkdir(assets);
  for (const name of names) await writeFile(join(assets, name), "");
  return assets;
}

/** Installs a fake `go` that records its folder and creates the requested file. */
async function installGo(exitCode = 0): Promise<void> {
  const script = `#!/bin/sh
[ "$1" = version ] && exit 0
echo "$PWD" >> "${folder}/built"
while [ "$1" != "-o" ]; do shift; done
: > "$2"
exit ${exitCode}
`;
  await writeFile(join(folder, "bin/go"), script);
  await chmod(join(folder, "bin/go"), 0o755);
}

async function built(): Promise<readonly string[]> {
  const text = await readFile(join(folder, "built"), "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => line.split("/").at(-1) || []);
}

it("findPrograms uses the programs in KUBEBUILDER_ASSETS and builds nothing", async () => {
  await installGo();
  const assets = await makeAssets(PROGRAMS);
  const programs = await findPrograms({ ...environment, KUBEBUILDER_ASSETS: assets });
  expect(programs).toEqual(Object.fromEntries(PROGRAMS.map((name) => [name, [join(assets, name)]])));
  expect(await built()).toEqual([]);
});

it("findPrograms builds missing programs once and then takes them from the cache", async () => {
  await installGo();
  const programs = await findPrograms(environment);
  expect(await built()).toEqual(["etcd", "kubernetes"]);
  expect(programs.etcd[0]).toMatch(`${folder}/cache/sidecarset-serverless/control-plane/`);
  expect(programs["kube-scheduler"]).toEqual([expect.stringMatching(/\/kubernetes$/), "kube-scheduler"]);
  await rm(join(folder, "bin/go"));
  expect(await findPrograms(environment)).toEqual(programs);
  expect(await built()).toHaveLength(2);
});

it("findPrograms builds only the programs that KUBEBUILDER_ASSETS lacks", async () => {
  await installGo();
  const assets = await makeAssets(["etcd", "kube-apiserver"]);
  const programs = await findPrograms({ ...environment, KUBEBUILDER_ASSETS: assets });
  expect(await built()).toEqual(["kubernetes"]);
  expect(programs["kube-apiserver"]).toEqual([join(assets, "kube-apiserver")]);
  expect(programs["kube-scheduler"]).toEqual([expect.stringMatching(/\/kubernetes$/), "kube-scheduler"]);
});

it("findPrograms builds the wanted version of Kubernetes with the same etcd, and uses no program of KUBEBUILDER_ASSETS", async () => {
  await installGo();
  const usual = await findPrograms(environment);
  const assets = await makeAssets(PROGRAMS);
  const others = allVersions().filter((version) => version !== MAIN_VERSION);
  for (const version of others) {
    const programs = await findPrograms({ ...environment, KUBEBUILDER_ASSETS: assets, E2E_KUBERNETES: version });
    expect(programs.etcd).toEqual(usual.etcd);
    expect(programs["kube-apiserver"]).not.toEqual(usual["kube-apiserver"]);
  }
  expect(await built()).toEqual(["etcd", "kubernetes", ...others.map(() => "kubernetes")]);
  expect(others).toEqual(["1.31", "1.32", "1.33", "1.34", "1.35", "1.36"]);
});

it("findPrograms builds again after a failed build", async () => {
  await installGo(1);
  await expect(findPrograms(environment)).rejects.toThrow(/^go build in .*etcd failed/);
  await expect(findPrograms(environment)).rejects.toThrow(MissingProgram);
  expect(await built()).toEqual(["etcd", "etcd"]);
});

it("the command prints the missing programs in one sentence and exits with 2 when there is no Go", async () => {
  const assets = await makeAssets(["etcd"]);
  const env = { ...environment, KUBEBUILDER_ASSETS: assets };
  const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
    execFile(process.execPath, [MAIN], { env }, (error, _stdout, text) => resolve({ code: error?.code, stderr: text }));
  });
  expect(code).toBe(2);
  expect(stderr.split("\n").filter(Boolean)).toEqual([
    expect.stringMatching(
      /^There is no kube-apiserver, no kube-controller-manager, no kube-scheduler: not in KUBEBUILDER_ASSETS=\S+, nothing was built in \S+ before, and there is no Go to build it: install Go 1\.26 or newer\.$/,
    ),
  ]);
});

it("each test runs on the versions of Kubernetes that have its feature, and all tests run on the newest version", () => {
  const names = (files: readonly string[]) => files.map((file) => /([^/]+)\.e2e\.ts$/.exec(file)?.[1]);
  expect(names(filesNotOn("1.31"))).toEqual(["resize", "compile", "static-manifests"]);
  expect(names(filesNotOn("1.35"))).toEqual(["compile", "static-manifests"]);
  expect(filesNotOn()).toEqual([]);
  expect(filesNotOn(allVersions().at(-1))).toEqual([]);
  for (const version of allVersions()) {
    expect(filesOn(version).filter((file) => filesNotOn(version).includes(file))).toEqual([]);
    for (const file of filesOn(version)) expect(existsSync(file), file).toBe(true);
  }
});

it("the table of versions says which tests passed, failed, do not apply there, or were not run", () => {
  const table = versionTable({ "1.31.14": { injection: [35, 0], rollout: [4, 2] } }, ["1.31.14"]);
  expect(table.slice(0, 2)).toEqual(["| tests that passed | 1.31.14 |", "|---|---|"]);
  expect(table).toEqual(
    expect.arrayContaining([
      "| injection | 35 |",
      "| rollouts | 2 of 6 failed |",
      "| resources in place (`pods/resize`) | not served |",
      "| evictions | not run |",
    ]),
  );
});
