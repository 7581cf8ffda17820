/**
 * Tests reads and writes of the pod webhook's registration: a write neither restores nor overwrites other clients'
 * changes.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import {
  FORMER_WEBHOOK_CONFIGURATION,
  NEEDS_WEBHOOK_CONDITION,
  POD_WEBHOOK,
  RELIED_ON_ANNOTATION,
  WEBHOOK_CONFIGURATION,
} from "../../shared/api/names.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { readPodRegistration, writePodRegistration } from "../../shared/kube/pod-registration.ts";
import { type Cluster, MUTATING_WEBHOOK_CONFIGURATIONS } from "../../shared/kube/port.ts";

const KEY = { name: WEBHOOK_CONFIGURATION };
const FORMER = { name: FORMER_WEBHOOK_CONFIGURATION };
const OTHER = { name: "other", expression: "true" };
const OURS = { name: NEEDS_WEBHOOK_CONDITION, expression: "false" };
const WRITTEN_AT = "2026-01-10T00:00:00Z";

let local: LocalCluster;
let cluster: Cluster;
beforeAll(async () => {
  local = await startLocalCluster();
  const token = async () => local.token;
  cluster = connectCluster({ server: local.url, certificateAuthority: local.caCertificate, token });
});
afterAll(() => local?.close());
beforeEach(async () => {
  for (const key of [KEY, FORMER]) await cluster.delete(MUTATING_WEBHOOK_CONFIGURATIONS, key).catch(() => undefined);
});

function webhook(name: string, matchConditions?: readonly object[]): object {
  return {
    name,
    clientConfig: { url: "https://127.0.0.1:1" },
    rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    failurePolicy: "Ignore",
    ...(matchConditions ? { matchConditions } : {}),
  };
}

async function register(
  webhooks: readonly object[],
  annotations?: Readonly<Record<string, string>>,
  key = KEY,
): Promise<void> {
  await cluster.create(MUTATING_WEBHOOK_CONFIGURATIONS, {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { ...key, ...(annotations ? { annotations } : {}) },
    webhooks,
  } as KubernetesObject);
}

async function readStored() {
  const registration = await readPodRegistration(cluster);
  if (!registration) throw new Error("there is none");
  return registration;
}

const failing = (code: number): Cluster => {
  const fail = () => Promise.reject(new KubeError("trouble", { code, reason: "Unknown" }));
  return { ...cluster, get: fail, patch: fail };
};

describe("readPodRegistration:", () => {
  it("readPodRegistration is undefined without a registration and for one without the pod webhook", async () => {
    expect(await readPodRegistration(cluster)).toBeUndefined();
    await register([webhook("sidecarset.kb.io", [OURS])]);
    expect(await readPodRegistration(cluster)).toBeUndefined();
  });

  it("readPodRegistration has no condition when the pod webhook has none or only others", async () => {
    await register([webhook("a.kb.io", [OURS]), webhook(POD_WEBHOOK)]);
    expect(await readPodRegistration(cluster)).toMatchObject({ condition: undefined, reliedOnAt: undefined });
    await cluster.delete(MUTATING_WEBHOOK_CONFIGURATIONS, KEY);
    await register([webhook("a.kb.io", [OURS]), webhook(POD_WEBHOOK, [OTHER])]);
    expect(await readPodRegistration(cluster)).toMatchObject({ condition: undefined });
  });

  it("readPodRegistration has the condition and the time since when pods rely on it", async () => {
    await register([webhook(POD_WEBHOOK, [OTHER, OURS])], { [RELIED_ON_ANNOTATION]: WRITTEN_AT, a: "b" });
    expect(await readPodRegistration(cluster)).toMatchObject({ condition: "false", reliedOnAt: WRITTEN_AT });
  });

  it("readPodRegistration prefers the new name to the former name", async () => {
    await register([webhook(POD_WEBHOOK, [OURS])], {}, FORMER);
    expect(await readStored()).toMatchObject({ condition: "false", stored: { metadata: FORMER } });
    await register([webhook(POD_WEBHOOK)]);
    expect(await readStored()).toMatchObject({ condition: undefined, stored: { metadata: KEY } });
  });

  it("readPodRegistration finds a registration that is renamed between its two reads", async () => {
    await register([webhook(POD_WEBHOOK)], {}, FORMER);
    const get: Cluster["get"] = async (resource, key) => {
      if (key.name === FORMER.name) {
        await register([webhook(POD_WEBHOOK)]);
        await cluster.delete(MUTATING_WEBHOOK_CONFIGURATIONS, FORMER);
      }
      return cluster.get(resource, key);
    };
    expect(await readPodRegistration({ ...cluster, get })).toMatchObject({ stored: { metadata: KEY } });
  });

  it("readPodRegistration throws the API server's error", async () => {
    for (const code of [403, 500]) await expect(readPodRegistration(failing(code))).rejects.toMatchObject({ code });
  });
});

describe("writePodRegistration:", () => {
  const conditionsOf = async () => {
    const { stored } = await readStored();
    return stored.webhooks?.map(({ matchConditions }) => matchConditions);
  };

  it("a write keeps the conditions and annotations of other owners", async () => {
    await register([webhook("a.kb.io", [OTHER]), webhook(POD_WEBHOOK, [OURS, OTHER])], { a: "b" });
    const next = { condition: "request.name != ''", reliedOnAt: WRITTEN_AT };
    expect(await writePodRegistration(cluster, await readStored(), next)).toBeUndefined();
    const ours = { name: NEEDS_WEBHOOK_CONDITION, expression: next.condition };
    expect(await conditionsOf()).toEqual([[OTHER], [OTHER, ours]]);
    expect((await readStored()).stored.metadata?.annotations).toEqual({ a: "b", [RELIED_ON_ANNOTATION]: WRITTEN_AT });
  });

  it("a write without a condition removes our condition and keeps our annotation", async () => {
    await register([webhook(POD_WEBHOOK, [OURS, OTHER])], { [RELIED_ON_ANNOTATION]: WRITTEN_AT });
    const next = { condition: undefined, reliedOnAt: undefined };
    expect(await writePodRegistration(cluster, await readStored(), next)).toBeUndefined();
    expect(await conditionsOf()).toEqual([[OTHER]]);
    expect(await readStored()).toMatchObject({ condition: undefined, reliedOnAt: WRITTEN_AT });
  });

  it("a write adds a first condition to a registration without conditions", async () => {
    await register([webhook(POD_WEBHOOK)]);
    const next = { condition: "true", reliedOnAt: undefined };
    expect(await writePodRegistration(cluster, await readStored(), next)).toBeUndefined();
    expect(await conditionsOf()).toEqual([[{ name: NEEDS_WEBHOOK_CONDITION, expression: "true" }]]);
    expect((await readStored()).stored.metadata?.annotations ?? {}).toEqual({});
  });

  it("a write fails when somebody changed or deleted the registration since it was read", async () => {
    await register([webhook(POD_WEBHOOK, [OURS])]);
    const before = await readStored();
    const next = { condition: "true", reliedOnAt: undefined };
    const labels = { type: "merge", body: { metadata: { labels: { a: "b" } } } } as const;
    await cluster.patch(MUTATING_WEBHOOK_CONFIGURATIONS, KEY, labels);
    expect(await writePodRegistration(cluster, before, next)).toMatchObject({ code: 422 });
    expect(await conditionsOf()).toEqual([[OURS]]);
    await cluster.delete(MUTATING_WEBHOOK_CONFIGURATIONS, KEY);
    expect(await writePodRegistration(cluster, before, next)).toMatchObject({ code: 404 });
  });

  it("a write that a policy refuses throws, although the registration did not change", async () => {
    await register([webhook(POD_WEBHOOK, [OURS])]);
    const patch = () => Promise.reject(new KubeError("a policy denies it", { code: 422, reason: "Invalid" }));
    const next = { condition: "true", reliedOnAt: undefined };
    const writing = writePodRegistration({ ...cluster, patch }, await readStored(), next);
    await expect(writing).rejects.toMatchObject({ message: "a policy denies it" });
  });

  it.each([
    { code: 409, isToldAs: "answer" },
    { code: 500, isToldAs: "answer" },
    { code: 403, isToldAs: "failure" },
  ])("writePodRegistration reports a write that failed with $code as an $isToldAs", async ({ code, isToldAs }) => {
    await register([webhook(POD_WEBHOOK)]);
    const next = { condition: "true", reliedOnAt: undefined };
    const writing = writePodRegistration(failing(code), await readStored(), next);
    const end = await writing.then(
      (error) => ({ isToldAs: "answer", code: error?.code }),
      ({ code: thrown }) => ({ isToldAs: "failure", code: thrown }),
    );
    expect(end).toEqual({ isToldAs, code });
  });
});
