/** A whole Kubernetes cluster in this process, served over real HTTPS on 127.0.0.1. */
import { randomBytes } from "node:crypto";
import { type Api, component, internalCall, type User } from "./api.ts";
import { NAMESPACE, NODE } from "./built-in-kinds.ts";
import { createCertificates } from "./certificates.ts";
import { systemClock } from "./clock.ts";
import { createObject } from "./create.ts";
import { createHistory, type RecordedAdmission, type RecordedWrite } from "./history.ts";
import { serveHttps } from "./https-server.ts";
import { type Access, kubeconfigText } from "./kubeconfig.ts";
import { nodeObject } from "./nodes.ts";
import { timestamp } from "./object.ts";
import { createRegistry } from "./registry.ts";
import { Store } from "./store.ts";

export interface LocalClusterOptions {
  /** default: a free one */
  readonly port?: number;
  /** default 3 */
  readonly nodes?: number;
  /** How many changes watches and pages may lag behind; default 50,000. */
  readonly historyLimit?: number;
  /** default 60 s, as in kube-apiserver */
  readonly bookmarkIntervalMs?: number;
  /** in [0, 1); default Math.random */
  readonly random?: () => number;
}

export interface LocalCluster extends Access {
  /** YAML text */
  kubeconfig(): string;
  /** Every write since the start, oldest first. */
  history(): readonly RecordedWrite[];
  /** Every call of an admission webhook since the start, oldest first. */
  admissions(): readonly RecordedAdmission[];
  /** "LIST pods" → how often, over HTTPS, by user agents that begin with the prefix. */
  apiCalls(userAgentPrefix?: string): Record<string, number>;
  /** Forgets old changes, as etcd's compaction does: older continue tokens and watches get 410. */
  compact(): void;
  close(): Promise<void>;
}

const ADMINISTRATOR: User = {
  username: "kubernetes-admin",
  groups: ["kubeadm:cluster-admins", "system:authenticated"],
};
const NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"];

async function furnish(api: Api, nodes: number): Promise<void> {
  const caller = component("kube-controller-manager");
  for (const name of NAMESPACES) {
    await createObject(api, internalCall(caller, NAMESPACE, { namespace: "", name }), { metadata: { name } });
  }
  for (let index = 1; index <= nodes; index += 1) {
    const node = nodeObject(index, timestamp(api.clock.now()));
    await createObject(api, internalCall(caller, NODE, { namespace: "", name: `node-${index}` }), node);
  }
}

/** Resolves when the cluster answers. Call `close` when done: it leaves no timer and no socket behind. */
export async function startLocalCluster(options: LocalClusterOptions = {}): Promise<LocalCluster> {
  const clock = systemClock();
  const store = new Store(options.historyLimit ?? 50_000);
  const history = createHistory(clock.now);
  const api: Api = { store, registry: createRegistry(store), history, clock, random: options.random ?? Math.random };
  await furnish(api, options.nodes ?? 3);
  const certificates = await createCertificates();
  const token = randomBytes(16).toString("hex");
  const server = await serveHttps(api, {
    port: options.port ?? 0,
    certificates,
    users: new Map([[token, ADMINISTRATOR]]),
    bookmarkIntervalMs: options.bookmarkIntervalMs ?? 60_000,
  });
  const access: Access = { url: `https://127.0.0.1:${server.port}`, caCertificate: certificates.authority, token };
  return {
    ...access,
    kubeconfig: () => kubeconfigText(access),
    history: history.writes,
    admissions: history.admissions,
    apiCalls: (prefix = "") => history.calls(prefix),
    compact: () => store.compact(),
    async close() {
      await server.close();
      clock.close();
    },
  };
}
