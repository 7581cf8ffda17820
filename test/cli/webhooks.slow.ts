/** Tests the output of `webhooks`, and which pods the API server then sends. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { parseAllDocuments } from "yaml";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { installation } from "../../shared/install/manifests.ts";
import { connect } from "../../shared/kube/connect.ts";
import { LEASES, NAMESPACES, type Resource, SIDECARSETS } from "../../shared/kube/port.ts";
import { parsePathDigests } from "../../shared/settings/authentication-settings.ts";
import { pathDigestOf, pathSecretOf, registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { PATIENT } from "../support/patient.ts";
import { runCli } from "./run-cli.ts";

let folder: string;
let cluster: LocalCluster;
const DEFINITIONS: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};
const URL = "https://webhooks.example.com";
const SECRET = "s".repeat(43);
const path = (name: string) => join(folder, name);

interface Registered {
  readonly webhooks?: readonly {
    readonly name: string;
    readonly failurePolicy: string;
    readonly clientConfig: { readonly url: string; readonly caBundle?: string };
    readonly matchConditions?: readonly { readonly expression: string }[];
  }[];
}

async function webhooks(...args: readonly string[]): Promise<readonly NonNullable<Registered["webhooks"]>[number][]> {
  const { code, stdout, stderr } = await runCli(["webhooks", "--url", URL, ...args]);
  expect([code, stderr]).toEqual([0, ""]);
  return parseAllDocuments(stdout).flatMap((document) => [...((document.toJS() as Registered).webhooks ?? [])]);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "webhooks-"));
  cluster = await startLocalCluster();
  await writeFile(path("kubeconfig"), cluster.kubeconfig());
  await writeFile(path("secrets"), `${SECRET}\n${"o".repeat(43)}\n`);
  await writeFile(path("ca.crt"), cluster.caCertificate);
  const client = await connect(path("kubeconfig"));
  const crd = installation({ url: URL }).find(({ kind }) => kind === "CustomResourceDefinition");
  await client.create(DEFINITIONS, crd as KubernetesObject);
  const spec = { selector: { matchLabels: { app: "web" } }, containers: [{ name: "log-agent", image: "agent:1" }] };
  const logs = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata: { name: "logs" }, spec };
  await vi.waitFor(() => client.create(SIDECARSETS, logs), PATIENT);
});

afterAll(async () => {
  await cluster.close();
  await rm(folder, { recursive: true });
});

test("webhooks prints registrations with the URL, the secret of each path and the certificate authority", async () => {
  const all = await webhooks("--path-secrets", path("secrets"), "--ca-bundle", path("ca.crt"));
  expect(all.map(({ clientConfig }) => clientConfig.url)).toEqual([
    `${URL}${registeredPath(SECRET, "/mutate-pod")}`,
    `${URL}${registeredPath(SECRET, "/mutate-apps-kruise-io-sidecarset")}`,
    `${URL}${registeredPath(SECRET, "/announce-apps-kruise-io-sidecarset")}`,
  ]);
  const bundles = all.map(({ clientConfig }) => Buffer.from(clientConfig.caBundle ?? "", "base64").toString());
  expect(new Set(bundles)).toEqual(new Set([cluster.caCertificate]));
});

test("--failure-policy Fail changes the failure policy of the pod webhook from Ignore to Fail", async () => {
  const policies = async (...args: string[]) => (await webhooks(...args)).map(({ failurePolicy }) => failurePolicy);
  expect(await policies()).toEqual(["Ignore", "Fail", "Fail"]);
  expect(await policies("--failure-policy", "Fail")).toEqual(["Fail", "Fail", "Fail"]);
});

test("--from-cluster adds a condition on the labels that the cluster's SidecarSets select", async () => {
  const [pods] = await webhooks("--from-cluster", "--kubeconfig", path("kubeconfig"));
  expect(pods?.matchConditions?.map(({ expression }) => expression)).toEqual([
    expect.stringContaining("kubernetes.io/config.mirror"),
    expect.stringContaining('object.metadata.labels["app"] in ["web"]'),
  ]);
  expect((await webhooks())[0]?.matchConditions).toHaveLength(1);
});

const NEEDS_ALL = { code: 2, stdout: "", stderr: expect.stringContaining("every pod has to be asked about") };
const fromCluster = (env = {}) =>
  runCli(["webhooks", "--url", URL, "--from-cluster", "--kubeconfig", path("kubeconfig")], env);

test("--from-cluster fails when the feature gates of the command line give every pod a readiness gate", async () => {
  expect(await fromCluster({ FEATURE_GATES: "KruisePodReadinessGate=true" })).toMatchObject(NEEDS_ALL);
});

test("--from-cluster fails when the last pass recorded that every pod gets a readiness gate", async () => {
  const client = await connect(path("kubeconfig"));
  const namespace = "kruise-system";
  await client.create(NAMESPACES, { metadata: { name: namespace } });
  const annotations = { "sidecarset.kruise.io/feature-gates": "KruisePodReadinessGate=true" };
  await client.create(LEASES, { metadata: { namespace, name: "sidecarset-rollout", annotations } });
  expect(await fromCluster()).toMatchObject(NEEDS_ALL);
  await client.delete(LEASES, { namespace, name: "sidecarset-rollout" });
  expect(await fromCluster()).toMatchObject({ code: 0, stderr: "" });
});

test("--status-hints adds the registration for pods that become ready", async () => {
  const names = (await webhooks("--status-hints")).map(({ name }) => name);
  expect(names).toEqual(["mpod.kb.io", "msidecarset.kb.io", "vsidecarset.kb.io", "podstatus.sidecarset.kruise.io"]);
});

test("path-secrets prints the secret or digests of each path and never the stored secret", async () => {
  const print = async (...args: readonly string[]) =>
    await runCli(["path-secrets", "--path-secrets", path("secrets"), ...args]);
  const all = await print("-o", "json");
  const { pathSecrets } = JSON.parse(all.stdout) as { readonly pathSecrets: Readonly<Record<string, string>> };
  expect(Object.keys(pathSecrets).length).toBeGreaterThanOrEqual(11);
  for (const [of, secret] of Object.entries(pathSecrets)) expect(`/s/${secret}${of}`).toBe(registeredPath(SECRET, of));
  expect(parseAllDocuments((await print()).stdout).map((document) => document.toJS())).toEqual([{ pathSecrets }]);
  expect((await print("/convert")).stdout).toBe(`${pathSecrets["/convert"]}\n`);
  expect(all.stdout).not.toContain(SECRET);
  const digests = parsePathDigests("printed", (await print("--digests")).stdout);
  expect([...digests.keys()].toSorted()).toEqual([...Object.keys(pathSecrets), "/readyz"].toSorted());
  const ofCluster = parsePathDigests("printed", (await print("--digests", "--cluster", "eu")).stdout);
  expect([...ofCluster.keys()]).toEqual([...digests.keys()].map((path) => `/clusters/eu${path}`));
  expect([...ofCluster.values()].flat().filter((digest) => [...digests.values()].flat().includes(digest))).toEqual([]);
  // Both lines are valid, and the first one is registered.
  for (const [of, secret] of Object.entries(pathSecrets))
    expect(digests.get(of)).toEqual([pathDigestOf(secret), pathDigestOf(pathSecretOf("o".repeat(43), of))]);
  expect(await print("/elsewhere")).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^\/elsewhere: no webhook/),
  });
});

test("--url-of gives one webhook its own address", async () => {
  const all = await webhooks("--url-of", "/mutate-pod=https://pods.example.com", "--path-secrets", path("secrets"));
  expect(all.map(({ clientConfig }) => new globalThis.URL(clientConfig.url).host)).toEqual([
    "pods.example.com",
    "webhooks.example.com",
    "webhooks.example.com",
  ]);
  const wrong = await runCli(["webhooks", "--url", URL, "--url-of", "pods.example.com"]);
  expect(wrong).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^--url-of pods\.example\.com: write PATH=URL/),
  });
});

describe("--static", () => {
  const named = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await runCli([...args, "--path-secrets", path("secrets")]);
    expect([code, stderr]).toEqual([0, ""]);
    return parseAllDocuments(stdout).map((document) => document.toJS() as KubernetesObject & Registered);
  };
  const nameOf = ({ kind, metadata }: KubernetesObject) => `${kind} ${metadata?.name}`;

  test.each(["install", "webhooks"])(
    "%s --static file prints the usual registration as one object whose name ends in .static.k8s.io",
    async (command) => {
      const [registered] = await named("webhooks", "--url", URL, "--failure-policy", "Fail");
      const [file, ...others] = await named(
        ...[command, "--url", URL, "--failure-policy", "Fail", "--static", "file", "--status-hints"],
      );
      expect(others).toEqual([]);
      const name = `${registered?.metadata?.name}.static.k8s.io`;
      expect(file).toEqual({ ...registered, metadata: { name } });
    },
  );

  test("install --static cluster prints the objects of install, with an empty registration that names the file", async () => {
    const [all, rest] = [
      await named("install", "--url", URL),
      await named("install", "--url", URL, "--static", "cluster"),
    ];
    expect(rest.map(nameOf)).toEqual(all.map(nameOf));
    const [empty, ...others] = rest.filter((one, index) => JSON.stringify(one) !== JSON.stringify(all[index]));
    expect(others).toEqual([]);
    expect(empty).toEqual({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
      metadata: {
        name: "kruise-sidecarset-mutating-webhook-configuration",
        annotations: {
          "kubernetes.io/description": expect.stringContaining("webhook-configuration.static.k8s.io from a file"),
          "sidecarset.kruise.io/registered-in": "files-of-api-servers",
        },
      },
    });
  });

  test("compile --static prints a policy and its binding with names that end in .static.k8s.io, and no owner", async () => {
    const compiled = (...args: readonly string[]) =>
      runCli(["compile", "logs", "--to", "map", "--kubeconfig", path("kubeconfig"), ...args]);
    const [plain, printed] = [await compiled(), await compiled("--static")];
    expect([plain.code, printed.code]).toEqual([0, 0]);
    // The API server behaves like Kubernetes before 1.36.
    expect(plain.stderr).toMatch(/^this API server does not serve MutatingAdmissionPolicy/);
    const [policy, binding, ...others] = parseAllDocuments(printed.stdout).map((document) => document.toJS());
    expect(others).toEqual([]);
    expect(plain.stdout).toContain("ownerReferences");
    expect(printed.stdout).not.toContain("ownerReferences");
    expect([policy.metadata.name, binding.metadata.name, binding.spec.policyName]).toEqual(
      Array.from({ length: 3 }, () => "sidecarset-logs.static.k8s.io"),
    );
  });
});
