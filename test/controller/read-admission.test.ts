/** Tests the reads that explain why a pod was admitted without sidecars: its Namespace and the webhooks for pods. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { readNamespace, readRegistrations } from "../../shared/controller/rollout/read-observation.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, MUTATING_WEBHOOK_CONFIGURATIONS, NAMESPACES } from "../../shared/kube/port.ts";
import { startTestCluster, type TestCluster } from "./fixture.ts";

let local: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  local = await startTestCluster();
  cluster = local.cluster;
});
afterAll(() => local?.close());

const refusing = (code: number): Cluster => {
  const refuse = () => Promise.reject(new KubeError("refused", { code, reason: "Unknown" }));
  return { ...cluster, get: refuse, list: refuse };
};

it("readNamespace returns the Namespace with its labels", async () => {
  await cluster.create(NAMESPACES, { metadata: { name: "labelled", labels: { team: "shop" } } });
  expect(await readNamespace(cluster, "labelled")).toMatchObject({
    metadata: { name: "labelled", labels: { team: "shop" } },
  });
});

it("readNamespace returns undefined for a missing Namespace and for a forbidden read", async () => {
  expect(await readNamespace(cluster, "absent")).toBeUndefined();
  expect(await readNamespace(refusing(403), "labelled")).toBeUndefined();
});

it("readNamespace fails when the API server answers 503", async () => {
  await expect(readNamespace(refusing(503), "labelled")).rejects.toMatchObject({ code: 503 });
});

interface Webhook {
  readonly name?: string;
  readonly rules?: readonly object[];
  readonly clientConfig?: object;
}

const service = (path?: string) => ({
  service: { name: "webhook", namespace: "kruise-system", ...(path && { path }) },
});
const rule = (operation: string, resource: string) => ({
  apiGroups: [""],
  apiVersions: ["v1"],
  operations: [operation],
  resources: [resource],
});
const NEW_PODS = rule("CREATE", "pods");
const INJECTOR: Webhook = { name: "pods.example.com", rules: [NEW_PODS], clientConfig: service("/mutate-pod") };

function configuration(name: string, webhooks?: readonly Webhook[]): KubernetesObject {
  const metadata = { name };
  const filled = webhooks?.map((one) => ({ ...one, sideEffects: "None", admissionReviewVersions: ["v1"] }));
  const kind = { apiVersion: "admissionregistration.k8s.io/v1", kind: "MutatingWebhookConfiguration" };
  return { ...kind, metadata, ...(filled ? { webhooks: filled } : {}) } as KubernetesObject;
}

async function namesRead(through: Cluster): Promise<readonly string[] | undefined> {
  return (await readRegistrations(through))?.map(({ name }) => name);
}

async function register(name: string, webhooks?: readonly Webhook[]): Promise<() => Promise<unknown>> {
  await cluster.create(MUTATING_WEBHOOK_CONFIGURATIONS, configuration(name, webhooks));
  return () => cluster.delete(MUTATING_WEBHOOK_CONFIGURATIONS, { name });
}

/** Answers as an API server of an older version, without the defaults and required fields of the present one. */
function listing(webhooks: readonly Webhook[]): Cluster {
  const items = [configuration("listed", webhooks)];
  const list: Cluster["list"] = async (_resource, { keep } = {}) => {
    const metadata = { resourceVersion: "1" };
    return keep ? { metadata, items: [], kept: items.map(keep) } : { metadata, items: items as never };
  };
  return { ...cluster, list };
}

describe("readRegistrations:", () => {
  it.each<[string, Webhook, boolean]>([
    ["OpenKruise's webhook", INJECTOR, true],
    ["our webhook at a URL", { clientConfig: { url: "https://127.0.0.1:1/prod/mutate-pod" } }, true],
    [
      "a webhook with the known name and another path",
      { name: "mpod.kb.io", clientConfig: service("/elsewhere") },
      true,
    ],
    ["a webhook with the known name and no path", { name: "mpod.kb.io", clientConfig: service() }, true],
    ["another webhook with a longer path", { clientConfig: service("/mutate-pod/other") }, false],
    ["another webhook without a path", { clientConfig: service() }, false],
    ["another webhook at a URL", { clientConfig: { url: "https://127.0.0.1:1/other" } }, false],
    ["a webhook for all operations and resources", { rules: [rule("*", "*")] }, true],
    ["a webhook for new pods among other rules", { rules: [rule("UPDATE", "services"), NEW_PODS] }, true],
    ["a webhook only for changed pods", { rules: [rule("UPDATE", "pods")] }, false],
    ["a webhook only for other new objects", { rules: [rule("CREATE", "services")] }, false],
    ["a webhook only for changes of any object", { rules: [rule("UPDATE", "*")] }, false],
    ["a webhook without rules", { rules: [] }, false],
  ])("readRegistrations decides whether a webhook injects into new pods: %s", async (_what, webhook, isOne) => {
    const remove = await register("one", [{ ...INJECTOR, ...webhook }]);
    expect(await namesRead(cluster)).toEqual(isOne ? [webhook.name ?? INJECTOR.name] : []);
    await remove();
  });

  it("readRegistrations returns the injecting webhooks of all configurations", async () => {
    const removals = [
      await register("a-none"),
      await register("b-first", [{ ...INJECTOR, name: "a.example.com" }]),
      await register("c-second", [{ ...INJECTOR, name: "b.example.com" }]),
    ];
    const also = { failurePolicy: "Fail", namespaceSelector: {}, objectSelector: {}, timeoutSeconds: 10 };
    expect(await readRegistrations(cluster)).toMatchObject([
      { ...INJECTOR, ...also, name: "a.example.com" },
      { ...INJECTOR, ...also, name: "b.example.com" },
    ]);
    for (const remove of removals) await remove();
  });

  it.each<[string, Webhook, boolean]>([
    ["without rules", { name: "mpod.kb.io", clientConfig: service("/mutate-pod") }, false],
    ["without operations", { ...INJECTOR, rules: [{ resources: ["pods"] }] }, false],
    ["without resources", { ...INJECTOR, rules: [{ operations: ["CREATE"] }] }, false],
    ["of the known name without clientConfig", { name: "mpod.kb.io", rules: [NEW_PODS] }, true],
    ["of another name without clientConfig", { name: "other.example.com", rules: [NEW_PODS] }, false],
    [
      "of another name with an empty clientConfig",
      { name: "other.example.com", rules: [NEW_PODS], clientConfig: {} },
      false,
    ],
  ])("readRegistrations decides about an incomplete webhook: one %s", async (_what, webhook, isOne) => {
    expect(await namesRead(listing([webhook]))).toEqual(isOne ? [webhook.name] : []);
  });

  it("readRegistrations returns undefined for a forbidden list and fails when the API server answers 503", async () => {
    expect(await readRegistrations(refusing(403))).toBeUndefined();
    await expect(readRegistrations(refusing(503))).rejects.toMatchObject({ code: 503 });
  });
});
