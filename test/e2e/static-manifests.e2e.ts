/**
 * Tests registrations and policies in files of the API server, as `install --static` prints them (Kubernetes 1.37; 1.36
 * with its feature gate).
 */
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION, WEBHOOK_CONFIGURATION } from "../../shared/api/names.ts";
import { mapLimited } from "../../shared/controller/loop/concurrency-limit.ts";
import type { CheckReport } from "../../shared/core/inspect/check/check.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import { type Cluster, MUTATING_WEBHOOK_CONFIGURATIONS, PODS } from "../../shared/kube/port.ts";
import { runHere } from "../cli/run-cli.ts";
import { sendRaw } from "../contract/raw.ts";
import { newPod } from "../support/objects.ts";
import { controlPlane, restartApiServer } from "./support/access.ts";
import { clusterOf, writeKubeconfig } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { type StartedFunctions, startFunctions } from "./support/functions.ts";
import { Scene } from "./support/scene.ts";
import { size } from "./support/size.ts";
import { until } from "./support/until.ts";

/** Number of pods that are created in the first moments of an API server. */
const PODS_AT_START = size({ ci: 200, soak: 1_000 });
const AT_ONCE = 16;
const RETRY_MS = 5;
const MUTATING_POLICIES = { ...MUTATING_WEBHOOK_CONFIGURATIONS, plural: "mutatingadmissionpolicies" };
/** An address without a server. */
const NOWHERE = "https://127.0.0.1:9";

let functions: StartedFunctions;
let cluster: Cluster;
let scene: Scene;
let folder: string;
let kubeconfig: string;

const manifests = () => {
  const { staticManifests } = controlPlane();
  if (staticManifests === undefined) throw new Error("this version of Kubernetes reads no manifests from files");
  return staticManifests;
};

async function printed(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runHere(args);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}

const install = (policy: "Ignore" | "Fail", part: "file" | "cluster", url = functions.address.url) =>
  printed(
    ...["install", "--url", url, "--ca-bundle", join(folder, "ca.crt"), "--path-secrets", join(folder, "secrets")],
    ...["--failure-policy", policy, "--static", part],
  );

/**
 * Writes the file as docs/install-static.md says: first under another name, so that no API server reads half a file.
 */
async function putFile(place: string, text: string, name = "sidecarset.yaml"): Promise<void> {
  await writeFile(join(place, `${name}.new`), text, { mode: 0o600 });
  await rename(join(place, `${name}.new`), join(place, name));
}

/** Returns how many lines of the API server's log contain these words. */
async function logged(words: string): Promise<number> {
  const log = await readFile(join(controlPlane().folder, "kube-apiserver.log"), "utf8");
  return log.split(words).length - 1;
}

async function putAndReload(text: string): Promise<void> {
  const before = await logged("reloaded admission manifest config");
  await putFile(manifests().webhooks, text);
  await until(
    "the API server reads the file",
    async () => (await logged("reloaded admission manifest config")) > before,
  );
}

async function createPod(name: string): Promise<Pod> {
  return cluster.create<Pod>(PODS, newPod({ name, namespace: scene.name, labels: scene.labels }));
}

const isInjected = ({ metadata }: Pod) => metadata?.annotations?.[INJECTED_LIST_ANNOTATION] === scene.name;

async function registeredNames(): Promise<readonly string[]> {
  const { items } = await cluster.list<KubernetesObject>(MUTATING_WEBHOOK_CONFIGURATIONS, {});
  return items.map(({ metadata }) => metadata?.name ?? "");
}

const deleted: string[] = [];

async function deleteRegistrations(): Promise<void> {
  for (const name of await registeredNames()) {
    await cluster.delete(MUTATING_WEBHOOK_CONFIGURATIONS, { name });
    deleted.push(name);
  }
}

async function idsFound(): Promise<readonly string[]> {
  const { stdout } = await runHere(["check", "-o", "json", "--kubeconfig", kubeconfig]);
  return (JSON.parse(stdout) as CheckReport).findings.map(({ id }) => id);
}

/** Restarts the API server, and creates pods from its first moment on; all of them must be injected. */
async function expectEarlyPodsInjected(how: string): Promise<void> {
  let isOver = false;
  let count = 0;
  const names = new Set<string>();
  const hammer = async () => {
    while (!isOver && names.size < PODS_AT_START) {
      const name = `early-${count++}`;
      await createPod(name).then(
        () => names.add(name),
        () => sleep(RETRY_MS),
      );
    }
  };
  const restarted = restartApiServer().catch((error: unknown) => {
    isOver = true;
    throw error;
  });
  const isDown = () =>
    sendRaw(controlPlane(), { path: "/readyz" }).then(
      () => false,
      () => true,
    );
  await until("the former API server is down", isDown);
  await Promise.all([restarted, ...Array.from({ length: AT_ONCE }, hammer)]);
  const early = ({ metadata }: Pod) => metadata?.name?.startsWith("early-");
  const pods = (await cluster.list<Pod>(PODS, { namespace: scene.name })).items.filter(early);
  expect(names.size).toBeGreaterThanOrEqual(PODS_AT_START);
  expect(pods.length).toBeGreaterThanOrEqual(names.size);
  expect(pods.filter((pod) => !isInjected(pod)).map(({ metadata }) => metadata?.name)).toEqual([]);
  addFigure(`pods created in an API server's first moments, all injected ${how}`, pods.length);
  await mapLimited(pods, AT_ONCE, ({ metadata }) =>
    cluster.delete(PODS, { namespace: scene.name, name: metadata?.name ?? "" }),
  );
}

beforeAll(async () => {
  cluster = clusterOf(controlPlane());
  folder = await mkdtemp(join(tmpdir(), "static-manifests-"));
  kubeconfig = await writeKubeconfig(join(folder, "kubeconfig"), controlPlane());
  functions = await startFunctions(controlPlane(), { hasTicks: false });
  const { caBundle = "", pathSecret = "" } = functions.address;
  await writeFile(join(folder, "ca.crt"), Buffer.from(caBundle, "base64"));
  await writeFile(join(folder, "secrets"), pathSecret);
  scene = new Scene(functions);
  await scene.open();
});
afterAll(async () => {
  for (const place of Object.values(manifests())) await rm(join(place, "sidecarset.yaml"), { force: true });
  await restartApiServer();
  // The object is returned so that the test can remove it.
  const kind = { apiVersion: "admissionregistration.k8s.io/v1", kind: "MutatingWebhookConfiguration" };
  for (const name of deleted) await cluster.create(MUTATING_WEBHOOK_CONFIGURATIONS, { ...kind, metadata: { name } });
  await scene.close();
  await functions.close();
  await rm(folder, { recursive: true, force: true });
});

it("check --pre accepts the file, and the API server reads it without a restart", async () => {
  const file = join(folder, "file.yaml");
  await writeFile(file, await install("Fail", "file"));
  const { stdout } = await runHere(["check", "--pre", file, "-o", "json", "--kubeconfig", kubeconfig]);
  const { findings } = JSON.parse(stdout) as CheckReport;
  expect(findings.map(({ id }) => id)).not.toContain("InstallRefused");
  await putAndReload(await readFile(file, "utf8"));
  const [empty] = parseAllDocuments(await install("Fail", "cluster")).flatMap((document) => {
    const object = document.toJS() as KubernetesObject;
    return object.metadata?.name === WEBHOOK_CONFIGURATION ? [object] : [];
  });
  const { annotations } = empty?.metadata ?? {};
  await cluster.patch(
    MUTATING_WEBHOOK_CONFIGURATIONS,
    { name: WEBHOOK_CONFIGURATION },
    { type: "merge", body: { metadata: { annotations }, webhooks: null } },
  );
  expect(await idsFound()).toContain("RegisteredInFiles");
  expect(await idsFound()).not.toContain("PodWebhookMissing");
});

it("every pod is injected from the first moment of an API server, with no registration in the cluster", async () => {
  await deleteRegistrations();
  await expectEarlyPodsInjected("by a webhook of a file");
});

it("check says that the registration is in files when nothing in the cluster says so", async () => {
  expect(await registeredNames()).toEqual([]);
  const found = await idsFound();
  expect(found).toContain("RegisteredInFiles");
  for (const id of ["PodWebhookMissing", "SidecarSetWebhookMissing", "NotInForce"]) expect(found).not.toContain(id);
});

it("a file that cannot be read leaves the registration in force", async () => {
  const before = await logged("reloading admission manifest config");
  await putFile(manifests().webhooks, "kind: Nonsense\n");
  await until("it is refused", async () => (await logged("reloading admission manifest config")) > before);
  expect(isInjected(await createPod("beside-nonsense"))).toBe(true);
});

it("with Fail no pod is created while the webhook does not answer, and check says that it does not", async () => {
  await putAndReload(await install("Fail", "file", NOWHERE));
  const refused = await createPod("refused").catch((error: unknown) => error);
  expect(isKubeError(refused) && refused.message).toContain('failed calling webhook "mpod.kb.io"');
  expect(await idsFound()).toContain("ApiServerNotAnswered");
});

it("with Ignore pods are created without sidecars while the webhook does not answer, and check says so", async () => {
  await putAndReload(await install("Ignore", "file", NOWHERE));
  expect(isInjected(await createPod("bare"))).toBe(false);
  expect(await idsFound()).toContain("PodWebhookMissing");
});

it("a policy that compile prints for a file injects, and nothing in the cluster shows it", async () => {
  await rm(join(manifests().webhooks, "sidecarset.yaml"));
  const args = ["compile", scene.name, "--to", "map", "--static", "--kubeconfig", kubeconfig];
  await putFile(manifests().policies, await printed(...args));
  await until("the policy injects", async () => {
    const name = `by-policy-${Math.random().toString(36).slice(2)}`;
    return isInjected(await createPod(name));
  });
  expect(await idsFound()).toContain("RegisteredInFiles");
});

it("the policy injects every pod from the first moment of an API server, even if somebody deletes policies", async () => {
  const { items } = await cluster.list(MUTATING_POLICIES, {});
  expect(items).toEqual([]);
  const missing = { name: `sidecarset-${scene.name}.static.k8s.io` };
  await expect(cluster.delete(MUTATING_POLICIES, missing)).rejects.toMatchObject({ code: 404 });
  await expectEarlyPodsInjected("by a policy of a file");
});

it("the API refuses names that are reserved for files", async () => {
  const [file] = parseAllDocuments(await install("Fail", "file")).map(
    (document) => document.toJS() as KubernetesObject,
  );
  const refused = await cluster.create(MUTATING_WEBHOOK_CONFIGURATIONS, file as KubernetesObject).catch(String);
  expect(String(refused)).toContain("reserved for static manifest-based configurations");
});
