/** The API server for the tests of one worker: a control plane that no other worker uses. */
import { inject } from "vitest";
import type { RawTarget } from "../../contract/raw.ts";
import type { NodePrograms } from "../node/real-node.ts";
import { ask } from "./control-plane.ts";
import type { GivenCluster } from "./given-cluster.ts";
import type { Settings } from "./settings.ts";
import type { Credential } from "./webhook-credentials.ts";

export interface OwnControlPlane extends Settings {
  /** see Restarts */
  readonly restartUrl: string;
}

declare module "vitest" {
  interface ProvidedContext {
    /** a control plane for each worker */
    readonly controlPlanes: readonly OwnControlPlane[];
    /** the one of --kubeconfig */
    readonly givenCluster: GivenCluster | undefined;
    /** programs of the real node of --node */
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

/** The API server, also with --kubeconfig, for tests that need nothing else. */
export function apiServer(): RawTarget {
  return inject("givenCluster") ?? controlPlane();
}

export function isGiven(): boolean {
  return inject("givenCluster") !== undefined;
}

/** False if pods wait for nodes that the tests do not have. */
export function runsPods(): boolean {
  return inject("givenCluster")?.isWithoutNodes ?? true;
}

/** Pods run on a real node, under a kubelet and containerd. */
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

/** Kills it; resolves when it is ready again. From then on it shows webhooks this credential. */
export async function restartApiServer(credential: Credential = "certificate"): Promise<void> {
  await restart(credential);
}

/** Kills it; resolves when it is ready again, with the data it had. */
export async function restartEtcd(): Promise<void> {
  await restart("etcd");
}

/** Kills it and starts it again; resolves when the node is ready. */
export async function restartOnNode(what: "kubelet" | "containerd"): Promise<void> {
  await restart(what);
}

/** The node is heard of no more, its containers run on; resolves when its kubelet and containerd are killed. */
export async function silenceNode(): Promise<void> {
  await restart("silence");
}

/** Kills all that runs on the node, containers among them; resolves when it is ready again. */
export async function rebootNode(): Promise<void> {
  await restart("reboot");
}

/**
 * Disturbs the real node's registry, for every request from now on. `delay`: ms before each answer, `Infinity` for
 * none. `lose`: a tag (`REPOSITORY:TAG` without its host) is lost. `replace`: it points to another image.
 */
export async function disturbRegistry(how: { delay: number } | { lose: string } | { replace: string }): Promise<void> {
  await restart(
    `registry?${new URLSearchParams(Object.entries(how).map(([key, value]) => [key, String(value)] as [string, string]))}`,
  );
}

/** Tags (`REPOSITORY:TAG`) that containerd has asked the registry for so far, oldest first. */
export async function askedOfRegistry(): Promise<readonly string[]> {
  return (await restart("registry")).split("\n");
}
