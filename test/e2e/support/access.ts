/** Gives tests the API server of their worker: a control plane that no other worker uses. */
import { inject } from "vitest";
import type { RawTarget } from "../../contract/raw.ts";
import type { NodePrograms } from "../node/real-node.ts";
import { ask } from "./control-plane.ts";
import type { GivenCluster } from "./given-cluster.ts";
import type { Settings } from "./settings.ts";
import type { Credential } from "./webhook-credentials.ts";

export interface OwnControlPlane extends Settings {
  /** the address that restarts processes; see Restarts */
  readonly restartUrl: string;
}

declare module "vitest" {
  interface ProvidedContext {
    /** a control plane for each worker */
    readonly controlPlanes: readonly OwnControlPlane[];
    /** the cluster of --kubeconfig */
    readonly givenCluster: GivenCluster | undefined;
    /** programs of the real node for --node */
    readonly nodePrograms: NodePrograms | undefined;
  }
}

/** The control plane that was started for this worker. */
export function controlPlane(): OwnControlPlane {
  const planes = inject("controlPlanes");
  const plane = planes[Number(process.env["VITEST_POOL_ID"]) - 1];
  if (plane === undefined)
    throw new Error(`worker ${process.env["VITEST_POOL_ID"]} has none of ${planes.length} planes`);
  return plane;
}

/** Returns the API server for tests that need nothing else; with --kubeconfig too. */
export function apiServer(): RawTarget {
  return inject("givenCluster") ?? controlPlane();
}

export function isGiven(): boolean {
  return inject("givenCluster") !== undefined;
}

/** False if the cluster has no nodes for pods. */
export function runsPods(): boolean {
  return inject("givenCluster")?.isWithoutNodes ?? true;
}

/** True if pods run on a real node, under a kubelet and containerd. */
export function isOnNode(): boolean {
  return inject("nodePrograms") !== undefined;
}

/** The host under which the API server reaches webhooks on this machine. */
export function webhookHost(): string {
  return inject("givenCluster")?.webhookHost ?? "127.0.0.1";
}

async function restart(what: string): Promise<string> {
  const { code, text } = await ask(`${controlPlane().restartUrl}/${what}`, "POST");
  if (code !== 200) throw new Error(text);
  return text;
}

/** Kills the API server. Resolves when it is ready again. From then on it shows webhooks this credential. */
export async function restartApiServer(credential: Credential = "certificate"): Promise<void> {
  await restart(credential);
}

/** Kills etcd. Resolves when it is ready again with its data. */
export async function restartEtcd(): Promise<void> {
  await restart("etcd");
}

/** Kills the kubelet or containerd and starts it again. Resolves when the node is ready. */
export async function restartOnNode(what: "kubelet" | "containerd"): Promise<void> {
  await restart(what);
}

/** Kills the node's kubelet and containerd, and resolves after that. Its containers continue. */
export async function silenceNode(): Promise<void> {
  await restart("silence");
}

/** Kills everything that runs on the node, with its containers. Resolves when the node is ready again. */
export async function rebootNode(): Promise<void> {
  await restart("reboot");
}

/**
 * Disturbs all later requests to the real node's registry. `delay`: ms before each answer, `Infinity` for no answer.
 * `lose`: removes a tag (`REPOSITORY:TAG` without its host). `replace`: points a tag to another image.
 */
export async function disturbRegistry(how: { delay: number } | { lose: string } | { replace: string }): Promise<void> {
  await restart(
    `registry?${new URLSearchParams(Object.entries(how).map(([key, value]) => [key, String(value)] as [string, string]))}`,
  );
}

/** Returns the tags (`REPOSITORY:TAG`) that containerd has requested so far, oldest first. */
export async function askedOfRegistry(): Promise<readonly string[]> {
  return (await restart("registry")).split("\n");
}
