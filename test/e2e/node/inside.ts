/** Looks into containers of the real node: with a command that its kubelet runs, or in /proc. */
import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { text } from "node:stream/consumers";
import { installedResource } from "../../../shared/install/manifests.ts";
import { controlPlane } from "../support/access.ts";
import { clusterOf } from "../support/clients.ts";
import { PREFIX } from "./leftovers.ts";
import { NODE_NAME } from "./real-node.ts";

interface Place {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

async function portOfKubelet(): Promise<number> {
  const nodes = installedResource({ apiVersion: "v1", kind: "Node" });
  const { status } = (await clusterOf(controlPlane()).get(nodes, { name: NODE_NAME })) as {
    status?: { daemonEndpoints?: { kubeletEndpoint?: { Port?: number } } };
  };
  return status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
}

/** Returns the command's output with stderr. @throws if the command fails; the error has the output */
export async function runInside({ namespace, pod, container }: Place, command: string): Promise<string> {
  const query = new URLSearchParams({ cmd: command });
  const options = {
    method: "POST",
    headers: { authorization: `Bearer ${controlPlane().token}` },
    // The certificate is self-signed.
    rejectUnauthorized: false,
  };
  const url = `https://127.0.0.1:${await portOfKubelet()}/run/${namespace}/${pod}/${container}?${query}`;
  return new Promise((done, failed) => {
    const asked = request(url, options, async (answer) => {
      const said = await text(answer);
      if (answer.statusCode === 200) done(said);
      else failed(new Error(`${command}: ${answer.statusCode} ${said}`));
    });
    asked.on("error", failed);
    asked.end();
  });
}

export interface FirstProcess {
  /** the container's id without the runtime's name */
  readonly id: string;
  /** reads a file of the container's /proc/1; undefined: the file is missing, or the process has ended */
  read(path: string): Promise<string | undefined>;
}

const textOf = (path: string) => readFile(path, "utf8").catch(() => undefined);
/** Folder of containerd with a container's specification → the container. */
const knownFolders = new Map<string, string>();

async function ownerOf(folder: string): Promise<string | undefined> {
  const known = knownFolders.get(folder);
  if (known !== undefined) return known;
  const specification = await textOf(join(folder, "config.json"));
  if (!specification) return undefined;
  const of = (name: string) => new RegExp(`"io.kubernetes.cri.${name}":\\s*"([^"]*)"`).exec(specification)?.[1];
  const owner = `${of("sandbox-namespace")}/${of("container-name")}`;
  knownFolders.set(folder, owner);
  return owner;
}

/** Returns the containers with these names in a namespace whose processes run, as containerd reports. Needs no exec. */
export async function containersOnNode(namespace: string, names: readonly string[]): Promise<readonly FirstProcess[]> {
  const wanted = new Set(names.map((name) => `${namespace}/${name}`));
  const found: FirstProcess[] = [];
  for (const folder of globSync(join(tmpdir(), `${PREFIX}*`, "state/io.containerd.runtime.v2.task/k8s.io/*"))) {
    if (!wanted.has((await ownerOf(folder)) ?? "")) continue;
    const read = async (path: string) => {
      const pid = await textOf(join(folder, "init.pid"));
      return pid && textOf(join("/proc", pid.trim(), path));
    };
    found.push({ id: basename(folder), read });
  }
  return found;
}
