/** Tests how the API server authenticates to webhooks, and that `serve` answers nobody else. */

import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Server, startServer } from "../../functions/server/serve.ts";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import { installation } from "../../shared/install/manifests.ts";
import { accessObjects, peopleObjects } from "../../shared/install/rbac/access.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS, type Resource, SIDECARSETS } from "../../shared/kube/port.ts";
import { parseAuthentication } from "../../shared/settings/authentication-settings.ts";
import { registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { CONVERT_PATH, MUTATE_POD_PATH, MUTATE_SIDECARSET_PATH } from "../../shared/webhook/server/paths.ts";
import { defineGadgets, gadget, removeGadgets } from "../contract/gadgets.ts";
import { startWebhookServer } from "../contract/webhook-server.ts";
import { addAttacks } from "../support/attacks.ts";
import { listedPod } from "../support/objects.ts";
import { writePathSecret, writeTlsFiles } from "../webhook/cluster.ts";
import { controlPlane, restartApiServer } from "./support/access.ts";
import { clusterOf, writeKubeconfig } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { createAll, removeAll, untilInForce } from "./support/installed.ts";
import { until } from "./support/until.ts";
import type { ClientFiles, Credential } from "./support/webhook-credentials.ts";

const NAME = "authenticated";
const LABELS = { authenticated: "yes" };
const MUTATING: Resource = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  plural: "mutatingwebhookconfigurations",
  namespaced: false,
};
const SET = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: NAME },
  spec: { selector: { matchLabels: LABELS }, containers: [{ name: "agent", image: "agent:v1" }] },
};
const POD = listedPod(
  { name: NAME, namespace: "default", labels: LABELS },
  { containers: [{ name: "main", image: "nginx:1.29" }] },
);

const REVIEW = {
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request: {
    uid: "1",
    operation: "CREATE",
    resource: { group: "", version: "v1", resource: "pods" },
    namespace: "default",
    name: NAME,
    object: POD,
  },
};

let cluster: Cluster;
let folder: string;
let server: Server;
let pathSecret: string;
let installed: readonly KubernetesObject[];
beforeAll(async () => {
  cluster = clusterOf(controlPlane());
});

/** Starts `serve` as a person does, with the settings for this credential of the API server. */
async function serveBy(credential: Credential): Promise<void> {
  const { webhookCredentials: known } = controlPlane();
  folder = await mkdtemp(join(tmpdir(), "sidecarset-authentication-"));
  const { certificate, ...tls } = await writeTlsFiles(folder);
  const secret = await writePathSecret(folder);
  pathSecret = secret.pathSecret;
  const tokens = join(folder, "tokens");
  await writeFile(tokens, `${known.token}\n`);
  const asked = {
    certificate: { AUTHENTICATION: "client-certificate", CLIENT_NAMES: known.clientName },
    token: { AUTHENTICATION: "bearer-token", BEARER_TOKENS: tokens },
  }[credential];
  server = await startServer({
    ...tls,
    ...(credential === "certificate" ? { clientCa: known.clientCa } : {}),
    authentication: parseAuthentication({ ...asked, PATH_SECRETS: secret.pathSecrets }),
    kubeconfig: await writeKubeconfig(join(folder, "kubeconfig"), controlPlane()),
    host: "127.0.0.1",
    port: 0,
    tickMs: 60_000,
  });
  const address = { url: `https://127.0.0.1:${server.port}`, caBundle: Buffer.from(certificate).toString("base64") };
  const objects = installation({ ...address, conversion: { ...address, pathSecret } }, { podFailurePolicy: "Fail" });
  await createAll(cluster, objects);
  installed = objects.slice(1 + accessObjects().length + peopleObjects().length).toReversed();
  await untilInForce(cluster);
}

interface Call {
  readonly path?: string;
  readonly client?: ClientFiles;
  readonly authorization?: string;
}

/** Returns the status code of a request that does not come from an API server. */
function call({ path = MUTATE_POD_PATH, client, authorization }: Call): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`https://127.0.0.1:${server.port}${path}`, {
      method: "POST",
      rejectUnauthorized: false,
      agent: false,
      headers: { "content-type": "application/json", ...(authorization === undefined ? {} : { authorization }) },
      ...(client === undefined ? {} : { cert: readFileSync(client.certificate), key: readFileSync(client.key) }),
    });
    outgoing.on("error", reject);
    outgoing.on("response", (incoming) => {
      incoming.resume();
      incoming.on("end", () => resolve(incoming.statusCode));
    });
    outgoing.end(JSON.stringify(REVIEW));
  });
}

const OTHER: Readonly<Record<Credential, Credential>> = { certificate: "token", token: "certificate" };

/** Returns a call of a known caller, and calls of unknown ones. */
function callsBy(credential: Credential): readonly [Call, Readonly<Record<string, Call>>] {
  const { client, otherClient, token } = controlPlane().webhookCredentials;
  const known = { certificate: { client }, token: { authorization: `Bearer ${token}` } };
  return [
    known[credential],
    {
      "without a credential": {},
      "with the secret path": { path: registeredPath(pathSecret, MUTATE_POD_PATH) },
      "with the other credential": known[OTHER[credential]],
      "with another name": { client: otherClient },
      "with another token": { authorization: `Bearer ${token.split("").reverse().join("")}` },
      "without the secret path of conversions": { ...known[credential], path: CONVERT_PATH },
    },
  ];
}

describe.each(["token", "certificate"] as const)("an API server that shows webhooks a %s", (credential) => {
  beforeAll(async () => {
    await restartApiServer(credential);
    await serveBy(credential);
  });
  afterAll(async () => {
    await removeAll(cluster, installed ?? []);
    await server?.close();
    await rm(folder, { recursive: true, force: true });
  });

  it("a caller with this proof is answered: pods are injected, SidecarSets get defaults, are refused and converted", async () => {
    await cluster.create(SIDECARSETS, SET);
    const injected = async () => {
      const pod = await cluster.create<Pod>(PODS, POD, { dryRun: true });
      return pod.metadata?.annotations?.[INJECTED_LIST_ANNOTATION];
    };
    // The webhook's list of SidecarSets may be a second old.
    await until("a pod is injected", async () => (await injected()) === NAME);
    const bad = { ...SET, metadata: { name: `${NAME}-too` } };
    const refusal = await cluster.create(SIDECARSETS, bad, { dryRun: true }).catch((error: unknown) => error);
    expect(isKubeError(refusal) && refusal.message).toMatch(/vsidecarset\.kb\.io.*denied the request/);
    const older = await cluster.get<KubernetesObject>({ ...SIDECARSETS, version: "v1alpha1" }, { name: NAME });
    expect(older).toMatchObject({ apiVersion: "apps.kruise.io/v1alpha1", metadata: { name: NAME } });
  });

  it("no caller without this proof is answered", async () => {
    const [known, strangers] = callsBy(credential);
    expect(await call(known)).toBe(200);
    for (const [who, stranger] of Object.entries(strangers))
      expect({ who, code: await call(stranger) }).toEqual({ who, code: 401 });
    addFigure("strangers that serve turned away", Object.keys(strangers).length);
    addAttacks(Object.keys(strangers).length);
  });

  it("the API server shows its proof for admissions of pods and SidecarSets, and not for conversions", async () => {
    const { clientName, token } = controlPlane().webhookCredentials;
    const probe = await startWebhookServer();
    const webhooks = [MUTATE_POD_PATH, MUTATE_SIDECARSET_PATH].map((path, index) => ({
      name: `probe-${index}.example.com`,
      clientConfig: { url: probe.url(path), caBundle: probe.caBundle },
      rules: [
        { operations: ["CREATE"], apiGroups: ["*"], apiVersions: ["*"], resources: [["pods", "sidecarsets"][index]] },
      ],
      admissionReviewVersions: ["v1"],
      sideEffects: "None",
    }));
    const conversion = { url: probe.url(CONVERT_PATH), caBundle: probe.caBundle };
    probe.answer(CONVERT_PATH, ({ desiredAPIVersion, objects = [] }) => ({
      result: { status: "Success" },
      convertedObjects: objects.map((object) => ({ ...object, apiVersion: desiredAPIVersion })),
    }));
    const context = { cluster };
    const gadgets = await defineGadgets(context, {
      strategy: "Webhook",
      webhook: { clientConfig: conversion, conversionReviewVersions: ["v1"] },
    });
    await cluster.create(MUTATING, { metadata: { name: "probe" }, webhooks } as object);
    const containers = [{ name: "probe", image: "probe:v1" }];
    const set = { ...SET, metadata: { name: "probe" }, spec: { ...SET.spec, containers } };
    try {
      await until("the probe is asked", async () => {
        await cluster.create(PODS, POD, { dryRun: true });
        await cluster.create(SIDECARSETS, set, { dryRun: true });
        await cluster.create(gadgets.v1beta1, gadget(gadgets, "default", {}, "v1beta1"), { dryRun: true });
        return [MUTATE_POD_PATH, MUTATE_SIDECARSET_PATH, CONVERT_PATH].every((path) => probe.callers(path).length > 0);
      });
    } finally {
      await cluster.delete(MUTATING, { name: "probe" });
      await removeGadgets(context, gadgets);
      await probe.close();
    }
    const none = { certificate: undefined, authorization: undefined };
    const shown = {
      certificate: { ...none, certificate: clientName },
      token: { ...none, authorization: `Bearer ${token}` },
    }[credential];
    expect(probe.callers(MUTATE_POD_PATH)[0]).toEqual(shown);
    expect(probe.callers(MUTATE_SIDECARSET_PATH)[0]).toEqual(shown);
    expect(probe.callers(CONVERT_PATH)[0]).toEqual(none);
  });
});
