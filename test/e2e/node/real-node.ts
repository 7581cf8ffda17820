/** A real node of a control plane on this machine: kubelet, containerd, runc, CNI and a registry. */
import { writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { connect } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { basename, delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isKubeError } from "../../../shared/kube/error.ts";
import { PODS, type Resource } from "../../../shared/kube/port.ts";
import { clusterOf } from "../support/clients.ts";
import { ask } from "../support/control-plane.ts";
import { freePorts } from "../support/free-ports.ts";
import { clearNodeAtEnd, type Started, start } from "../support/processes.ts";
import type { Settings } from "../support/settings.ts";
import { isKubeletFrom } from "../support/versions.ts";
import { type Images, serveImages } from "./images.ts";
import { abandonedNodes, clearNode, killContainers, makeCgroups, PREFIX } from "./leftovers.ts";
import { writeMirror, writeNodeSettings } from "./settings.ts";

/** Paths of the node's programs. */
export interface NodePrograms {
  /** the command and its first arguments */
  readonly kubelet: readonly string[];
  /** the folder of containerd, its shim and ctr */
  readonly containerd: string;
  /** path of the server that images with "serves" contain */
  readonly server: string;
}

export interface RealNode {
  readonly images: Images;
  /** Kills the kubelet and starts it again. Resolves when the node is ready. */
  restartKubelet(): Promise<void>;
  restartContainerd(): Promise<void>;
  /** Kills the kubelet and containerd; containers continue. */
  silence(): Promise<void>;
  /** Kills all processes of the node and starts it again. Resolves when it is ready. */
  reboot(): Promise<void>;
  /** @throws if something of the node stays on this machine */
  close(): Promise<void>;
}

export const NODE_NAME = "node-1";
const NODES: Resource = { group: "", version: "v1", plural: "nodes", namespaced: false };
const START_TIMEOUT_MS = 120_000;

/** Returns an address for the node's status, where loopback is not allowed. The kubelet listens on loopback. */
function addressOfMachine(): Readonly<Record<string, string>> {
  const addresses = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  const own = addresses.find(({ internal, family }) => !internal && family === "IPv4");
  return own === undefined ? {} : { "node-ip": own.address };
}

async function until(what: string, process: Started, isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(await isTrue().catch(() => false))) {
    if (performance.now() > deadline || !process.isRunning())
      throw new Error(`${what}: ${process.name} says\n${process.lastWords()}`);
    await sleep(100);
  }
}

class Processes implements RealNode {
  readonly images: Images;
  readonly #settings: Settings;
  readonly #programs: NodePrograms;
  readonly #folder: string;
  readonly #healthz: number;
  readonly #registry: Started;
  #containerd: Started | undefined;
  #kubelet: Started | undefined;

  constructor(parts: {
    settings: Settings;
    programs: NodePrograms;
    folder: string;
    healthz: number;
    registry: Started;
    images: Images;
  }) {
    this.#settings = parts.settings;
    this.#programs = parts.programs;
    this.#folder = parts.folder;
    this.#healthz = parts.healthz;
    this.#registry = parts.registry;
    this.images = parts.images;
  }

  #launch(name: string, command: readonly string[]): Started {
    const path = [this.#programs.containerd, process.env["PATH"]].join(delimiter);
    return start(name, ["env", `PATH=${path}`, ...command], join(this.#folder, `${name}.log`));
  }

  async #startContainerd(): Promise<void> {
    const socket = join(this.#folder, "containerd.sock");
    const containerd = this.#launch("containerd", [
      join(this.#programs.containerd, "containerd"),
      "--config",
      join(this.#folder, "containerd.toml"),
    ]);
    this.#containerd = containerd;
    await until(
      "containerd is not ready",
      containerd,
      () =>
        new Promise((done) => {
          const connection = connect(socket, () => {
            connection.destroy();
            done(true);
          });
          connection.on("error", () => done(false));
        }),
    );
  }

  /** Starts the kubelet again if it ends at once, as an init system does. containerd listens before it can answer. */
  async #startKubelet(attempts = 10): Promise<void> {
    const flags = {
      config: join(this.#folder, "kubelet.yaml"),
      kubeconfig: join(this.#settings.folder, "admin.kubeconfig"),
      "root-dir": join(this.#folder, "kubelet"),
      "cert-dir": join(this.#folder, "kubelet/pki"),
      "hostname-override": NODE_NAME,
      // cAdvisor must know a container's memory use before a limit is lowered. Kubernetes 1.37 asks the CRI.
      ...(isKubeletFrom("1.37")
        ? {}
        : { containerd: join(this.#folder, "containerd.sock"), "containerd-namespace": "k8s.io" }),
      ...addressOfMachine(),
      v: "2",
    };
    const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    const kubelet = this.#launch("kubelet", [...this.#programs.kubelet, ...args]);
    this.#kubelet = kubelet;
    const isHealthy = async () => (await ask(`http://127.0.0.1:${this.#healthz}/healthz`)).code === 200;
    try {
      await until("the kubelet is not healthy", kubelet, isHealthy);
    } catch (error) {
      if (kubelet.isRunning() || attempts === 1) throw error;
      await sleep(500);
      return this.#startKubelet(attempts - 1);
    }
    await until("the node is not ready", kubelet, () => this.#isNodeReady());
  }

  /** Removes the node's taint at once, because no controller does so here. */
  async #isNodeReady(): Promise<boolean> {
    const cluster = clusterOf(this.#settings);
    const node = await cluster.get(NODES, { name: NODE_NAME });
    const { spec, status } = node as {
      spec?: { taints?: unknown };
      status?: { conditions?: { type: string; status: string }[] };
    };
    if (!status?.conditions?.some((one) => one.type === "Ready" && one.status === "True")) return false;
    if (spec?.taints === undefined) return true;
    await cluster.patch(NODES, { name: NODE_NAME }, { type: "merge", body: { spec: { taints: null } } });
    return true;
  }

  async start(): Promise<void> {
    await this.#startContainerd();
    await this.#startKubelet();
  }

  async restartKubelet(): Promise<void> {
    await this.#kubelet?.stop("SIGKILL");
    await this.#startKubelet();
  }

  async restartContainerd(): Promise<void> {
    await this.#containerd?.stop("SIGKILL");
    await this.#startContainerd();
  }

  async silence(): Promise<void> {
    await this.#kubelet?.stop("SIGKILL");
    await this.#containerd?.stop("SIGKILL");
  }

  async reboot(): Promise<void> {
    await this.silence();
    killContainers(this.#folder);
    await this.start();
  }

  async #removePods(): Promise<void> {
    const cluster = clusterOf(this.#settings);
    for (const { metadata: { namespace = "", name = "" } = {} } of (await cluster.list(PODS, {})).items)
      await cluster.delete(PODS, { namespace, name }).catch((error: unknown) => {
        if (!isKubeError(error, 404)) throw error;
      });
  }

  async close(): Promise<void> {
    await this.#removePods().catch(() => undefined);
    for (const one of [this.#kubelet, this.#containerd, this.#registry]) await one?.stop("SIGKILL");
    await this.images.close();
    const left = await clearNode(this.#folder);
    if (left.length > 0) throw new Error(`of the node is left: ${left.join(", ")}`);
  }
}

/** Resolves when pods can be scheduled. */
export async function startRealNode(settings: Settings, programs: NodePrograms): Promise<RealNode> {
  for (const folder of abandonedNodes()) await clearNode(folder);
  const folder = await mkdtemp(join(tmpdir(), PREFIX));
  writeFileSync(join(folder, "owner"), String(process.pid));
  clearNodeAtEnd(folder);
  makeCgroups(basename(folder));
  const [registryPort = 0, kubelet = 0, healthz = 0] = await freePorts(3);
  await writeNodeSettings(folder, { registry: registryPort, kubelet, healthz });
  const command = ["docker-registry", "serve", join(folder, "registry.yaml")];
  const registry = start("docker-registry", command, join(folder, "registry.log"));
  const url = `http://127.0.0.1:${registryPort}`;
  await until("the registry is not ready", registry, async () => (await ask(`${url}/v2/`)).code === 200);
  const images = await serveImages(url, folder, programs.server);
  await writeMirror(folder, images.url);
  const node = new Processes({ settings, programs, folder, healthz, registry, images });
  try {
    await node.start();
    return node;
  } catch (error) {
    await node.close().catch(() => undefined);
    throw error;
  }
}
