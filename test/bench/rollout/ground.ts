/** The cluster of a rollout: the embedded one, or a real control plane. */
import { startLocalCluster } from "../../../infra/local/cluster.ts";
import type { Container } from "../../../shared/api/kubernetes.ts";
import { connectCluster } from "../../../shared/kube/client.ts";
import { type Cluster, NAMESPACES } from "../../../shared/kube/port.ts";

export interface ClusterAddress {
  readonly server: string;
  /** PEM */
  readonly certificateAuthority: string;
  readonly bearerToken: string;
}

/** The number of calls by kind, such as "PATCH pods": 12. */
export type Calls = Readonly<Record<string, number>>;

export interface Ground {
  /** the address for passes and bare loops */
  readonly address: ClusterAddress;
  /** an administrator's client */
  readonly client: Cluster;
  /** nodes for the pods; empty: a scheduler chooses */
  readonly nodes: readonly string[];
  /** Returns the container in the form that the cluster's pods have. */
  containerOf(container: Container): Container;
  /** Returns the calls of one user agent, as the API server itself counts them. */
  callsOf(userAgent: string): Promise<Calls>;
  /** Gives passes and bare loops their own priority level. Resolves with its seats. */
  tighten(level: TightLevel): Promise<number>;
  close(): Promise<void>;
}

/** A priority level with one share, which neither borrows nor lends. */
export interface TightLevel {
  /** Reject: 429 as soon as all seats are taken; Queue: 429 as soon as a short queue is full too */
  readonly response: "Reject" | "Queue";
}

export function clientOf({ server, certificateAuthority, bearerToken }: ClusterAddress): Cluster {
  return connectCluster({ server, certificateAuthority, token: async () => bearerToken, userAgent: "stage" });
}

export async function embeddedGround(): Promise<Ground> {
  const local = await startLocalCluster({ startDelayMs: 20, readyDelayMs: 20, recordedWrites: 0 });
  const address = { server: local.url, certificateAuthority: local.caCertificate, bearerToken: local.token };
  const client = clientOf(address);
  for (const name of ["kruise-system", "shop"]) await client.create(NAMESPACES, { metadata: { name } });
  return {
    address,
    client,
    nodes: [],
    containerOf: (container) => container,
    callsOf: async (userAgent) => local.apiCalls(userAgent),
    tighten: async () => {
      throw new Error("the embedded cluster has no priority levels");
    },
    close: () => local.close(),
  };
}
