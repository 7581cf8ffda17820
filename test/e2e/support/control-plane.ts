/** A real control plane on 127.0.0.1: etcd, kube-apiserver, kube-controller-manager, kube-scheduler. */
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { sendRaw } from "../../contract/raw.ts";
import { freePorts } from "./free-ports.ts";
import { removeAtEnd, type Started, start } from "./processes.ts";
import type { Programs } from "./programs.ts";
import {
  apiServerArguments,
  controllerManagerArguments,
  etcdArguments,
  type Ports,
  type Settings,
  schedulerArguments,
  writeSettings,
} from "./settings.ts";
import type { Credential } from "./webhook-credentials.ts";

export interface ControlPlane {
  readonly settings: Settings;
  /** Kills the API server and starts it again with an empty memory. It then shows webhooks this credential. */
  restartApiServer(credential?: Credential): Promise<void>;
  /** Kills etcd and starts it again with its data. */
  restartEtcd(): Promise<void>;
  /** Ends the processes that create pods and bind them to nodes. A test that creates its own pods needs neither. */
  stopControllers(): Promise<void>;
  /** Ends every process and removes every file. */
  close(): Promise<void>;
}

const START_TIMEOUT_MS = 120_000;
const POLL_MS = 100;

async function untilReady(process: Started, isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(await isTrue().catch(() => false))) {
    const isLate = performance.now() > deadline;
    if (isLate || !process.isRunning())
      throw new Error(`${process.name} ${isLate ? "is not ready" : "has ended"}:\n${process.lastWords()}`);
    await sleep(POLL_MS);
  }
}

/** Sends a plain HTTP request, and returns the status code and the body. */
export function ask(url: string, method = "GET", body?: string): Promise<{ code: number; text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method }, async (incoming) => {
      resolve({ code: incoming.statusCode ?? 0, text: await text(incoming) });
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

class Processes implements ControlPlane {
  readonly settings: Settings;
  readonly #programs: Programs;
  readonly #ports: Ports;
  readonly #running = new Map<keyof Programs, Started>();

  constructor(programs: Programs, settings: Settings, ports: Ports) {
    this.#programs = programs;
    this.settings = settings;
    this.#ports = ports;
  }

  #launch(name: keyof Programs, args: readonly string[]): Started {
    const process = start(name, [...this.#programs[name], ...args], join(this.settings.folder, `${name}.log`));
    this.#running.set(name, process);
    return process;
  }

  async #startApiServer(credential: Credential = "certificate"): Promise<void> {
    const process = this.#launch("kube-apiserver", apiServerArguments(this.settings, this.#ports, credential));
    await untilReady(process, async () => (await sendRaw(this.settings, { path: "/readyz" })).code === 200);
  }

  async #startEtcd(): Promise<void> {
    const { settings } = this;
    const etcd = this.#launch("etcd", etcdArguments(settings, this.#ports));
    await untilReady(etcd, async () => (await ask(`${settings.etcdUrl}/health`)).code === 200);
  }

  async start(haveHeartbeats: boolean): Promise<void> {
    const { settings } = this;
    await this.#startEtcd();
    await this.#startApiServer();
    this.#launch("kube-scheduler", schedulerArguments(settings));
    const manager = this.#launch("kube-controller-manager", controllerManagerArguments(settings, haveHeartbeats));
    const account = "/api/v1/namespaces/default/serviceaccounts/default";
    await untilReady(manager, async () => (await sendRaw(settings, { path: account })).code === 200);
  }

  async restartApiServer(credential?: Credential): Promise<void> {
    await this.#running.get("kube-apiserver")?.stop("SIGKILL");
    await this.#startApiServer(credential);
  }

  async restartEtcd(): Promise<void> {
    await this.#running.get("etcd")?.stop("SIGKILL");
    await this.#startEtcd();
  }

  async stopControllers(): Promise<void> {
    await this.#running.get("kube-scheduler")?.stop("SIGKILL");
    await this.#running.get("kube-controller-manager")?.stop("SIGKILL");
  }

  async close(): Promise<void> {
    // The data is not needed again.
    for (const process of this.#running.values()) await process.stop("SIGKILL");
    await rm(this.settings.folder, { recursive: true, force: true });
  }
}

/** Starts a control plane, and resolves when a pod can be created. `haveHeartbeats`: silent nodes are lost. */
export async function startControlPlane(programs: Programs, haveHeartbeats = false): Promise<ControlPlane> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-e2e-"));
  removeAtEnd(folder);
  const [etcd = 0, etcdPeer = 0, apiServer = 0] = await freePorts(3);
  const ports = { etcd, etcdPeer, apiServer };
  const processes = new Processes(programs, await writeSettings(folder, ports), ports);
  try {
    await processes.start(haveHeartbeats);
    return processes;
  } catch (error) {
    await processes.close();
    throw error;
  }
}
