/** The real cluster as the contract suite wants it. */
import { connectCluster } from "../../../shared/kube/client.ts";
import { type Cluster, NAMESPACES, type Resource } from "../../../shared/kube/port.ts";
import type { ContractTarget } from "../../contract/contract.ts";
import { controlPlane, restartApiServer } from "./access.ts";
import { ask } from "./control-plane.ts";
import { until } from "./until.ts";

const SERVICE_ACCOUNTS: Resource = { group: "", version: "v1", plural: "serviceaccounts", namespaced: true };

/** A pod needs the service account that the controller manager gives every namespace. */
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

export function contractTarget(): ContractTarget {
  const access = controlPlane();
  const cluster = connectCluster({
    server: access.url,
    certificateAuthority: access.caCertificate,
    token: async () => access.token,
  });
  return {
    cluster: withReadyNamespaces(cluster),
    access,
    // The API server remembers what etcd has forgotten, until it starts anew.
    compact: async () => {
      // A write, so that the state of now is one of the past.
      const written = await ask(`${access.etcdUrl}/v3/kv/put`, "POST", JSON.stringify({ key: "eA==", value: "eA==" }));
      const { revision } = JSON.parse(written.text).header;
      await ask(`${access.etcdUrl}/v3/kv/compaction`, "POST", JSON.stringify({ revision }));
      await restartApiServer();
    },
    runsPods: true,
    collectsGarbage: true,
    close: async () => undefined,
  };
}
