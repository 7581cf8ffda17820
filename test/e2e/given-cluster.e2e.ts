/**
 * Runs the tests with `--kubeconfig` on a cluster that somebody else started, and checks which objects stay unchanged.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { installedResource } from "../../shared/install/manifests.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { clusterOf } from "./support/clients.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { findPrograms } from "./support/programs.ts";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));

let plane: ControlPlane;
let cluster: Cluster;
let kubeconfig: string;
beforeAll(async () => {
  plane = await startControlPlane(await findPrograms(process.env));
  cluster = clusterOf(plane.settings);
  kubeconfig = join(plane.settings.folder, "admin.kubeconfig");
});
afterAll(() => plane?.close());

interface Ended {
  readonly code: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command as a user does. */
function runTests(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const env = { ...process.env, VITEST: "", VITEST_POOL_ID: "", VITEST_WORKER_ID: "" };
    execFile(process.execPath, [MAIN, "--kubeconfig", kubeconfig, ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}

const KINDS: readonly KubernetesObject[] = [
  { apiVersion: "v1", kind: "Namespace" },
  { apiVersion: "v1", kind: "Node" },
  { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" },
  { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole" },
  { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRoleBinding" },
  { apiVersion: "admissionregistration.k8s.io/v1", kind: "MutatingWebhookConfiguration" },
  { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingWebhookConfiguration" },
];

/** Returns the names of all cluster-scoped objects that are not being deleted. */
async function everything(): Promise<readonly string[]> {
  const lists = KINDS.map(async (kind) => {
    const { items } = await cluster.list<KubernetesObject>(installedResource(kind), {});
    const kept = items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
    return kept.map(({ metadata }) => `${kind.kind} ${metadata?.name}`);
  });
  return (await Promise.all(lists)).flat().toSorted();
}

it("all possible tests run on a given cluster, the others are counted, and nothing is left there", async () => {
  const before = await everything();
  const { code, stdout, stderr } = await runTests("rbac.e2e");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/[1-9]\d* passed, 0 failed/);
  expect(stdout).toMatch(/Not run on a cluster that was given: [1-9]\d* tests/);
  expect(await everything()).toEqual(before);
});

const POD = {
  kind: "Pod",
  metadata: { name: "web", namespace: "default" },
  spec: { containers: [{ name: "web", image: "web" }] },
};
const KRUISE = { kind: "Namespace", metadata: { name: "kruise-system" } };

it.each([
  {
    where: "pods of other owners run in the cluster",
    object: POD,
    args: [],
    sentence: "runs pods in the namespace default",
  },
  {
    where: "the consent names another context than the current one",
    object: POD,
    args: ["--consent", "production"],
    sentence: "add --consent local.",
  },
  {
    where: "OpenKruise's namespace exists, even with consent",
    object: KRUISE,
    args: ["--consent", "local"],
    sentence: "kubectl delete Namespace kruise-system.",
  },
])("the tests do not start if $where", async ({ object, args, sentence }) => {
  const [resource, key] = [installedResource({ apiVersion: "v1", ...object }), object.metadata];
  await cluster.create(resource, object);
  const before = await everything();
  const { code, stderr } = await runTests(...args);
  expect(stderr.trim().split("\n")).toEqual([expect.stringContaining(sentence)]);
  expect(code).toBe(2);
  expect(await everything()).toEqual(before);
  await cluster.delete(resource, key);
  const answer = () => cluster.get(resource, key).catch((error: unknown) => isKubeError(error, 404));
  await expect.poll(answer).toBe(true);
});
