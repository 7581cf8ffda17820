/**
 * Builds the image of infra/container/Dockerfile without Docker, with the same files and commands, and runs it as the
 * Dockerfile says.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const DOCKERFILE = readFileSync("infra/container/Dockerfile", "utf8");

export interface Image {
  /** folder on this machine; `image` below it contains the files */
  readonly folder: string;
  /** the entry point's arguments for Node: flags and the file */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** bytes of the image's files, without the base image */
  readonly bytes: number;
  readonly remove: () => void;
}

export function buildImage(): Image {
  const [build, folder] = ["build", "image"].map((name) => mkdtempSync(join(tmpdir(), `sidecarset-${name}-`)));
  if (build === undefined || folder === undefined) throw new Error("no folder");
  const [first = "", last = ""] = DOCKERFILE.split(/^FROM .*$/m).slice(1);
  for (const [, path = ""] of first.matchAll(/^COPY (functions|shared|infra) /gm))
    cpSync(path, join(build, path), { recursive: true, filter: (from) => !from.endsWith("node_modules") });
  cpSync("package.json", join(build, "package.json"));
  symlinkSync(resolve("node_modules"), join(build, "node_modules"));
  const [, command = ""] = /^RUN (node .*)$/m.exec(first) ?? [];
  const built = spawnSync("sh", ["-c", command.replace(/^node/, process.execPath)], { cwd: build, encoding: "utf8" });
  if (built.status !== 0 || built.stderr !== "") throw new Error(`no image: ${built.stderr}`);
  const [, from = ""] = /^COPY --from=build \/app\/(\S+) \.\/$/m.exec(last) ?? [];
  const files = join(folder, "image");
  cpSync(join(build, from), files, { recursive: true });
  rmSync(build, { recursive: true });
  // Any user may read it, as in the image.
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, "node"), ""); // Node is mounted here: the checkout may be below /tmp, or only root may read it
  const [, arguments_ = ""] = /^ENTRYPOINT \["node", (.+)\]$/m.exec(last) ?? [];
  const argv = [...arguments_.matchAll(/"(\S+)"/g)].map(([, argument = ""]) => argument);
  const [, variables = ""] = /^ENV (.+)$/m.exec(last) ?? [];
  const env = Object.fromEntries(variables.split(" ").map((one) => one.split("=") as [string, string]));
  const bytes = readdirSync(files).reduce((sum, name) => sum + statSync(join(files, name)).size, 0);
  return { folder, argv, env, bytes, remove: () => rmSync(folder, { recursive: true }) };
}

const [, USER = ""] = /^USER (\d+):\d+$/m.exec(DOCKERFILE) ?? [];
/** True if this process may mount, so that the image runs in its own root file system. */
export const IS_ISOLATED = process.platform === "linux" && process.getuid?.() === 0;

/** Script that lets the process write only to /tmp. `$1` is mounted at /mnt, and `$2`, which is Node, at /mnt/node. */
const ISOLATE = [
  "mount --make-rprivate /",
  'mount --bind "$1" /mnt',
  'mount --bind "$2" /mnt/node',
  "mount -o remount,bind,ro /mnt",
  "mount -o remount,bind,ro /",
  "mount -t tmpfs tmpfs /tmp",
  "shift 2",
  "cd /mnt/image",
  `exec setpriv --reuid=${USER} --regid=${USER} --clear-groups --no-new-privs /mnt/node "$@"`,
].join(" && ");

/** Returns the path of a file in the image's folder as a process in the image sees it. */
export function inImage({ folder }: Image, file: string): string {
  return join(IS_ISOLATED ? "/mnt" : folder, file);
}

/**
 * Runs a process of the image: as its user in a read-only root file system if possible, otherwise as the test's user.
 */
export function runInImage(
  image: Image,
  argv: readonly string[],
  more: Readonly<Record<string, string>>,
): ChildProcess {
  const env = { ...image.env, ...more };
  return IS_ISOLATED
    ? spawn("unshare", ["--mount", "sh", "-c", ISOLATE, "sh", image.folder, process.execPath, ...argv], { env })
    : spawn(process.execPath, argv, { env, cwd: join(image.folder, "image") });
}
