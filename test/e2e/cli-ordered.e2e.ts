/**
 * Runs the command line's verbs for ordered sets on a real control plane, as a user with the rights that the docs name.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { parse, stringify } from "yaml";
import { tickSetsUntilAborted } from "../../functions/server/ticks.ts";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import type { SetPassReport } from "../../shared/controller/statefulset/report.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../shared/core/statefulset/step.ts";
import { statefulSetInstallation } from "../../shared/install/manifests.ts";
import { type Cluster, NAMESPACES, PODS, type Resource, STATEFUL_SETS } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import { type Outcome, runCli } from "../cli/run-cli.ts";
import { controlPlane } from "./support/access.ts";
import { asServiceAccount, clusterOf, writeKubeconfig } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { type StartedFunctions, startFunctions } from "./support/functions.ts";
import { createAll, removeAll } from "./support/installed.ts";
import { recordPods } from "./support/pod-history.ts";
import { eventually } from "./support/until.ts";

const rbac = (plural: string): Resource => ({
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural,
  namespaced: true,
});
const SERVICE_ACCOUNTS: Resource = { group: "", version: "v1", plural: "serviceaccounts", namespaced: true };
const NAMESPACE = "cli-ordered";
const NAME = "db";
const TARGET = `statefulset.apps.kruise.io/${NAME}`;
const WAIT = ["-w", "--timeout", "120s"] as const;

let functions: StartedFunctions;
let cluster: Cluster;
let installed: readonly KubernetesObject[] = [];
let folder: string;
let kubeconfig: string;
const end = new AbortController();
const errors: string[] = [];
let ticking: Promise<void> | undefined;

/** Creates a user with the Role of docs/ordered-sets-use.md and no other right. */
async function createUser(): Promise<string> {
  const page = await readFile("docs/ordered-sets-use.md", "utf8");
  const [, text = ""] = /```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(page) ?? [];
  const role = parse(text) as KubernetesObject;
  const user = "somebody";
  await cluster.create(SERVICE_ACCOUNTS, { metadata: { namespace: NAMESPACE, name: user } });
  await cluster.create(rbac("roles"), { ...role, metadata: { ...role.metadata, namespace: NAMESPACE } });
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: role.metadata?.name };
  const subjects = [{ kind: "ServiceAccount", name: user, namespace: NAMESPACE }];
  await cluster.create(rbac("rolebindings"), {
    metadata: { namespace: NAMESPACE, name: user },
    ...{ roleRef, subjects },
  });
  return await writeKubeconfig(join(folder, "kubeconfig"), await asServiceAccount(controlPlane(), NAMESPACE, user));
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "cli-ordered-e2e-"));
  const admin = controlPlane();
  cluster = clusterOf(admin);
  functions = await startFunctions(admin, { hasTicks: false });
  installed = statefulSetInstallation(functions.address);
  await createAll(cluster, installed);
  await cluster.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  kubeconfig = await createUser();
  const reconciler = clusterOf(await asServiceAccount(admin, "kruise-system", "sidecarset-reconciler"));
  ticking = tickSetsUntilAborted({
    connect: async () => reconciler,
    kruiseNamespace: "kruise-system",
    gates: DEFAULT_STATEFUL_SET_FEATURE_GATES,
    tickMs: 500,
    log: createLog("error", (line) => void errors.push(line)),
    signal: end.signal,
  });
});
afterAll(async () => {
  end.abort();
  await ticking;
  await cluster?.delete(NAMESPACES, { name: NAMESPACE }).catch(() => undefined);
  await removeAll(cluster, [...installed].reverse());
  await functions?.close();
  await rm(folder, { recursive: true, force: true });
});

const cli = (...args: readonly string[]): Promise<Outcome> =>
  runCli([...args, "-n", NAMESPACE], { KUBECONFIG: kubeconfig });

/** Returns the stdout of a command that succeeds. */
async function out(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await cli(...args);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}

const json = async <T>(...args: readonly string[]): Promise<T> => JSON.parse(await out(...args, "-o", "json")) as T;

function setOf(image: string, spec: object = {}) {
  const labels = { app: NAME };
  const containers = [{ name: "main", image }];
  const template = { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers } };
  return {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "StatefulSet",
    metadata: { namespace: NAMESPACE, name: NAME },
    spec: { replicas: 3, serviceName: NAME, selector: { matchLabels: labels }, template, ...spec },
  };
}

async function apply(set: ReturnType<typeof setOf>): Promise<void> {
  const { spec } = set;
  await cluster.patch(STATEFUL_SETS, { namespace: NAMESPACE, name: NAME }, { type: "merge", body: { spec } });
}

async function imagesOfPods(): Promise<readonly string[]> {
  const { items } = await cluster.list<Pod>(PODS, { namespace: NAMESPACE, labelSelector: `app=${NAME}` });
  const sorted = items.toSorted((a, b) => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1));
  return sorted.map(({ metadata, spec }) => `${metadata?.name} ${spec.containers[0]?.image}`);
}

/** Returns the names of the pods that were created during `act`, in order. */
async function recorded(act: () => Promise<void>): Promise<readonly string[]> {
  const before = new Set(
    (await cluster.list<Pod>(PODS, { namespace: NAMESPACE })).items.map(({ metadata }) => metadata?.uid ?? ""),
  );
  const history = recordPods(cluster, NAMESPACE);
  onTestFinished(() => history.close());
  await act();
  const made = new Map<string, string>();
  for (const { object } of await history.versions())
    if (!before.has(object.metadata.uid ?? "")) made.set(object.metadata.uid ?? "", object.metadata.name ?? "");
  return [...made.values()];
}

interface Traced {
  readonly orderedSet: { readonly steps: readonly { readonly reason: string; readonly message: string }[] };
}

it("a rollout follows its plan, pause stops it, undo undoes it, and explain's reasons are true", async () => {
  await cluster.create(STATEFUL_SETS, setOf("app:1"));
  expect(await out("status", TARGET, ...WAIT)).toMatch(/3 of 3 pods, 3 ready, 3 updated\n$/);

  const file = join(folder, "new.yaml");
  await writeFile(file, stringify(setOf("app:2", { replicas: 4 })));
  const { sets } = await json<SetPassReport>("plan", TARGET, "-f", file);
  const planned = sets[0]?.plan?.steps.flatMap(({ pods }) => pods.map(({ name }) => name));
  expect(planned).toEqual(["db-3", "db-2", "db-1", "db-0"]);
  const made = await recorded(async () => {
    await apply(setOf("app:2", { replicas: 4 }));
    await out("status", TARGET, ...WAIT);
  });
  expect(made).toEqual(planned);
  addFigure("pods of an ordered set made as planned", made.length);

  await out("pause", TARGET);
  await apply(setOf("app:3", { replicas: 4 }));
  expect((await cli("status", TARGET, ...WAIT)).code).toBe(3);
  expect(await imagesOfPods()).toEqual(["db-0 app:2", "db-1 app:2", "db-2 app:2", "db-3 app:2"]);
  expect(await out("explain", TARGET)).toMatch(
    /✗ StrategyPaused: .*\n.*sidecarset resume statefulset\.apps\.kruise\.io\/db/,
  );
  expect(await out("undo", TARGET, "--to-revision", "1")).toMatch(
    /back to revision 1 \(main=app:1\)\nThe update is paused/,
  );
  await out("resume", TARGET);
  await out("status", TARGET, ...WAIT);
  expect(await imagesOfPods()).toEqual(["db-0 app:1", "db-1 app:1", "db-2 app:1", "db-3 app:1"]);
  const history = await json<readonly { readonly images: string; readonly pods: number }[]>("history", TARGET);
  expect(history.map(({ images, pods }) => [images, pods])).toEqual([
    ["main=app:1", 4],
    ["main=app:3", 0],
    ["main=app:2", 0],
  ]);
});

it("explain names a pod that blocks the order, and the suggested command helps", async () => {
  await apply(setOf("app:does-not-exist", { replicas: 4 }));
  await eventually(
    () => imagesOfPods(),
    (images) => expect(images).toContain("db-3 app:does-not-exist"),
  );
  await eventually(
    () => cli("status", TARGET, ...WAIT),
    ({ code }) => expect(code).toBe(3),
  );
  const waiting = await out("explain", TARGET);
  expect(waiting).toMatch(/✗ ContainerFailing: db-3 is not ready \(container main: (ImagePullBackOff|ErrImagePull)\)/);
  expect(waiting).toMatch(
    /then kubectl -n \S+ delete pod db-3: a set that keeps order never updates a pod that is not ready/,
  );
  expect(await out("undo", TARGET)).toMatch(/kubectl -n \S+ delete pod db-3 lets it go on\.\n$/);
  const { code, stdout } = await cli("plan", TARGET);
  expect([code, stdout]).toEqual([3, expect.stringMatching(/^No pod would be touched\.$/m)]);
  await cluster.delete(PODS, { namespace: NAMESPACE, name: "db-3" });
  expect(await out("status", TARGET, ...WAIT)).toMatch(/4 of 4 pods, 4 ready, 4 updated\n$/);
});

it("explain covers existing pods, kept pods, and pods that the set does not want", async () => {
  const rollingUpdate = { partition: 3 };
  await apply(setOf("app:4", { replicas: 4, updateStrategy: { type: "RollingUpdate", rollingUpdate } }));
  await out("status", TARGET, ...WAIT);
  expect(await imagesOfPods()).toEqual(["db-0 app:1", "db-1 app:1", "db-2 app:1", "db-3 app:4"]);
  const admin = await writeKubeconfig(join(folder, "admin"), controlPlane());
  const reasons = async (pod: string) => {
    const args = ["explain", `pod/${NAMESPACE}/${pod}`, "-o", "json"];
    const { stdout } = await runCli(args, { KUBECONFIG: admin });
    return (JSON.parse(stdout) as Traced).orderedSet.steps.map(({ reason }) => reason);
  };
  expect(await reasons("db-3")).toEqual(["OrdinalInRange", "UpdatedAndReady"]);
  expect(await reasons("db-0")).toEqual(["OrdinalInRange", "OutOfDate", "KeptByPartition", "TickRunning"]);
  expect(await reasons("db-9")).toEqual(["OutOfRange"]);
  expect(errors).toEqual([]);
});
