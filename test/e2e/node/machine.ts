/** Checks that this machine can be a node, and finds the programs in Debian's packages and Go's builds. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { findContainerd, findKubelet, findServer } from "../support/programs.ts";
import { makeCgroups, removeCgroups } from "./leftovers.ts";
import type { NodePrograms } from "./real-node.ts";

/** Package → the programs that it contains. */
const PACKAGES = {
  runc: "/usr/sbin/runc",
  "containernetworking-plugins": "/usr/lib/cni/ptp",
  "busybox-static": "/bin/busybox",
  iptables: "/usr/sbin/iptables",
  conntrack: "/usr/sbin/conntrack",
  "docker-registry": "/usr/bin/docker-registry",
} as const;

/** Says in one line why this machine cannot be a node, for the person who started the tests. */
export class NoNode extends Error {
  override readonly name = "NoNode";
}

const missing = () => Object.entries(PACKAGES).flatMap(([name, file]) => (existsSync(file) ? [] : [name]));

function install(): void {
  const names = missing();
  if (names.length === 0) return;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const run = (...args: string[]) => spawnSync("apt-get", args, { env, stdio: ["ignore", "ignore", 2] });
  run("update", "-qq");
  run("install", "-y", "-qq", "--no-install-recommends", ...names);
  if (missing().length > 0)
    throw new NoNode(`There is no ${missing().join(", no ")}: apt-get install ${names.join(" ")}`);
}

/** Checks that the kernel allows a container, its file system, and its cgroups. */
function probe(): void {
  const folder = mkdtempSync(join(tmpdir(), "sidecarset-probe-"));
  const name = basename(folder);
  try {
    makeCgroups(name);
    for (const layer of ["lower", "upper", "work", "merged"]) mkdirSync(join(folder, layer));
    const layers = ["lower", "upper", "work"].map((layer) => `${layer}dir=${join(folder, layer)}`).join(",");
    const mount = `mount -t overlay overlay -o ${layers} ${join(folder, "merged")}`;
    const container = ["--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "sh", "-c", mount];
    const { status, stderr } = spawnSync("unshare", container, { encoding: "utf8" });
    if (status !== 0) throw new Error(stderr.trim());
  } catch (error) {
    throw new NoNode(`A node takes namespaces, overlay mounts and cgroups: ${(error as Error).message}`);
  } finally {
    removeCgroups(name);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @throws NoNode, MissingProgram */
export async function prepareMachine(environment: NodeJS.ProcessEnv): Promise<NodePrograms> {
  if (process.platform !== "linux") throw new NoNode("A node takes Linux.");
  if (process.getuid?.() !== 0) throw new NoNode("A node takes root: it makes network namespaces, mounts and cgroups.");
  probe();
  install();
  const [kubelet, containerd] = [await findKubelet(environment), await findContainerd(environment)];
  return { kubelet, containerd, server: await findServer(environment) };
}
