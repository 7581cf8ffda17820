/**
 * Finds and removes what a node leaves on this machine: processes, mounts, cgroups, and its folder. Works also after
 * the node was killed.
 */

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** The prefix of a node's folder, and of its cgroups. */
export const PREFIX = "sidecarset-node-";
const CGROUPS = "/sys/fs/cgroup";
const ROUNDS = 50;

/** Returns the root folders of cgroups: one for each controller in version 1, one folder in version 2. */
function hierarchies(): readonly string[] {
  if (existsSync(join(CGROUPS, "cgroup.controllers"))) return [CGROUPS];
  return readdirSync(CGROUPS, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [join(CGROUPS, entry.name)] : [],
  );
}

/** Creates the root of the node's cgroups, which the kubelet needs. */
export function makeCgroups(name: string): void {
  for (const hierarchy of hierarchies()) {
    const path = join(hierarchy, name);
    mkdirSync(path, { recursive: true });
    for (const file of ["cpuset.cpus", "cpuset.mems"])
      if (existsSync(join(path, file))) writeFileSync(join(path, file), readFileSync(join(hierarchy, file)));
  }
}

function cgroupsOf(name: string): readonly string[] {
  return hierarchies().flatMap((hierarchy) => (existsSync(join(hierarchy, name)) ? [join(hierarchy, name)] : []));
}

/** Returns the folders below, the deepest first. */
function below(folder: string): readonly string[] {
  const inner = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [...inner.flatMap(({ name }) => below(join(folder, name))), folder];
}

export function removeCgroups(name: string): void {
  for (const path of cgroupsOf(name).flatMap(below)) attempt(() => rmdirSync(path));
}

/** Returns processes whose command names the folder, and processes in its cgroups. */
function processesOf(folder: string): readonly number[] {
  const named = readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return false;
    try {
      return readFileSync(join("/proc", name, "cmdline"), "utf8").includes(`${folder}/`);
    } catch {
      return false;
    }
  });
  return [...new Set([...named.map(Number), ...insideOf(folder)])];
}

/** Kills the processes in the node's cgroups. */
export function killContainers(folder: string): void {
  for (const pid of insideOf(folder)) attempt(() => process.kill(pid, "SIGKILL"));
}

function insideOf(folder: string): readonly number[] {
  const files = cgroupsOf(basename(folder))
    .flatMap(below)
    .flatMap((path) => readFileSync(join(path, "cgroup.procs"), "utf8").split("\n"));
  return files.filter(Boolean).map(Number);
}

function mountsOf(folder: string): readonly string[] {
  const lines = readFileSync("/proc/self/mounts", "utf8").split("\n");
  const points = lines.map((line) => (line.split(" ")[1] ?? "").replaceAll("\\040", " "));
  return points.filter((point) => point.startsWith(`${folder}/`)).reverse();
}

function attempt(act: () => void): void {
  try {
    act();
  } catch {
    // The file is gone, or the next round removes it.
  }
}

/** Removes sockets of killed shims of containerd, which are outside its folder. */
function removeDeadSockets(): void {
  const folder = "/run/containerd/s";
  if (!existsSync(folder)) return;
  const alive = readFileSync("/proc/net/unix", "utf8");
  for (const name of readdirSync(folder)) if (!alive.includes(name)) attempt(() => rmSync(join(folder, name)));
  attempt(() => rmdirSync(folder));
  attempt(() => rmdirSync("/run/containerd"));
}

function clearOnce(folder: string): void {
  for (const pid of processesOf(folder)) attempt(() => process.kill(pid, "SIGKILL"));
  for (const point of mountsOf(folder)) spawnSync("umount", ["-l", point]);
  removeCgroups(basename(folder));
  if (mountsOf(folder).length === 0) attempt(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
}

/** Returns what the node of this folder left behind. */
export function leftOf(folder: string): readonly string[] {
  const processes = processesOf(folder).map((pid) => `process ${pid}`);
  return [...processes, ...mountsOf(folder), ...cgroupsOf(basename(folder)), ...(existsSync(folder) ? [folder] : [])];
}

/** Removes for a few seconds what this folder's node left behind, and returns the rest. */
export async function clearNode(folder: string): Promise<readonly string[]> {
  for (let round = 0; round < ROUNDS && leftOf(folder).length > 0; round += 1) {
    clearOnce(folder);
    await sleep(100);
  }
  removeDeadSockets();
  return leftOf(folder);
}

/** Returns folders of nodes whose tests have ended, for example after a power cut. */
export function abandonedNodes(): readonly string[] {
  const folders = readdirSync(tmpdir()).filter((name) => name.startsWith(PREFIX));
  return folders.map((name) => join(tmpdir(), name)).filter((folder) => !isOwned(folder));
}

function isOwned(folder: string): boolean {
  try {
    process.kill(Number(readFileSync(join(folder, "owner"), "utf8")), 0);
    return true;
  } catch {
    return false;
  }
}
