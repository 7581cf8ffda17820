/** Tests that no trace of a node stays on this machine after its tests are killed. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { until } from "../support/until.ts";
import { leftOf, PREFIX } from "./leftovers.ts";

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));
const PATIENCE_MS = 120_000;

/** Returns the folder of this process' node. */
function folderOf(pid: number | undefined): string | undefined {
  const folders = readdirSync(tmpdir()).filter((name) => name.startsWith(PREFIX));
  return folders
    .map((name) => join(tmpdir(), name))
    .find((folder) => {
      try {
        return readFileSync(join(folder, "owner"), "utf8") === String(pid);
      } catch {
        return false;
      }
    });
}

/** Returns the process and all its descendants. */
function familyOf(pid: number): readonly number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc").filter((one) => /^\d+$/.test(one))) {
    try {
      const [, parent] = /^\d+ \(.*\) . (\d+) /s.exec(readFileSync(join("/proc", name, "stat"), "utf8")) ?? [];
      parents.set(Number(name), Number(parent));
    } catch {
      // The process has ended already.
    }
  }
  const children = (one: number): readonly number[] =>
    [...parents].filter(([, parent]) => parent === one).flatMap(([child]) => [child, ...children(child)]);
  return [pid, ...children(pid)];
}

function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z /s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

it("tests that are killed while pods run leave no trace of their node", { timeout: 2 * PATIENCE_MS }, async () => {
  // The settings of this run are left out.
  const { PATH, HOME, XDG_CACHE_HOME, TMPDIR, KUBEBUILDER_ASSETS } = process.env;
  const given = Object.entries({ PATH, HOME, XDG_CACHE_HOME, TMPDIR, KUBEBUILDER_ASSETS });
  const env = Object.fromEntries(given.filter(([, value]) => value !== undefined));
  const child = spawn(process.execPath, [MAIN, "--node", "registry"], { env, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const containers = () => readdirSync(join(folderOf(child.pid) ?? "", "state/io.containerd.runtime.v2.task/k8s.io"));
  await until(
    "containers run",
    async () => {
      try {
        return containers().length > 2;
      } catch {
        return false;
      }
    },
    PATIENCE_MS,
  );
  const folder = folderOf(child.pid) ?? "";
  const left = leftOf(folder);
  const family = familyOf(child.pid ?? 0);
  // The processes are the registry, containerd, kubelet and shims. Mounts, the control plane and the tests' process
  // count too.
  expect(left.filter((what) => what.startsWith("process")).length).toBeGreaterThan(3);
  expect(left.filter((what) => what.startsWith(folder)).length).toBeGreaterThan(3);
  expect(family.length).toBeGreaterThan(6);
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  await until("nothing of its node is left", async () => leftOf(folder).length === 0, PATIENCE_MS);
  await until("no process of it is left", async () => !family.some(isAlive), PATIENCE_MS);
});
