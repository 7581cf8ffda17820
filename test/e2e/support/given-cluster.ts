/**
 * Checks a cluster that somebody else started: whether the tests may run there, as which user, and which objects
 * stay.
 */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { installedResource } from "../../../shared/install/manifests.ts";
import { accessObjects, kruiseNamespace } from "../../../shared/install/rbac/access.ts";
import { connectCluster } from "../../../shared/kube/client.ts";
import { isKubeError, KubeError } from "../../../shared/kube/error.ts";
import { kubeconfigAccess } from "../../../shared/kube/kubeconfig.ts";
import { type Cluster, PODS } from "../../../shared/kube/port.ts";
import { type ClusterAccess, openTransport, readBody } from "../../../shared/kube/transport.ts";
import type { RawTarget } from "../../contract/raw.ts";
import { reachesUs } from "./reachable.ts";
import { until } from "./until.ts";

export interface GivenCluster extends RawTarget {
  /** the host under which the cluster's API server reaches this machine */
  readonly webhookHost: string;
  /** true if the cluster has no nodes, so that the tests' nodes get all pods */
  readonly isWithoutNodes: boolean;
}

export interface Given {
  /** path of the kubeconfig */
  readonly kubeconfig: string;
  /** name of the context whose cluster may be changed, with any workloads */
  readonly consent: string | undefined;
  /** the host under which the API server reaches this machine; undefined: 127.0.0.1 */
  readonly webhookHost: string | undefined;
}

/** Says in one sentence why the tests do not run on this cluster, for the person who started them. */
export class UnusableCluster extends Error {
  override readonly name = "UnusableCluster";
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
const OF_THE_CLUSTER = /^(kube-.*|local-path-storage)$/;
const DEFINITION: KubernetesObject = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "sidecarsets.apps.kruise.io" },
};
const TOKEN_SECONDS = 6 * 3600;

/** Returns why somebody may need objects that the tests change; undefined: no reason found. */
async function doubt(cluster: Cluster, server: string): Promise<string | undefined> {
  if (!LOOPBACK.test(new URL(server).hostname)) return "is not on this machine";
  const { items } = await cluster.list(PODS, {});
  const namespaces = new Set(items.map(({ metadata }) => metadata?.namespace ?? ""));
  const [busy] = [...namespaces].filter((name) => !OF_THE_CLUSTER.test(name)).toSorted();
  return busy === undefined ? undefined : `runs pods in the namespace ${busy}`;
}

function isThere(cluster: Cluster, object: KubernetesObject): Promise<boolean> {
  return cluster.get(installedResource(object), { name: object.metadata?.name ?? "" }).then(
    () => true,
    (error: unknown) => {
      if (isKubeError(error, 404)) return false;
      throw error;
    },
  );
}

/** Refuses a cluster with SidecarSets: the tests would delete every one. */
async function requireNoSidecarSets(cluster: Cluster, kubeconfig: string): Promise<void> {
  for (const object of [DEFINITION, kruiseNamespace()]) {
    const { kind, metadata } = object;
    if (await isThere(cluster, object))
      throw new UnusableCluster(
        `--kubeconfig ${kubeconfig}: ${kind} ${metadata?.name} is there already, and the tests would delete it with everything in it; if an earlier run was cut short and left it, kubectl delete ${kind} ${metadata?.name}.`,
      );
  }
}

async function requireConsent(cluster: Cluster, server: string, { kubeconfig, consent }: Given): Promise<void> {
  const problem = await doubt(cluster, server);
  if (problem === undefined) return;
  const context: unknown = parse(await readFile(kubeconfig, "utf8"))["current-context"];
  if (consent === context && consent !== undefined) return;
  throw new UnusableCluster(
    `--kubeconfig ${kubeconfig}: this cluster ${problem}, and the tests create and delete webhook configurations, cluster roles, a definition, nodes and namespaces; if it is there to be tested on, add --consent ${context}.`,
  );
}

/** Returns an identity in its own namespace, so that it is deleted with the namespace. */
function identity(name: string): readonly KubernetesObject[] {
  const subject = { kind: "ServiceAccount", name, namespace: name };
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" };
  const binding = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRoleBinding", metadata: { name } };
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace: name } },
    { ...binding, roleRef, subjects: [subject] } as KubernetesObject,
  ];
}

async function tokenOf(access: ClusterAccess, name: string): Promise<string> {
  const answer = await openTransport(access)({
    method: "POST",
    path: `/api/v1/namespaces/${name}/serviceaccounts/${name}/token`,
    contentType: "application/json",
    body: JSON.stringify({ spec: { expirationSeconds: TOKEN_SECONDS } }),
    timeoutMs: 30_000,
  });
  const text = await readBody(answer);
  if (answer.code !== 201) throw new UnusableCluster(`no token for the tests: ${text}`);
  return JSON.parse(text).status.token;
}

/** Checks for the controllers that a maintained cluster runs. */
async function requireControllers(cluster: Cluster, name: string): Promise<void> {
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { namespace: name } };
  const isMade = async () =>
    Boolean(await cluster.get(installedResource(account), { namespace: name, name: "default" }));
  await until("service account", isMade).catch(() => {
    throw new UnusableCluster(`the cluster gives new namespaces no service account: it has no controller manager.`);
  });
}

async function prepare(cluster: Cluster, access: ClusterAccess, given: Given, name: string): Promise<GivenCluster> {
  const { webhookHost = "127.0.0.1", kubeconfig } = given;
  if (access.certificateAuthority === undefined)
    throw new UnusableCluster(`--kubeconfig ${kubeconfig}: its cluster has no certificate-authority to trust.`);
  for (const object of identity(name)) await cluster.create(installedResource(object), object);
  await requireControllers(cluster, name);
  if (!(await reachesUs(cluster, webhookHost)))
    throw new UnusableCluster(
      `--kubeconfig ${kubeconfig}: its API server does not reach webhooks at ${webhookHost}; name an address of this machine that it can reach with --webhook-host.`,
    );
  return {
    url: access.server,
    caCertificate: access.certificateAuthority,
    token: await tokenOf(access, name),
    webhookHost,
    isWithoutNodes: (await cluster.list(installedResource({ apiVersion: "v1", kind: "Node" }), {})).items.length === 0,
  };
}

/**
 * @throws UnusableCluster before it changes the cluster. Some missing parts show only after a change; then it throws
 * later.
 */
export async function openGivenCluster(given: Given) {
  try {
    const access = await kubeconfigAccess(given.kubeconfig);
    const cluster = connectCluster({ ...access, userAgent: "sidecarset-e2e" });
    await requireNoSidecarSets(cluster, given.kubeconfig);
    await requireConsent(cluster, access.server, given);
    const name = `sidecarset-e2e-${randomBytes(3).toString("hex")}`;
    const close = async () => {
      const left = [...identity(name), kruiseNamespace(), ...accessObjects()];
      // Objects in a namespace are deleted with it.
      for (const object of left.filter(({ metadata }) => metadata?.namespace === undefined)) {
        await cluster.delete(installedResource(object), { name: object.metadata?.name ?? "" });
        await until(`${object.metadata?.name} is gone`, async () => !(await isThere(cluster, object)));
      }
    };
    return {
      close,
      cluster: await prepare(cluster, access, given, name).catch(async (error: unknown) => {
        await close();
        throw error;
      }),
    };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    throw new UnusableCluster(`--kubeconfig ${given.kubeconfig}: ${error.message}`, { cause: error });
  }
}
