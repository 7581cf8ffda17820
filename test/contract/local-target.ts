/** The embedded cluster for the contract suite. */
import { startLocalCluster } from "../../infra/local/cluster.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import type { ContractTarget } from "./contract.ts";

export async function localTarget(): Promise<ContractTarget> {
  const local = await startLocalCluster({ startDelayMs: 20, readyDelayMs: 20, terminationDelayMs: 20 });
  const cluster = connectCluster({
    server: local.url,
    certificateAuthority: local.caCertificate,
    token: async () => local.token,
  });
  return {
    cluster,
    access: local,
    // The embedded cluster calls itself 1.32, but behaves like the newest version in the cases.
    minor: 36,
    compact: async () => local.compact(),
    runsPods: true,
    showsEveryState: true,
    collectsGarbage: true,
    close: local.close,
  };
}
