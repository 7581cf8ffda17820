/** What is read to explain why a pod was admitted without sidecars: its Namespace, and the webhooks that are registered for pods. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { readNamespace, readRegistrations } from "../../shared/controller/rollout/read-admission.ts";
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

describe("the Namespace of a pod", () => {
  it("is read with its labels", async () => {
    await cluster.create(NAMESPACES, { metadata: { name: "labelled", labels: { team: "shop" } } });
    expect(await readNamespace(cluster, "labelled")).toMatchObject({
      metadata: { name: "labelled", labels: { team: "shop" } },
    });
  });

  it("is unknown where there is none of that name, and where it may not be read", async () => {
    expect(await readNamespace(cluster, "absent")).toBeUndefined();
    expect(await readNamespace(refusing(403), "labelled")).toBeUndefined();
  });

  it("is not taken for unknown where the API server is in trouble", async () => {
    await expect(readNamespace(refusing(503), "labelled")).rejects.toMatchObject({ code: 503 });
  });
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

/** As an API server of another version might answer: what ours fills in, or insists on, is missing. */
function listing(webhooks: readonly Webhook[]): Cluster {
  const items = [configuration("listed", webhooks)];
  const list: Cluster["list"] = async (_resource, { keep } = {}) => {
    const metadata = { resourceVersion: "1" };
    return keep ? { metadata, items: [], kept: items.map(keep) } : { metadata, items: items as never };
  };
  return { ...cluster, list };
}

describe("the webhooks that inject into new pods", () => {
  it.each<[string, Webhook, boolean]>([
    ["OpenKruise's, by its path", INJECTOR, true],
    ["ours at a URL", { clientConfig: { url: "https://127.0.0.1:1/prod/mutate-pod" } }, true],
    ["one of the known name, at whatever path", { name: "mpod.kb.io", clientConfig: service("/elsewhere") }, true],
    ["one of the known name, at no path", { name: "mpod.kb.io", clientConfig: service() }, true],
    ["another's, at its path", { clientConfig: service("/mutate-pod/other") }, false],
    ["another's, at no path", { clientConfig: service() }, false],
    ["another's, at a URL", { clientConfig: { url: "https://127.0.0.1:1/other" } }, false],
    ["one that is asked about everything", { rules: [rule("*", "*")] }, true],
    ["one that is asked about new pods among others", { rules: [rule("UPDATE", "services"), NEW_PODS] }, true],
    ["one that is asked about changed pods alone", { rules: [rule("UPDATE", "pods")] }, false],
    ["one that is asked about other new objects", { rules: [rule("CREATE", "services")] }, false],
    ["one that is asked about changes of anything", { rules: [rule("UPDATE", "*")] }, false],
    ["one that is asked about nothing", { rules: [] }, false],
  ])("%s", async (_what, webhook, isOne) => {
    const remove = await register("one", [{ ...INJECTOR, ...webhook }]);
    expect(await namesRead(cluster)).toEqual(isOne ? [webhook.name ?? INJECTOR.name] : []);
    await remove();
  });

  it("are those of all configurations, as they are stored", async () => {
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
    ["rules", { name: "mpod.kb.io", clientConfig: service("/mutate-pod") }, false],
    ["operations", { ...INJECTOR, rules: [{ resources: ["pods"] }] }, false],
    ["resources", { ...INJECTOR, rules: [{ operations: ["CREATE"] }] }, false],
    ["clientConfig", { name: "mpod.kb.io", rules: [NEW_PODS] }, true],
    ["clientConfig and a known name", { name: "other.example.com", rules: [NEW_PODS] }, false],
    ["a way there", { name: "other.example.com", rules: [NEW_PODS], clientConfig: {} }, false],
  ])("without %s", async (_what, webhook, isOne) => {
    expect(await namesRead(listing([webhook]))).toEqual(isOne ? [webhook.name] : []);
  });

  it("are unknown where they may not be listed, and not where the API server is in trouble", async () => {
    expect(await readRegistrations(refusing(403))).toBeUndefined();
    await expect(readRegistrations(refusing(503))).rejects.toMatchObject({ code: 503 });
  });
});
