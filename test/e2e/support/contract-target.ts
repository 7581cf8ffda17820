/** Adapts the real cluster to the contract suite. */
import { type Cluster, NAMESPACES, type Resource } from "../../../shared/kube/port.ts";
import type { ContractTarget } from "../../contract/contract.ts";
import { sendRaw } from "../../contract/raw.ts";
import { apiServer, controlPlane, isGiven, isOnNode, restartApiServer, runsPods, webhookHost } from "./access.ts";
import { clusterOf } from "./clients.ts";
import { ask } from "./control-plane.ts";
import { until } from "./until.ts";

const SERVICE_ACCOUNTS: Resource = { group: "", version: "v1", plural: "serviceaccounts", namespaced: true };

/** Waits for a namespace's service account, which the controller manager creates and every pod needs. */
function withReadyNamespaces(cluster: Cluster): Cluster {
  return {
    ...cluster,
    async create(resource, object, options) {
      const created = await cluster.create(resource, object, options);
      if (resource.plural === NAMESPACES.plural && options?.dryRun !== true) {
        const key = { namespace: object.metadata?.name ?? "", name: "default" };
        await until("service account", async () => Boolean(await cluster.get(SERVICE_ACCOUNTS, key)));
      }
      return created;
    },
  };
}

/** Compacts etcd. The API server keeps compacted versions until it restarts. */
async function compact(): Promise<void> {
  const { etcdUrl } = controlPlane();
  // The write moves etcd on, so that the earlier state belongs to the past.
  const written = await ask(`${etcdUrl}/v3/kv/put`, "POST", JSON.stringify({ key: "eA==", value: "eA==" }));
  const { revision } = JSON.parse(written.text).header;
  await ask(`${etcdUrl}/v3/kv/compaction`, "POST", JSON.stringify({ revision }));
  await restartApiServer();
}

export async function contractTarget(): Promise<ContractTarget> {
  const access = apiServer();
  const { body } = await sendRaw(access, { path: "/version" });
  return {
    cluster: withReadyNamespaces(clusterOf(access)),
    access,
    minor: Number.parseInt((body as { readonly minor: string }).minor, 10),
    webhookHost: webhookHost(),
    ...(isGiven() ? {} : { compact }),
    runsPods: runsPods(),
    showsEveryState: runsPods() && !isOnNode(),
    collectsGarbage: true,
    close: async () => undefined,
  };
}
