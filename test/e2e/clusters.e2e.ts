/**
 * Serves three clusters from one deployment, as Lambda runs it: a real API server, one that is down, and one that never
 * answers.
 */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { bundle } from "../../infra/build.ts";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { installation } from "../../shared/install/manifests.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { pathSecretOf } from "../../shared/webhook/server/path-secret.ts";
import { runHere } from "../cli/run-cli.ts";
import { admissionReview, httpEvent } from "../lambda/http-event.ts";
import { type FunctionProcess, startFunction } from "../lambda/runtime-process.ts";
import { newPod } from "../support/objects.ts";
import { writePathSecret } from "../webhook/cluster.ts";
import { apiServer } from "./support/access.ts";
import { asServiceAccount, clusterOf } from "./support/clients.ts";
import { createAll, removeAll, untilInForce } from "./support/installed.ts";
import { until } from "./support/until.ts";
import { type Front, openFront } from "./support/webhook-front.ts";

const FUNCTIONS: Readonly<Record<string, string>> = {
  "/mutate-pod": "mutate-pod",
  "/mutate-apps-kruise-io-sidecarset": "mutate-sidecarset",
  "/announce-apps-kruise-io-sidecarset": "validate-sidecarset",
  "/convert": "convert-sidecarset",
};
const NAME = "clusters-agent";
const LABELS = { app: NAME };
const DEFAULT = "default";
const PASS_MS = 25_000;

let folder: string;
let cluster: Cluster;
let silent: Server;
let front: Front;
let secret: string;
let installed: readonly KubernetesObject[] = [];
const processes = new Map<string, FunctionProcess>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "clusters-e2e-"));
  const admin = apiServer();
  cluster = clusterOf(admin);
  silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { pathSecret, pathSecrets: PATH_SECRETS } = await writePathSecret(folder);
  secret = pathSecret;
  const place = silent.address();
  const bare = { url: "https://webhooks.invalid", caBundle: "" };
  const rights = installation(bare, {}).filter(({ kind = "" }) =>
    /^(Namespace|ServiceAccount|(Cluster)?Role.*)$/.test(kind),
  );
  await createAll(cluster, rights);
  const tokenOf = async (name: string) => {
    const { token } = await asServiceAccount(admin, KRUISE_NAMESPACE, name);
    await writeFile(join(folder, name), token, { mode: 0o600 });
    return join(folder, name);
  };
  const real = {
    CLUSTER_SERVER: admin.url,
    CLUSTER_CA: Buffer.from(admin.caCertificate).toString("base64"),
    CLUSTER_TOKEN: await tokenOf("sidecarset-reconciler"),
    WEBHOOKS_TOKEN: await tokenOf("sidecarset-webhooks"),
    VIEWER_TOKEN: await tokenOf("sidecarset-viewer"),
  };
  const table = {
    real,
    down: { ...real, CLUSTER_SERVER: "https://127.0.0.1:1" },
    silent: { ...real, CLUSTER_SERVER: `https://127.0.0.1:${typeof place === "object" ? place?.port : 0}` },
  };
  const CLUSTERS = JSON.stringify(table);
  vi.stubEnv("CLUSTERS", CLUSTERS);
  const env = { CLUSTERS, AUTHENTICATION: "secret-path", PATH_SECRETS, LOG_LEVEL: "warn" };
  for (const name of [...Object.values(FUNCTIONS), "rollout"]) {
    await bundle(name, join(folder, name));
    processes.set(name, await startFunction({ folder: join(folder, name), env }));
  }
  front = await openFront({ answer: answered, close: async () => undefined });
  const address = { url: front.url, caBundle: front.caBundle, pathSecret, cluster: "real" };
  installed = installation(address, { podFailurePolicy: "Fail", isUnfenced: true });
  await createAll(cluster, installed);
  await untilInForce(cluster);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await removeAll(cluster, installed.toReversed());
  await Promise.all([...processes.values()].map((one) => one.kill()));
  await front?.close();
  silent?.close();
  await rm(folder, { recursive: true, force: true });
});

/** Calls the function that the path's last part names, as a front door does, and returns its answer. */
async function answered(url: string, body: string) {
  const [path = "", query = ""] = url.split("?");
  const name = FUNCTIONS[path.slice(path.lastIndexOf("/"))] ?? "";
  const event = { ...httpEvent(path, body), rawQueryString: query };
  const answer = (await processes.get(name)?.invoke(event, 20_000)) as
    | { statusCode: number; body?: string }
    | undefined;
  return { code: answer?.statusCode ?? 404, body: answer?.body ?? "" };
}

const podOf = (name: string) =>
  newPod({ name, namespace: DEFAULT, labels: LABELS }, { containers: [{ name: "main", image: "main:1" }] });

function passOver(event: object): Promise<unknown> {
  return processes.get("rollout")?.invoke(event, PASS_MS) ?? Promise.reject(new Error("there is no function rollout"));
}

it("pods of the real cluster get their sidecars, while the requests of the other clusters fail", async () => {
  await cluster.create(SIDECARSETS, {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: NAME },
    spec: {
      selector: { matchLabels: LABELS },
      containers: [{ name: "agent", image: "agent:v1" }],
      updateStrategy: { maxUnavailable: "100%" },
    },
  });
  const ofOther = (name: string) => {
    const path = `/clusters/${name}/s/${pathSecretOf(secret, `/clusters/${name}/mutate-pod`)}/mutate-pod`;
    return answered(`${path}?timeout=2s`, admissionReview(podOf("other"), ["", "v1", "pods"]));
  };
  for (const name of ["down", "silent", "silent", "silent"]) expect((await ofOther(name)).code).toBe(500);
  for (const name of ["one", "two"]) {
    const { spec } = await cluster.create<Pod>(PODS, podOf(`${NAME}-${name}`));
    expect(spec.containers.map(({ image }) => image)).toContain("agent:v1");
  }
});

it("a pass over the real cluster rolls out, and a pass over the unreachable cluster fails with that cluster's name", async () => {
  await until("the pods are ready", async () => {
    const { items } = await cluster.list<Pod>(PODS, { namespace: DEFAULT, labelSelector: `app=${NAME}` });
    return items.every(({ status }) =>
      status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True"),
    );
  });
  const operations = [{ op: "replace" as const, path: "/spec/containers/0/image", value: "agent:v2" }];
  await cluster.patch<SidecarSet>(SIDECARSETS, { name: NAME }, { type: "json", operations });
  expect(await passOver({ cluster: "real" })).toMatchObject({ problems: [] });
  const { items } = await cluster.list<Pod>(PODS, { namespace: DEFAULT, labelSelector: `app=${NAME}` });
  expect(items.map(({ spec }) => spec.containers.find(({ name }) => name === "agent")?.image)).toEqual([
    "agent:v2",
    "agent:v2",
  ]);
  const failed = await passOver({ cluster: "down" }).then(String, String);
  expect(failed).toContain("nothing listens on https://127.0.0.1:1");
  const [line] =
    processes
      .get("rollout")
      ?.logLines()
      .filter((one) => "cluster" in one && one.cluster === "down") ?? [];
  expect(line).toBeDefined();
});

it("status --all-clusters shows the real cluster, and why the other clusters cannot be read", async () => {
  const { code, stdout } = await runHere(["status", "--all-clusters", "--request-timeout", "1s"]);
  const rows = stdout.trimEnd().split("\n");
  expect(rows.find((row) => row.startsWith("real"))).toContain(NAME);
  expect(rows.find((row) => row.startsWith("down"))).toContain("not read");
  expect(rows.find((row) => row.startsWith("silent"))).toContain("not read");
  expect(code).toBe(5);
});

it("after the failures a pod of the real cluster still gets its sidecars", async () => {
  const { spec } = await cluster.create<Pod>(PODS, podOf(`${NAME}-three`));
  expect(spec.containers.map(({ image }) => image)).toContain("agent:v2");
  for (const name of ["one", "two", "three"])
    await cluster.delete(PODS, { namespace: DEFAULT, name: `${NAME}-${name}` });
  await cluster.delete(SIDECARSETS, { name: NAME });
});
