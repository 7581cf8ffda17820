/**
 * A user who follows docs/first-steps.md in a shell, with a clone, the cluster's kubeconfig, and the page's commands.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../../shared/api/names.ts";
import { type Cluster, CONFIG_MAPS, PODS, SIDECARSETS } from "../../../shared/kube/port.ts";
import { controlPlane } from "./access.ts";
import { clusterOf, writeKubeconfig } from "./clients.ts";
import { freePorts } from "./free-ports.ts";
import { removeAtEnd, type Started, start } from "./processes.ts";
import { until } from "./until.ts";

const ROOT = resolve(import.meta.dirname, "../../..");

export interface Newcomer {
  readonly cluster: Cluster;
  readonly folder: string;
  /** the blocks of the page's section "Five minutes", each with its commands */
  readonly blocks: readonly (readonly string[])[];
  /** runs a command that must succeed without a warning, and returns its stdout */
  readonly type: (command: string) => Promise<string>;
  readonly typeAll: (block?: readonly string[]) => Promise<readonly string[]>;
  /** Runs the page's block for a second terminal; resolves when the webhooks answer. */
  readonly serve: (block?: readonly string[], featureGates?: string) => Promise<void>;
  readonly pods: () => Promise<readonly Pod[]>;
  /** Deletes all objects that the page created. */
  readonly leave: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/**
 * Makes a clone as after `npm ci`, with the parts that these commands need. The commands change nothing in this
 * repository.
 */
async function makeClone(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "first-steps-"));
  removeAtEnd(folder);
  for (const name of ["functions", "shared", "infra", "node_modules", "package.json"])
    await symlink(join(ROOT, name), join(folder, name));
  return folder;
}

/** Reads the section's blocks, with this machine's address and a free port. */
async function readBlocks(port: number): Promise<readonly (readonly string[])[]> {
  const page = await readFile(join(ROOT, "docs/first-steps.md"), "utf8");
  const [, section = ""] = /^## Five minutes\n([\s\S]*?)^## /m.exec(page) ?? [];
  const told = section.replaceAll("192.0.2.10", "127.0.0.1").replaceAll("9443", String(port));
  return [...told.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block = ""]) => block.trimEnd().split("\n"));
}

/** Relabels other files' pods, which must not count for the page. No controller deletes them any more. */
async function relabelOthers(cluster: Cluster): Promise<void> {
  const others = async () => {
    const { items } = await cluster.list<Pod>(PODS, { labelSelector: "app=web" });
    return items.flatMap(({ metadata: { namespace = "", name = "" } = {} }) =>
      namespace === "default" ? [] : [{ namespace, name }],
    );
  };
  const body = { metadata: { labels: { app: null } } };
  await until("other pods have other labels", async () => {
    for (const key of await others()) await cluster.patch(PODS, key, { type: "merge", body });
    return (await others()).length === 0;
  });
}

/** @param more variables of the shell in addition to KUBECONFIG and HOME */
export async function newcomer(more: NodeJS.ProcessEnv = {}): Promise<Newcomer> {
  const folder = await makeClone();
  const [port = 0] = await freePorts(1);
  const blocks = await readBlocks(port);
  // A user's shell remembers these lines of the first block.
  const remembered = (blocks[0] ?? []).filter((line) => /^(?:export |sidecarset\(\))/.test(line));
  const kubeconfig = await writeKubeconfig(join(folder, "kubeconfig"), controlPlane());
  const environment = { ...process.env, ...more, KUBECONFIG: kubeconfig, HOME: folder };
  const cluster = clusterOf(controlPlane());
  await relabelOthers(cluster);
  let serving: Started | undefined;

  const type = (command: string): Promise<string> => {
    const script = ["set -eo pipefail", ...remembered, command].join("\n");
    return new Promise((done, failed) => {
      execFile("bash", ["-c", script], { cwd: folder, env: environment }, (error, stdout, stderr) =>
        error ? failed(new Error(`${command}\n${stdout}${stderr}`)) : done(stdout),
      );
    });
  };
  const typeAll = async (block: readonly string[] = []): Promise<readonly string[]> => {
    if (block.length === 0) throw new Error("the block has no commands");
    const printed: string[] = [];
    for (const command of block) printed.push(await type(command));
    return printed;
  };
  // Starts the script without npm, because npm ends before its script does.
  const serve = async ([command = ""]: readonly string[] = [], featureGates = ""): Promise<void> => {
    const { scripts } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
    const script = command.replace("npm run serve --", `exec ${scripts.serve}`);
    if (!script.startsWith("exec node ")) throw new Error(`the page serves by something else: ${command}`);
    const shell = ["bash", "-c", `cd ${folder}; export KUBECONFIG=kubeconfig FEATURE_GATES=${featureGates}; ${script}`];
    serving = start("serve", shell, join(folder, "log"));
    const probe = {
      apiVersion: "apps.kruise.io/v1beta1",
      kind: "SidecarSet",
      metadata: { name: "probe" },
      spec: { selector: { matchLabels: { probe: "x" } }, containers: [{ name: "probe", image: "probe:1" }] },
    };
    await until("a SidecarSet can be created", async () => {
      await cluster.create(SIDECARSETS, probe, { dryRun: true });
      return true;
    });
  };
  const pods = async () => (await cluster.list<Pod>(PODS, { namespace: "default" })).items;
  const leave = async () => {
    await type("kubectl delete -f infra/demo/web.yaml --wait=false");
    // Ledgers of other tests lose their finalizers, as docs/operations.md describes.
    for (const { metadata } of (await cluster.list(CONFIG_MAPS, { namespace: KRUISE_NAMESPACE })).items)
      if (metadata?.finalizers && metadata.name !== "sidecarset-ledger-log-agent")
        await type(
          `kubectl -n ${KRUISE_NAMESPACE} patch configmap ${metadata.name} --type=merge -p '{"metadata":{"finalizers":null}}'`,
        );
    await type("sidecarset uninstall --all | kubectl delete --ignore-not-found -f -");
    await until("its pods are gone", async () => (await pods()).length === 0);
  };
  const close = async () => {
    await serving?.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return { cluster, folder, blocks, type, typeAll, serve, pods, leave, close };
}
