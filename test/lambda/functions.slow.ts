import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { DEPLOYED } from "../../infra/aws/deployed.ts";
import { type BundleSize, bundle, FUNCTIONS } from "../../infra/build.ts";
import type { AdmissionReview, ConversionReview } from "../../shared/api/admission.ts";
import { SIDECARSETS as SIDECARSET_RESOURCE } from "../../shared/kube/port.ts";
import { printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { pathDigestsOf, registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { newPod } from "../support/objects.ts";
import { type ServedCluster, startServedCluster } from "../webhook/cluster.ts";

type Handler = (event: APIGatewayProxyEventV2) => Promise<APIGatewayProxyStructuredResultV2>;

let cluster: ServedCluster;
let directory: string;
const sizes = new Map<string, BundleSize>();
const handlers = new Map<string, Handler>();

/** The bundles that are deployed, loaded as Lambda loads them. */
beforeAll(async () => {
  cluster = await startServedCluster();
  directory = await mkdtemp(join(tmpdir(), "sidecarset-bundles-"));
  process.env["KUBECONFIG"] = cluster.kubeconfig;
  process.env["LOG_LEVEL"] = "error";
  process.env["AUTHENTICATION"] = "secret-path";
  // These functions are deployed with path-digests; doors.test.ts uses the secrets.
  const paths = DEPLOYED.flatMap((deployed) => deployed.paths ?? []);
  process.env["PATH_DIGESTS"] = printPathDigests(pathDigestsOf([cluster.pathSecret], paths));
  for (const name of FUNCTIONS) {
    const folder = join(directory, name);
    sizes.set(name, await bundle(name, folder));
    const loaded = (await import(pathToFileURL(join(folder, "index.js")).href)) as { handler: Handler };
    handlers.set(name, loaded.handler);
  }
});
afterAll(async () => {
  await cluster.close();
  await rm(directory, { recursive: true, force: true });
});

/** Returns an event of API Gateway's HTTP API or of a Function URL: payload version 2.0. */
function event(path: string, body: string, more: Partial<APIGatewayProxyEventV2> = {}): APIGatewayProxyEventV2 {
  const headers = { "content-type": "application/json", host: "x.lambda-url.eu-central-1.on.aws" };
  const http = {
    method: "POST",
    path,
    protocol: "HTTP/1.1",
    sourceIp: "192.0.2.1",
    userAgent: "kube-apiserver-admission",
  };
  const requestContext = { http } as APIGatewayProxyEventV2["requestContext"];
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: registeredPath(cluster.pathSecret, path),
    rawQueryString: "timeout=30s",
    headers,
    requestContext,
    body,
    isBase64Encoded: false,
    ...more,
  };
}

async function invoke(name: string, given: APIGatewayProxyEventV2) {
  const handler = handlers.get(name);
  if (handler === undefined) throw new Error(`no function ${name}`);
  const { statusCode, body = "" } = await handler(given);
  return { statusCode, review: JSON.parse(body) as AdmissionReview & ConversionReview };
}

const sidecarSet = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata: { name: "web" }, spec: {} };
const pod = newPod({ name: "web", namespace: "default" });
function review(object: object, [group, version, resource]: readonly [string, string, string]): string {
  const request = {
    uid: "u",
    operation: "CREATE",
    resource: { group, version, resource },
    namespace: "default",
    object,
  };
  return JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
}
const SIDECARSETS = ["apps.kruise.io", "v1beta1", "sidecarsets"] as const;

describe("bundles with events of Lambda:", () => {
  test("mutate-pod allows a pod without a SidecarSet", async () => {
    const { statusCode, review: answer } = await invoke(
      "mutate-pod",
      event("/mutate-pod", review(pod, ["", "v1", "pods"])),
    );
    expect([statusCode, answer.response]).toEqual([200, { uid: "u", allowed: true }]);
  });

  test("mutate-sidecarset answers with a patch of defaults", async () => {
    const { review: answer } = await invoke(
      "mutate-sidecarset",
      event("/mutate-apps-kruise-io-sidecarset", review(sidecarSet, SIDECARSETS)),
    );
    expect(answer.response).toMatchObject({ uid: "u", allowed: true, patchType: "JSONPatch" });
  });

  test("mutate-sidecarset accepts a body in base64", async () => {
    const body = Buffer.from(review(sidecarSet, SIDECARSETS)).toString("base64");
    const given = event("/mutate-apps-kruise-io-sidecarset", body, { isBase64Encoded: true });
    expect((await invoke("mutate-sidecarset", given)).review.response).toMatchObject({ uid: "u", allowed: true });
  });

  test("validate-sidecarset refuses an invalid SidecarSet", async () => {
    const { review: answer } = await invoke(
      "validate-sidecarset",
      event("/validate-apps-kruise-io-sidecarset", review(sidecarSet, SIDECARSETS)),
    );
    expect(answer.response).toMatchObject({ uid: "u", allowed: false, status: { code: 422, reason: "Invalid" } });
  });

  test("convert-sidecarset converts a SidecarSet to v1alpha1", async () => {
    const request = { uid: "u", desiredAPIVersion: "apps.kruise.io/v1alpha1", objects: [sidecarSet] };
    const body = JSON.stringify({ apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview", request });
    const { review: answer } = await invoke("convert-sidecarset", event("/convert", body));
    expect(answer.response).toMatchObject({ uid: "u", result: { status: "Success" } });
    expect(answer.response).toMatchObject({ convertedObjects: [{ apiVersion: "apps.kruise.io/v1alpha1" }] });
  });

  test.each([
    ["a request to another function's path with 404", () => event("/mutate-pod", "{}"), 404],
    ["a body that is not JSON with 400", () => event("/mutate-apps-kruise-io-sidecarset", "{"), 400],
    ["a request without a body with 400", () => event("/mutate-apps-kruise-io-sidecarset", ""), 400],
    [
      "a request without a content type with 415",
      () => event("/mutate-apps-kruise-io-sidecarset", "{}", { headers: { host: "x" } }),
      415,
    ],
    ["a path without a secret with 401", () => event("", "{}", { rawPath: "/mutate-apps-kruise-io-sidecarset" }), 401],
  ] as const)("mutate-sidecarset answers %s", async (...[, given, code]) => {
    expect((await invoke("mutate-sidecarset", given())).statusCode).toBe(code);
  });
});

/** Upper limits of the bytes that a cold start loads, and of the parts that load later. */
describe("the size of bundles:", () => {
  const MAX_EAGER: Readonly<Record<string, number>> = {
    "mutate-pod": 75_000,
    "mutate-sidecarset": 63_000,
    "convert-sidecarset": 60_000,
    "validate-sidecarset": 173_000,
    rollout: 405_000,
    "dry-run": 405_250,
    "ordered-set": 400_000,
  };
  const MAX_LAZY: Readonly<Record<string, number>> = {
    "@kubernetes/client-node": 125_000,
    "regular-expression": 155_000,
  };

  test.each(FUNCTIONS)("the bundle of %s is smaller than its limit", (name) => {
    const { eager, lazy } = sizes.get(name) ?? { eager: 0, lazy: {} };
    expect(eager).toBeGreaterThan(10_000);
    expect(eager).toBeLessThanOrEqual(MAX_EAGER[name] ?? 0);
    for (const [part, bytes] of Object.entries(lazy)) {
      expect(bytes, part).toBeGreaterThan(0);
      expect(bytes, part).toBeLessThanOrEqual(MAX_LAZY[part] ?? 20_000);
    }
  });

  test("the bundles load the parts for rare requests later", () => {
    const lazy = (name: string) => Object.keys(sizes.get(name)?.lazy ?? {});
    expect(lazy("mutate-sidecarset").toSorted()).toEqual([
      "aws4",
      "load-balancer",
      "read-secret",
      "several-clusters",
      "values-in-place",
    ]);
    expect(lazy("mutate-pod")).toEqual(expect.arrayContaining(["regular-expression", "@kubernetes/client-node"]));
    expect(lazy("validate-sidecarset")).toEqual(expect.arrayContaining(["regular-expression"]));
  });
});

describe("parts that load later:", () => {
  /** Returns the handler after a cold start with these feature gates. */
  async function loadWithGates(name: string, gates: string): Promise<Handler> {
    const folder = join(directory, name);
    await bundle("mutate-pod", folder);
    vi.stubEnv("FEATURE_GATES", gates);
    try {
      return ((await import(pathToFileURL(join(folder, "index.js")).href)) as { handler: Handler }).handler;
    } finally {
      vi.unstubAllEnvs();
    }
  }

  test("mutate-pod reads the feature gates at its start and refuses an unknown gate", async () => {
    const handler = await loadWithGates("gated", "KruisePodReadinessGate=true");
    const { body = "" } = await handler(event("/mutate-pod", review(pod, ["", "v1", "pods"])));
    const patch = Buffer.from(JSON.parse(body).response.patch, "base64").toString();
    expect(patch).toContain('"/spec/readinessGates"');
    await expect(loadWithGates("misspelt", "PodReadinessGate=true")).rejects.toThrow(
      "FEATURE_GATES names PodReadinessGate, which is none of",
    );
  });

  const selector = { matchLabels: { app: "late" } };
  const agent = { name: "agent", image: "agent:1" };
  const derived = {
    ...agent,
    resourcesPolicy: {
      targetContainersMode: "sum",
      targetContainersNameRegex: "^ma.n$",
      resourcesExpr: { requests: { cpu: "50%*cpu" } },
    },
  };

  test("mutate-pod computes a sidecar's resources from a regular expression and a resource expression", async () => {
    await cluster.client.create(SIDECARSET_RESOURCE, {
      ...sidecarSet,
      metadata: { name: "late" },
      spec: { selector, containers: [derived] },
    });
    const [main] = pod.spec.containers;
    const given = {
      ...pod,
      metadata: { ...pod.metadata, labels: { app: "late" } },
      spec: { containers: [{ ...main, resources: { requests: { cpu: "200m" } } }] },
    };
    const body = review(given, ["", "v1", "pods"]);
    const answer = async () => (await invoke("mutate-pod", event("/mutate-pod", body))).review.response;
    await expect.poll(async () => (await answer())?.patch).toBeDefined();
    const patch = Buffer.from((await answer())?.patch ?? "", "base64").toString();
    expect(JSON.parse(patch)).toContainEqual(
      expect.objectContaining({ value: expect.objectContaining({ resources: { requests: { cpu: "100m" } } }) }),
    );
  });

  test("validate-sidecarset refuses a malformed regular expression", async () => {
    const bad = { ...derived, resourcesPolicy: { ...derived.resourcesPolicy, targetContainersNameRegex: "(" } };
    const given = { ...sidecarSet, spec: { selector, containers: [bad] } };
    const { review: answer } = await invoke(
      "validate-sidecarset",
      event("/validate-apps-kruise-io-sidecarset", review(given, SIDECARSETS)),
    );
    expect(answer.response?.status?.message).toContain(
      "invalid regex pattern: error parsing regexp: missing closing )",
    );
  });

  test("validate-sidecarset refuses an ordered StatefulSet with an unknown pod management policy", async () => {
    const template = { metadata: { labels: { app: "db" } }, spec: { containers: [agent] } };
    const spec = { selector: { matchLabels: { app: "db" } }, template, podManagementPolicy: "Sideways" };
    const given = { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet", metadata: { name: "db" }, spec };
    const { review: answer } = await invoke(
      "validate-sidecarset",
      event("/validate-apps-kruise-io-statefulset", review(given, ["apps.kruise.io", "v1beta1", "statefulsets"])),
    );
    expect(answer.response?.status?.message).toContain('spec.podManagementPolicy: Invalid value: "Sideways"');
  });
});
