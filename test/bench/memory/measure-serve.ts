/**
 * Measures the memory of `serve` at rest after a rollout, started as in the image. Its API server is another process.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { buildImage } from "../../platforms/image.ts";
import type { MadeUpApi } from "../process/made-up-api.ts";
import { startProcess } from "../process/start-process.ts";
import type { ManyPods } from "./many-pods-process.ts";

export interface ServeOptions {
  readonly pods: number;
  /** seconds of watching after all pods are updated */
  readonly restSeconds: number;
}

export interface ServeFigures {
  readonly pods: number;
  /** megabytes of the whole process: the median of one value a second */
  readonly atRest: number;
  /** peak megabytes since the process began */
  readonly peak: number;
}

const ROLLOUT_SECONDS = 180;

/** Works only on Linux; elsewhere it throws. @throws Error if some pods are not updated within three minutes */
export async function measureServe({ pods, restSeconds }: ServeOptions): Promise<ServeFigures> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-serve-"));
  const api = startProcess(new URL("many-pods-process.ts", import.meta.url));
  const image = buildImage();
  try {
    const plan: ManyPods = { pods, maxUnavailable: Math.ceil(pods / 2) };
    const { server, certificateAuthority } = await api.call<MadeUpApi>("start", plan);
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, JSON.stringify(kubeconfigOf(server, certificateAuthority)));
    const secrets = join(folder, "path-secrets");
    await writeFile(secrets, randomBytes(32).toString("base64url"));
    const argv = [...image.argv, "serve", "--no-tls", "--tick=10s", `--path-secrets=${secrets}`];
    const env = { ...image.env, KUBECONFIG: kubeconfig, PORT: "0", LOG_LEVEL: "info" };
    const child = spawn(process.execPath, argv, { env, cwd: join(image.folder, "image") });
    const exited = once(child, "exit");
    try {
      await untilUpdated(child, pods);
      return {
        pods,
        atRest: await atRest(child.pid ?? 0, restSeconds),
        peak: await megabytes(child.pid ?? 0, "VmHWM"),
      };
    } finally {
      child.kill("SIGTERM");
      await exited;
    }
  } finally {
    await api.stop();
    image.remove();
    await rm(folder, { recursive: true, force: true });
  }
}

export function serveTable({ pods, atRest, peak }: ServeFigures): string {
  return `serve with ${pods} pods: ${atRest.toFixed(0)} MB at rest, ${peak.toFixed(0)} MB at most`;
}

async function untilUpdated(child: ChildProcessWithoutNullStreams, pods: number): Promise<void> {
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
  for (let second = 0; updatedIn(log) < pods; second++) {
    if (second === ROLLOUT_SECONDS || child.exitCode !== null)
      throw new Error(`${updatedIn(log)} of ${pods} pods were updated: ${log.slice(-2_000)}`);
    await sleep(1_000);
  }
}

async function atRest(pid: number, seconds: number): Promise<number> {
  const samples: number[] = [];
  for (let second = 0; second < seconds; second++) {
    await sleep(1_000);
    samples.push(await megabytes(pid, "VmRSS"));
  }
  return samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? Number.NaN;
}

function updatedIn(log: string): number {
  return [...log.matchAll(/"upgraded":(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
}

async function megabytes(pid: number, what: "VmRSS" | "VmHWM"): Promise<number> {
  const [, kilobytes] = new RegExp(`${what}:\\s+(\\d+) kB`).exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
  return (Number(kilobytes) * 1024) / 1e6;
}

function kubeconfigOf(server: string, certificateAuthority: string): object {
  const ca = Buffer.from(certificateAuthority).toString("base64");
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "made-up", cluster: { server, "certificate-authority-data": ca } }],
    users: [{ name: "benchmark", user: { token: "benchmark" } }],
    contexts: [{ name: "made-up", context: { cluster: "made-up", user: "benchmark" } }],
    "current-context": "made-up",
  };
}
