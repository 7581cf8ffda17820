/** Finds the programs of a control plane and of a node, or builds them from test/e2e/control-plane and test/e2e/node. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { KUBELET_VARIABLE, moduleFileOf, VERSION_VARIABLE, versionIn } from "./versions.ts";

const CONTROL_PLANE = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] as const;
type ProgramName = (typeof CONTROL_PLANE)[number] | "kubelet";

/** A program's command and its first arguments. */
export type Programs<Name extends ProgramName = (typeof CONTROL_PLANE)[number]> = Readonly<
  Record<Name, readonly string[]>
>;

/** Names the program to install. For the person who started the tests. */
export class MissingProgram extends Error {
  override readonly name = "MissingProgram";
}

const SOURCES = fileURLToPath(new URL("../control-plane/", import.meta.url));
const NODE = fileURLToPath(new URL("../node/", import.meta.url));
type Module = "etcd" | "kubernetes";

/** Returns the path of the module's go.mod below SOURCES; go.sum is beside it. */
function moduleFile(module: Module, environment: NodeJS.ProcessEnv): string {
  return `${module}/${module === "etcd" ? "go.mod" : moduleFileOf(environment[VERSION_VARIABLE])}`;
}

/** Returns a folder outside the repository; other sources have another folder. */
function cacheFolder(environment: NodeJS.ProcessEnv, name: string, sources: readonly string[]): string {
  const hash = createHash("sha256");
  for (const source of sources) hash.update(readFileSync(source)).update("\0");
  const root = environment["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return join(root, "sidecarset-serverless", name, hash.digest("hex").slice(0, 16));
}

function moduleFolder(module: Module, environment: NodeJS.ProcessEnv): string {
  const file = join(SOURCES, moduleFile(module, environment));
  return cacheFolder(environment, "control-plane", [
    join(SOURCES, module, "main.go"),
    file,
    file.replace(/mod$/, "sum"),
  ]);
}

/** Returns flags that set the version, because clients parse it and a plain `go build` leaves it empty. */
function linkerFlags(environment: NodeJS.ProcessEnv): string {
  const version = versionIn(moduleFileOf(environment[VERSION_VARIABLE]));
  const [major, minor] = version.split(".");
  const values = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor };
  const settings = Object.entries(values).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  return ["-s -w", ...settings].join(" ");
}

function inFolder(folder: string, name: ProgramName): readonly string[] | undefined {
  if (existsSync(join(folder, name))) return [join(folder, name)];
  return name !== "etcd" && existsSync(join(folder, "kubernetes")) ? [join(folder, "kubernetes"), name] : undefined;
}

function moduleOf(name: ProgramName): Module {
  return name === "etcd" ? "etcd" : "kubernetes";
}

function find(folders: readonly string[], names: readonly ProgramName[]): Partial<Programs<ProgramName>> {
  const found = names.map((name) => [name, folders.map((folder) => inFolder(folder, name)).find(Boolean)] as const);
  return Object.fromEntries(found.filter(([, command]) => command !== undefined));
}

interface Run {
  readonly environment: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

/** Returns false also if there is no `go`. The command's output goes to stderr. */
async function succeeds(args: readonly string[], { environment, cwd }: Run): Promise<boolean> {
  const env = { ...environment, CGO_ENABLED: "0" };
  const child = spawn("go", args, { cwd, stdio: ["ignore", cwd === undefined ? "ignore" : 2, 2], env });
  return once(child, "exit").then(
    ([code]) => code === 0,
    () => false,
  );
}

async function build(module: Module, environment: NodeJS.ProcessEnv): Promise<void> {
  const folder = moduleFolder(module, environment);
  const output = join(folder, module);
  const cwd = join(SOURCES, module);
  await mkdir(folder, { recursive: true });
  process.stderr.write(`Building ${module} into ${folder}: once, up to 15 minutes on 2 cores.\n`);
  const partial = `${output}.${process.pid}`;
  const from = `-modfile=${join(SOURCES, moduleFile(module, environment))}`;
  const args = ["build", from, "-trimpath", "-ldflags", linkerFlags(environment), "-o", partial, "."];
  if (!(await succeeds(args, { environment, cwd })))
    throw new MissingProgram(`go build in ${cwd} failed; what Go says about it stands above.`);
  await rename(partial, output);
}

/**
 * Searches KUBEBUILDER_ASSETS (unless a version is wanted), then the built programs. Builds missing programs if there
 * is Go. @throws MissingProgram
 */
async function findAll<Name extends ProgramName>(
  environment: NodeJS.ProcessEnv,
  names: readonly Name[],
): Promise<Programs<Name>> {
  const foldersOf = (some: readonly ProgramName[]) =>
    [...new Set(some.map(moduleOf))].map((module) => moduleFolder(module, environment));
  const caches = foldersOf(names);
  // KUBEBUILDER_ASSETS names no version, so a test that demands one does not use it.
  const assets = environment[VERSION_VARIABLE] === undefined ? environment["KUBEBUILDER_ASSETS"] : undefined;
  const folders = assets ? [assets, ...caches] : caches;
  const missing = () => names.filter((name) => !(name in find(folders, names)));
  if (missing().length > 0 && (await succeeds(["version"], { environment })))
    for (const module of new Set(missing().map(moduleOf))) await build(module, environment);
  if (missing().length === 0) return find(folders, names) as Programs<Name>;
  const inAssets = assets ? `not in KUBEBUILDER_ASSETS=${assets}` : "KUBEBUILDER_ASSETS is not set";
  throw new MissingProgram(
    `There is no ${missing().join(", no ")}: ${inAssets}, nothing was built in ${foldersOf(missing()).join(" or ")} before, and there is no Go to build it: install Go 1.26 or newer.`,
  );
}

/** @throws MissingProgram */
export function findPrograms(environment: NodeJS.ProcessEnv): Promise<Programs> {
  return findAll(environment, CONTROL_PLANE);
}

/**
 * Returns the command and its first arguments. The version is the control plane's unless another is wanted. @throws
 * MissingProgram
 */
export async function findKubelet(environment: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const version = environment[KUBELET_VARIABLE] ?? environment[VERSION_VARIABLE];
  return (await findAll({ ...environment, [VERSION_VARIABLE]: version }, ["kubelet"])).kubelet;
}

/** Builds a folder of test/e2e/node with Go, once. @throws MissingProgram */
async function buildOnNode(environment: NodeJS.ProcessEnv, name: string, ...args: readonly string[]): Promise<string> {
  const cwd = join(NODE, name);
  const files = readdirSync(cwd).map((file) => join(cwd, file));
  const folder = cacheFolder(environment, name, files);
  if (existsSync(folder)) return folder;
  process.stderr.write(`Building ${name} into ${folder}: once, up to 4 minutes on 2 cores.\n`);
  const partial = `${folder}.${process.pid}`;
  await mkdir(partial, { recursive: true });
  const all = ["build", "-trimpath", "-ldflags", "-s -w", "-o", `${partial}/`, ...args];
  if (!(await succeeds(all, { environment, cwd })))
    throw new MissingProgram(`go build in ${cwd} failed, or there is no Go: install Go 1.26 or newer.`);
  await rename(partial, folder);
  return folder;
}

/** Returns the folder of containerd, its shim and ctr. @throws MissingProgram */
export function findContainerd(environment: NodeJS.ProcessEnv): Promise<string> {
  return buildOnNode(environment, "containerd", "tool");
}

/** Returns the program for images that serve. @throws MissingProgram */
export async function findServer(environment: NodeJS.ProcessEnv): Promise<string> {
  return join(await buildOnNode(environment, "server", "."), "server");
}
