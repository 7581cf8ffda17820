/** Tests what docs/rights.md promises about a viewer and an operator, each with only its own roles. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { installedResource } from "../../shared/install/manifests.ts";
import { peopleObjects } from "../../shared/install/rbac/access.ts";
import { runCli } from "../cli/run-cli.ts";
import { newPod } from "../support/objects.ts";
import { apiServer } from "./support/access.ts";
import { asServiceAccount, clusterOf, writeKubeconfig } from "./support/clients.ts";
import { scenes } from "./support/open-scene.ts";
import { APP, SIDECAR, setImage } from "./support/scene.ts";
import { until } from "./support/until.ts";

const openScene = scenes();
const KRUISE = "kruise-system";
let folder: string;
const kubeconfigs: Record<string, string> = {};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rights-e2e-"));
  for (const role of ["sidecarset-viewer", "sidecarset-operator"]) {
    const account = `people-${role}`;
    for (const one of [...peopleObjects().filter((one) => isRole(one, role)), ...boundTo(role, account)])
      await store(one);
    const target = await asServiceAccount(apiServer(), KRUISE, account);
    kubeconfigs[role] = await writeKubeconfig(join(folder, role), target);
  }
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function isRole({ kind, metadata }: KubernetesObject, role: string): boolean {
  return metadata?.name === role && (kind === "ClusterRole" || kind === "Role");
}

function boundTo(name: string, account: string): readonly KubernetesObject[] {
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const subjects = [{ kind: "ServiceAccount", name: account, namespace: KRUISE }];
  const binding = (kind: string) => ({ roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name }, subjects });
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: account, namespace: KRUISE } },
    { apiVersion, kind: "ClusterRoleBinding", metadata: { name: account }, ...binding("ClusterRole") },
    { apiVersion, kind: "RoleBinding", metadata: { name: account, namespace: KRUISE }, ...binding("Role") },
  ] as readonly KubernetesObject[];
}

/** Creates a role, which may exist already from this installation. */
async function store(object: KubernetesObject): Promise<void> {
  const cluster = clusterOf(apiServer());
  const { name = "", namespace } = object.metadata ?? {};
  const key = namespace === undefined ? { name } : { name, namespace };
  await cluster.delete(installedResource(object), key).catch(() => undefined);
  await cluster.create(installedResource(object), object);
}

const as = (role: string) => (args: readonly string[]) => runCli(args, { KUBECONFIG: kubeconfigs[role] ?? "" });

it("a viewer may read everything and change nothing, and an operator may steer rollouts", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 1, partition: 2 } });
  await scene.deploy(3);
  await scene.untilSettled();
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(1);
  await scene.untilSettled();
  const [pod] = await scene.pods();
  const file = join(folder, "changed.yaml");
  const { spec } = await scene.set();
  const changed = { ...spec, containers: [{ ...SIDECAR, image: "agent:v3" }] };
  const manifest = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: scene.name },
    spec: changed,
  };
  await writeFile(file, stringify(manifest));

  const podFile = join(folder, "pod.yaml");
  const metadata = { name: "p", namespace: scene.name, labels: scene.labels };
  await writeFile(podFile, stringify(newPod(metadata, { containers: [APP] })));

  const viewer = as("sidecarset-viewer");
  const questions = [
    ["status", scene.name],
    ["status"],
    ["explain", `sidecarset/${scene.name}`],
    ["explain", `pod/${pod?.metadata?.namespace}/${pod?.metadata?.name}`],
    ["plan", scene.name],
    ["diff", scene.name, "-f", file],
    ["pods", scene.name],
    ["history", scene.name],
    ["report", scene.name, "-o", join(folder, "report.html")],
    ["lint", "-f", file],
    ["preview", "-f", podFile],
  ];
  for (const question of questions) {
    const { code, stderr } = await viewer(question);
    expect([question[0], stderr]).toEqual([question[0], ""]);
    expect([0, 3, 4], question.join(" ")).toContain(code);
  }
  const refused = await viewer(["pause", scene.name]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/cannot patch resource "sidecarsets".*ask who runs the cluster for that right/);
  expect((await scene.set()).spec.updateStrategy?.paused ?? false).toBe(false);

  const operator = as("sidecarset-operator");
  for (const change of [
    ["pause", scene.name],
    ["resume", scene.name],
    ["set", "partition", scene.name, "1"],
    ["set", "max-unavailable", scene.name, "2"],
    ["promote", scene.name],
    ["pause", scene.name], // Without the pause a slow machine could update every pod before the rollout is given up.
    ["set", "image", scene.name, "agent=agent:v3"],
    ["abort", scene.name],
    ["undo", scene.name],
  ])
    expect(await operator(change), change.join(" ")).toMatchObject({ code: 0, stderr: "" });
});

it("a user who may read SidecarSets, and pods of one namespace, sees these pods, and a list of the unread parts", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 1, partition: 1 } });
  await scene.deploy(2);
  await scene.untilSettled();
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(1);
  await scene.untilSettled();
  const [first] = await scene.pods();
  const { namespace = "" } = first?.metadata ?? {};
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const roleRef = (kind: string, name: string) => ({ apiGroup: "rbac.authorization.k8s.io", kind, name });
  const subjects = [{ kind: "ServiceAccount", name: "tenant", namespace }];
  const rules = [{ apiGroups: ["apps.kruise.io"], resources: ["sidecarsets"], verbs: ["get", "list"] }];
  for (const one of [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "tenant", namespace } },
    { apiVersion, kind: "ClusterRole", metadata: { name: "sidecarset-tenant" }, rules },
    {
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata: { name: "sidecarset-tenant" },
      roleRef: roleRef("ClusterRole", "sidecarset-tenant"),
      subjects,
    },
    {
      apiVersion,
      kind: "RoleBinding",
      metadata: { name: "tenant", namespace },
      roleRef: roleRef("ClusterRole", "view"),
      subjects,
    },
  ])
    await store(one as KubernetesObject);
  const KUBECONFIG = await writeKubeconfig(
    join(folder, "tenant"),
    await asServiceAccount(apiServer(), namespace, "tenant"),
  );
  const tenant = (...args: readonly string[]) => runCli(args, { KUBECONFIG });

  const old = (await scene.pods()).find((pod) => JSON.stringify(pod.spec).includes("agent:v1"));
  const explained = await tenant("explain", `pod/${namespace}/${old?.metadata?.name}`);
  expect([explained.code, explained.stdout]).toEqual([0, expect.stringContaining("its turn is not known")]);
  expect(explained.stderr).toMatch(/Not read, for lack of rights: pods of other namespaces, .*the ledger/);
  const listed = await tenant("pods", scene.name, "-n", namespace);
  expect([listed.code, listed.stdout.trim().split("\n").length]).toEqual([0, 3]);
  const status = await tenant("status", scene.name);
  expect([status.code, status.stdout]).toEqual([0, expect.stringContaining("1/2")]);
  expect(status.stderr).toContain("This is what the last pass wrote");
  const plan = await tenant("plan", scene.name);
  expect([plan.code, plan.stderr]).toEqual([1, expect.stringContaining('cannot get resource "configmaps"')]);
  for (const kind of ["ClusterRoleBinding", "ClusterRole"])
    await clusterOf(apiServer()).delete(installedResource({ apiVersion, kind }), { name: "sidecarset-tenant" });
});

it.each([
  ["view", "get"],
  ["admin", "patch"],
])("Kubernetes' own role %s may %s SidecarSets", async (role, verb) => {
  interface Role extends KubernetesObject {
    readonly rules?: readonly { readonly resources?: readonly string[]; readonly verbs: readonly string[] }[];
  }
  const roles = installedResource({ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole" });
  await until(`${role} has it`, async () => {
    const { rules = [] } = await clusterOf(apiServer()).get<Role>(roles, { name: role });
    return rules.some(({ resources, verbs }) => resources?.includes("sidecarsets") && verbs.includes(verb));
  });
});
