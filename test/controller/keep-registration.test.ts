/**
 * Tests the match condition of the pod webhook's registration: when passes write it, and when they leave it unchanged.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import {
  FORMER_WEBHOOK_CONFIGURATION,
  NEEDS_WEBHOOK_CONDITION,
  POD_WEBHOOK,
  RELIED_ON_ANNOTATION,
  WEBHOOK_CONFIGURATION,
} from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { keepRegistration } from "../../shared/controller/rollout/keep-registration.ts";
import { callCondition } from "../../shared/core/injection/match/call-condition.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, MUTATING_WEBHOOK_CONFIGURATIONS, SIDECARSETS } from "../../shared/kube/port.ts";
import { sidecarSet, startTestCluster, type TestCluster } from "./fixture.ts";

const NOW = Date.parse("2026-11-27T12:00:00Z");
const OLD_CONDITION = "(request.namespace == 'old')";
const ABOUT_MATCHED = "about pods that SidecarSets match";

interface Registration extends KubernetesObject {
  readonly webhooks: readonly { readonly matchConditions?: readonly { readonly expression: string }[] }[];
}

let local: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  local = await startTestCluster();
  cluster = local.cluster;
  await cluster.create<SidecarSet>(SIDECARSETS, matching("shop"));
  await cluster.create<SidecarSet>(SIDECARSETS, matching("proxy", "edge"));
});
afterAll(() => local?.close());
beforeEach(async () => {
  for (const name of [WEBHOOK_CONFIGURATION, FORMER_WEBHOOK_CONFIGURATION])
    await cluster.delete(MUTATING_WEBHOOK_CONFIGURATIONS, { name }).catch(() => undefined);
});

function matching(name: string, namespace?: string): SidecarSet {
  const { spec, ...rest } = sidecarSet(name, 1, {});
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": namespace ?? "" } };
  return { ...rest, spec: { ...spec, ...(namespace === undefined ? {} : { namespaceSelector }) } };
}

interface Registered {
  readonly name?: string;
  readonly condition?: string;
  readonly reliedOnAt?: string;
}

async function register({ name = WEBHOOK_CONFIGURATION, condition, reliedOnAt }: Registered = {}): Promise<void> {
  const webhook = {
    name: POD_WEBHOOK,
    clientConfig: { url: "https://127.0.0.1:1" },
    rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    failurePolicy: "Ignore",
    ...(condition ? { matchConditions: [{ name: NEEDS_WEBHOOK_CONDITION, expression: condition }] } : {}),
  };
  await cluster.create(MUTATING_WEBHOOK_CONFIGURATIONS, {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { name, ...(reliedOnAt ? { annotations: { [RELIED_ON_ANNOTATION]: reliedOnAt } } : {}) },
    webhooks: [webhook],
  } as KubernetesObject);
}

/** Returns the condition; "about every pod" without a condition, "about none" without webhooks. */
async function stored(name = WEBHOOK_CONFIGURATION): Promise<string> {
  const { webhooks } = await cluster.get<Registration>(MUTATING_WEBHOOK_CONFIGURATIONS, { name });
  if (webhooks.length === 0) return "about none";
  return webhooks[0]?.matchConditions?.[0]?.expression ?? "about every pod";
}

const wanted = () => callCondition([matching("shop"), matching("proxy", "edge")]);

const problems: string[] = [];
beforeEach(() => {
  problems.length = 0;
});

async function keep({ through = cluster, isDryRun = false, KruisePodReadinessGate = false } = {}) {
  const settings = { ...DEFAULT_ROLLOUT_SETTINGS, KruisePodReadinessGate };
  const clock = { ...systemClock, epochMs: () => NOW };
  return await keepRegistration({ cluster: through, clock, isDryRun, settings, problems });
}

it("keepRegistration does nothing and reports no problem when there is no registration", async () => {
  expect(await keep()).toBeUndefined();
  expect(problems).toEqual([]);
});

it("a pass writes the match condition once, for the pods and namespaces that SidecarSets select", async () => {
  await register();
  expect(await keep()).toEqual({ asks: ABOUT_MATCHED, isChanged: true });
  expect(await stored()).toBe(wanted());
  expect(await stored()).toContain('request.namespace in ["edge"]');
  expect(await keep()).toEqual({ asks: ABOUT_MATCHED, isChanged: false });
});

it("a pass lists SidecarSets after it has read the registration, so that it sees every SidecarSet that was stored before", async () => {
  await register({ condition: OLD_CONDITION });
  const calls: string[] = [];
  const through: Cluster = {
    ...cluster,
    get: async (resource, ...rest) => {
      const read = await cluster.get<never>(resource, ...rest);
      calls.push(`read ${resource.plural}`);
      return read;
    },
    list: (resource, ...rest) => {
      calls.push(`list ${resource.plural}`);
      return cluster.list<never>(resource, ...rest) as never;
    },
  };
  await keep({ through });
  const [readAt, listedAt] = [`read ${MUTATING_WEBHOOK_CONFIGURATIONS.plural}`, `list ${SIDECARSETS.plural}`].map(
    (call) => calls.lastIndexOf(call),
  );
  expect(readAt).toBeGreaterThanOrEqual(0);
  expect(listedAt).toBeGreaterThan(readAt ?? 0);
});

it("a pass removes the match condition when every pod gets the readiness gate", async () => {
  await register({ condition: OLD_CONDITION });
  expect(await keep({ KruisePodReadinessGate: true })).toEqual({ asks: "about every pod", isChanged: true });
  expect(await stored()).toBe("about every pod");
  expect(await keep({ KruisePodReadinessGate: true })).toEqual({ asks: "about every pod", isChanged: false });
});

it.each<[string, string | undefined, boolean]>([
  ["no admission has relied on", undefined, false],
  ["an admission relied on less than five minutes ago", "2026-11-27T11:55:01Z", true],
  ["an admission relied on five minutes ago", "2026-11-27T11:55:00Z", false],
  ["an admission relied on long ago", "2026-11-26T12:00:00Z", false],
  ["an admission relied on at a time in the future", "2026-11-28T12:00:00Z", true],
  ["an admission relied on at an unreadable time", "yesterday", true],
])(
  "a pass keeps the old match condition only if an admission may still rely on it: a condition that %s",
  async (_what, reliedOnAt, isKept) => {
    await register({ condition: OLD_CONDITION, ...(reliedOnAt ? { reliedOnAt } : {}) });
    expect(await keep()).toEqual({ asks: ABOUT_MATCHED, isChanged: true });
    expect(await stored()).toBe(isKept ? `(${OLD_CONDITION.slice(1, -1)}) || ${wanted()}` : wanted());
  },
);

describe("the registration with the former name:", () => {
  it("a pass updates the registration with the former name, and never empties it, when it is the only one", async () => {
    await register({ name: FORMER_WEBHOOK_CONFIGURATION });
    expect(await keep()).toEqual({ asks: ABOUT_MATCHED, isChanged: true });
    expect(await keep()).toEqual({ asks: ABOUT_MATCHED, isChanged: false });
    expect(await stored(FORMER_WEBHOOK_CONFIGURATION)).toBe(wanted());
  });

  it("a pass empties the registration with the former name only after the new one has its condition", async () => {
    await register({ name: FORMER_WEBHOOK_CONFIGURATION });
    await register();
    const both = async () => [await stored(FORMER_WEBHOOK_CONFIGURATION), await stored()];
    expect(await keep()).toEqual({ asks: ABOUT_MATCHED, isChanged: true });
    expect(await both()).toEqual(["about every pod", wanted()]);
    expect(await keep()).toEqual({ asks: ABOUT_MATCHED, isChanged: true });
    expect(await both()).toEqual(["about none", wanted()]);
    expect(await keep()).toEqual({ asks: ABOUT_MATCHED, isChanged: false });
  });

  it("a pass keeps the registration with the former name while an admission may still rely on it", async () => {
    await register({ name: FORMER_WEBHOOK_CONFIGURATION, reliedOnAt: "2026-11-27T11:56:00Z" });
    await register();
    await keep();
    expect(await keep()).toEqual({ asks: ABOUT_MATCHED, isChanged: false });
    expect(await stored(FORMER_WEBHOOK_CONFIGURATION)).toBe("about every pod");
  });
});

it("a dry run names the write to the registration and writes nothing", async () => {
  await register({ name: FORMER_WEBHOOK_CONFIGURATION });
  await register();
  expect(await keep({ isDryRun: true })).toEqual({
    asks: ABOUT_MATCHED,
    isChanged: false,
    planned: ["write the condition of the pod webhook's registration"],
  });
  expect(await stored()).toBe("about every pod");
  await keep();
  expect(await keep({ isDryRun: true })).toEqual({
    asks: ABOUT_MATCHED,
    isChanged: false,
    planned: ["empty the registration of the former name, sidecarset-mutating-webhook-configuration"],
  });
  expect(await stored(FORMER_WEBHOOK_CONFIGURATION)).toBe("about every pod");
});

it("a dry run plans nothing when the registration is up to date", async () => {
  await register();
  await keep();
  expect(await keep({ isDryRun: true })).toEqual({ asks: ABOUT_MATCHED, isChanged: false });
});

it("a pass does not overwrite a registration that somebody else changes at the same time", async () => {
  await register();
  const patch: Cluster["patch"] = async (resource, key, change, options) => {
    const labels = { type: "merge", body: { metadata: { labels: { touched: "true" } } } } as const;
    await cluster.patch(resource, key, labels);
    return await cluster.patch(resource, key, change, options);
  };
  expect(await keep({ through: { ...cluster, patch } })).toEqual({ asks: ABOUT_MATCHED, isChanged: false });
  expect(await stored()).toBe("about every pod");
  expect(problems).toEqual([]);
});

it.each([
  [403, "Forbidden", "no (infra/rbac/optional/webhook-configuration.yaml permits it)"],
  [500, "InternalError", "no"],
] as const)("a write to the registration that fails with %i is a problem of the pass", async (code, reason, told) => {
  await register();
  const patch = () => Promise.reject(new KubeError("no", { code, reason, isOutcomeKnown: true }));
  expect(await keep({ through: { ...cluster, patch } })).toBeUndefined();
  expect(problems).toEqual([`the registration of the pod webhook is not kept up to date: ${told}`]);
});
