/** What of the pod webhook's registration is read, and that a change of it takes nothing away and overwrites nobody's. */
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

describe("of a registration is read", () => {
  it("nothing where there is none, and where it is about no pods", async () => {
    expect(await readPodRegistration(cluster)).toBeUndefined();
    await register([webhook("sidecarset.kb.io", [OURS])]);
    expect(await readPodRegistration(cluster)).toBeUndefined();
  });

  it("no condition where it has none, or somebody else's only", async () => {
    await register([webhook("a.kb.io", [OURS]), webhook(POD_WEBHOOK)]);
    expect(await readPodRegistration(cluster)).toMatchObject({ condition: undefined, reliedOnAt: undefined });
    await cluster.delete(MUTATING_WEBHOOK_CONFIGURATIONS, KEY);
    await register([webhook("a.kb.io", [OURS]), webhook(POD_WEBHOOK, [OTHER])]);
    expect(await readPodRegistration(cluster)).toMatchObject({ condition: undefined });
  });

  it("its condition, and when it was relied on", async () => {
    await register([webhook(POD_WEBHOOK, [OTHER, OURS])], { [RELIED_ON_ANNOTATION]: WRITTEN_AT, a: "b" });
    expect(await readPodRegistration(cluster)).toMatchObject({ condition: "false", reliedOnAt: WRITTEN_AT });
  });

  it("the one of the former name, unless there is one of the new name", async () => {
    await register([webhook(POD_WEBHOOK, [OURS])], {}, FORMER);
    expect(await readStored()).toMatchObject({ condition: "false", stored: { metadata: FORMER } });
    await register([webhook(POD_WEBHOOK)]);
    expect(await readStored()).toMatchObject({ condition: undefined, stored: { metadata: KEY } });
  });

  it("the one of the new name also when it gets its name just then", async () => {
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

  it("an API server's trouble as such", async () => {
    for (const code of [403, 500]) await expect(readPodRegistration(failing(code))).rejects.toMatchObject({ code });
  });
});

describe("a registration that is written", () => {
  const conditionsOf = async () => {
    const { stored } = await readStored();
    return stored.webhooks?.map(({ matchConditions }) => matchConditions);
  };

  it("keeps what others have put there", async () => {
    await register([webhook("a.kb.io", [OTHER]), webhook(POD_WEBHOOK, [OURS, OTHER])], { a: "b" });
    const next = { condition: "request.name != ''", reliedOnAt: WRITTEN_AT };
    expect(await writePodRegistration(cluster, await readStored(), next)).toBeUndefined();
    const ours = { name: NEEDS_WEBHOOK_CONDITION, expression: next.condition };
    expect(await conditionsOf()).toEqual([[OTHER], [OTHER, ours]]);
    expect((await readStored()).stored.metadata?.annotations).toEqual({ a: "b", [RELIED_ON_ANNOTATION]: WRITTEN_AT });
  });

  it("has no condition any more, and the annotation that it had", async () => {
    await register([webhook(POD_WEBHOOK, [OURS, OTHER])], { [RELIED_ON_ANNOTATION]: WRITTEN_AT });
    const next = { condition: undefined, reliedOnAt: undefined };
    expect(await writePodRegistration(cluster, await readStored(), next)).toBeUndefined();
    expect(await conditionsOf()).toEqual([[OTHER]]);
    expect(await readStored()).toMatchObject({ condition: undefined, reliedOnAt: WRITTEN_AT });
  });

  it("has one for the first time", async () => {
    await register([webhook(POD_WEBHOOK)]);
    const next = { condition: "true", reliedOnAt: undefined };
    expect(await writePodRegistration(cluster, await readStored(), next)).toBeUndefined();
    expect(await conditionsOf()).toEqual([[{ name: NEEDS_WEBHOOK_CONDITION, expression: "true" }]]);
    expect((await readStored()).stored.metadata?.annotations ?? {}).toEqual({});
  });

  it("is not the one that was read: somebody changed it, or took it away", async () => {
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

  it("is the one that was read, and a policy refuses the write: that is no race", async () => {
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
  ])("is perhaps not written: $code is an $isToldAs", async ({ code, isToldAs }) => {
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
