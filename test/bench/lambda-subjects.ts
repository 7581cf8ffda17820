/** The measured functions, each with an event that it answers, and a function that does nothing. */

import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bundle } from "../../infra/build.ts";
import type { LocalCluster } from "../../infra/local/cluster.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { sidecarSetCrd } from "../../shared/install/crd/sidecarset-crd.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { admissionReview, httpEvent } from "../lambda/http-event.ts";
import type { FunctionOptions } from "../lambda/runtime-process.ts";

export interface Subject extends FunctionOptions {
  readonly name: string;
  readonly event: unknown;
}

const DEFINITIONS = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};
const SIDECARSET = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "log-agent" },
  spec: {
    selector: { matchLabels: { app: "web" } },
    containers: [
      {
        name: "agent",
        image: "fluent/fluent-bit:4.1.0",
        volumeMounts: [{ name: "logs", mountPath: "/var/log" }],
        resources: { requests: { cpu: "50m", memory: "64Mi" } },
      },
    ],
    volumes: [{ name: "logs", emptyDir: {} }],
  },
};
const OTHER = {
  ...SIDECARSET,
  metadata: { name: "other" },
  spec: { ...SIDECARSET.spec, selector: { matchLabels: { app: "other" } } },
};
const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { generateName: "web-", namespace: "default", labels: { app: "web" } },
  spec: {
    containers: [
      {
        name: "web",
        image: "nginx:1.29",
        resources: { requests: { cpu: "250m", memory: "256Mi" }, limits: { memory: "512Mi" } },
      },
    ],
  },
};
const CONVERSION = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "ConversionReview",
  request: { uid: "u", desiredAPIVersion: "apps.kruise.io/v1alpha1", objects: [SIDECARSET] },
};

/**
 * Bundles the functions into the folder, and creates one SidecarSet that matches the pod. `names`: the functions;
 * absent: all.
 */
export async function prepareSubjects(
  folder: string,
  local: LocalCluster,
  names?: readonly string[],
): Promise<readonly Subject[]> {
  await installSidecarSet(local);
  const secret = randomBytes(32).toString("base64url");
  const [secrets, token] = [join(folder, "path-secrets"), join(folder, "token")];
  await writeFile(secrets, `${secret}\n`);
  await writeFile(token, local.token);
  const callers = { AUTHENTICATION: "secret-path", PATH_SECRETS: secrets, LOG_LEVEL: "warn" };
  const cluster = {
    CLUSTER_TOKEN: token,
    CLUSTER_SERVER: local.url,
    CLUSTER_CA: Buffer.from(local.caCertificate).toString("base64"),
  };
  const sidecarSets = ["apps.kruise.io", "v1beta1", "sidecarsets"] as const;
  const at = (path: string, body: string) => httpEvent(registeredPath(secret, path), body);
  const isWanted = ({ name }: { readonly name: string }) => names?.includes(name) ?? true;
  const subject = async (name: string, env: Readonly<Record<string, string>>, event: unknown): Promise<Subject> => {
    if (isWanted({ name })) await bundle(name, join(folder, name));
    return { name, folder: join(folder, name), env, event };
  };
  const empty = join(folder, "empty");
  await mkdir(empty);
  await writeFile(join(empty, "index.js"), 'exports.handler = async () => ({ statusCode: 200, body: "" });\n');
  const all = [
    { name: "empty", folder: empty, event: at("/", "{}") },
    await subject(
      "mutate-sidecarset",
      callers,
      at("/mutate-apps-kruise-io-sidecarset", admissionReview(SIDECARSET, sidecarSets)),
    ),
    await subject(
      "mutate-pod",
      { ...callers, ...cluster },
      at("/mutate-pod", admissionReview(POD, ["", "v1", "pods"])),
    ),
    await subject(
      "validate-sidecarset",
      { ...callers, ...cluster },
      at("/validate-apps-kruise-io-sidecarset", admissionReview(defaulted(OTHER), sidecarSets)),
    ),
    await subject("convert-sidecarset", callers, at("/convert", JSON.stringify(CONVERSION))),
    await subject("rollout", cluster, {}),
  ];
  return all.filter(isWanted);
}

/** Installs a SidecarSet with the webhook's defaults. */
export async function installSidecarSet({ url, caCertificate, token }: LocalCluster): Promise<void> {
  const client = connectCluster({ server: url, certificateAuthority: caCertificate, token: async () => token });
  const definition = sidecarSetCrd({ url: "https://webhooks.invalid", caBundle: "" });
  await client.create(DEFINITIONS, { ...definition, spec: { ...definition.spec, conversion: { strategy: "None" } } });
  await client.create(
    { group: "", version: "v1", plural: "namespaces", namespaced: false },
    { metadata: { name: "kruise-system" } },
  );
  await client.create(SIDECARSETS, defaulted(SIDECARSET));
}

function defaulted(object: object): KubernetesObject {
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  const admission = mutateSidecarSet({ uid: "u", operation: "CREATE", resource, object });
  if (admission.kind === "allowed" && admission.object !== undefined) return admission.object;
  throw new Error("the SidecarSet is refused");
}
