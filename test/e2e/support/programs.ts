/** Finds the programs of a control plane, or builds them from test/e2e/control-plane. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const NAMES = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] as const;
type ProgramName = (typeof NAMES)[number];

/** Command and first arguments. */
export type Programs = Readonly<Record<ProgramName, readonly string[]>>;

/** Says what to install; for the one who started the tests. */
export class MissingProgram extends Error {
  override readonly name = "MissingProgram";
}

const SOURCES = fileURLToPath(new URL("../control-plane/", import.meta.url));
const MODULES = ["etcd", "kubernetes"] as const;
const SOURCE_FILES = ["main.go", "go.mod", "go.sum"];

function kubernetesVersion(): string {
  const text = readFileSync(join(SOURCES, "kubernetes/go.mod"), "utf8");
  const version = /k8s\.io\/kubernetes (v[0-9.]+)/.exec(text)?.[1];
  if (version === undefined) throw new Error("control-plane/kubernetes/go.mod requires no k8s.io/kubernetes");
  return version;
}

/** Outside the repository; another one for other sources. */
function cacheFolder(environment: NodeJS.ProcessEnv): string {
  const hash = createHash("sha256");
  for (const module of MODULES)
    for (const file of SOURCE_FILES) hash.update(readFileSync(join(SOURCES, module, file))).update("\0");
  const root = environment["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return join(root, "sidecarset-serverless", "control-plane", hash.digest("hex").slice(0, 16));
}

/** Clients parse the version that a plain `go build` leaves empty. */
function linkerFlags(): string {
  const version = kubernetesVersion();
  const [major, minor] = version.slice(1).split(".");
  const values = { gitVersion: version, gitMajor: major, gitMinor: minor };
  const settings = Object.entries(values).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  return ["-s -w", ...settings].join(" ");
}

function inFolder(folder: string, name: ProgramName): readonly string[] | undefined {
  if (existsSync(join(folder, name))) return [join(folder, name)];
  return name !== "etcd" && existsSync(join(folder, "kubernetes")) ? [join(folder, "kubernetes"), name] : undefined;
}

function find(folders: readonly string[]): Partial<Programs> {
  const found = NAMES.map((name) => [name, folders.map((folder) => inFolder(folder, name)).find(Boolean)] as const);
  return Object.fromEntries(found.filter(([, command]) => command !== undefined));
}

async function run(command: string, args: readonly string[], cwd: string): Promise<boolean> {
  const child = spawn(command, args, { cwd, stdio: ["ignore", 2, 2], env: { ...process.env, CGO_ENABLED: "0" } });
  const ended = await Promise.race([once(child, "exit"), once(child, "error")]);
  return ended[0] === 0;
}

async function build(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const module of MODULES) {
    const output = join(folder, module);
    if (existsSync(output)) continue;
    process.stderr.write(`Building ${module} into ${folder}: once, about 7 minutes on 2 cores.\n`);
    const partial = `${output}.${process.pid}`;
    const args = ["build", "-trimpath", "-ldflags", linkerFlags(), "-o", partial, "."];
    if (!(await run("go", args, join(SOURCES, module)))) throw new MissingProgram(`go build of ${module} failed`);
    await rename(partial, output);
  }
}

/** @throws MissingProgram */
export async function findPrograms(environment: NodeJS.ProcessEnv): Promise<Programs> {
  const cache = cacheFolder(environment);
  const assets = environment["KUBEBUILDER_ASSETS"];
  const folders = assets ? [assets, cache] : [cache];
  const missing = () => NAMES.filter((name) => !(name in find(folders)));
  if (missing().length > 0 && (await run("go", ["version"], SOURCES))) await build(cache);
  if (missing().length > 0) {
    const where = assets ? `neither in KUBEBUILDER_ASSETS (${assets}) nor` : "KUBEBUILDER_ASSETS is not set, and none";
    throw new MissingProgram(`${missing().join(", ")}: ${where} in ${cache}; with Go 1.26 they are built there.`);
  }
  return find(folders) as Programs;
}
