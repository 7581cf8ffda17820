/** Tests that in every order of calls the managed registration covers every pod that a stored SidecarSet matches. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { KubernetesObject, LabelSelector } from "../../shared/api/kubernetes.ts";
import { FORMER_WEBHOOK_CONFIGURATION, SIDECARSET_V1BETA1, WEBHOOK_CONFIGURATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { callCondition, widenedBySidecarSet } from "../../shared/core/injection/match/call-condition.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { readPodRegistration } from "../../shared/kube/pod-registration.ts";
import { type Cluster, MUTATING_WEBHOOK_CONFIGURATIONS, SIDECARSETS } from "../../shared/kube/port.ts";
import { widening } from "../../shared/webhook/handlers/widen-registration.ts";
import { KRUISE_NAMESPACE, startTestCluster, type TestCluster } from "../controller/fixture.ts";

const HOUR_MS = 3_600_000;
const WEB: LabelSelector = { matchLabels: { app: "web" } };
const API: LabelSelector = { matchLabels: { app: "api" } };
const key = { name: WEBHOOK_CONFIGURATION };
const formerKey = { name: FORMER_WEBHOOK_CONFIGURATION };

let local: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  local = await startTestCluster();
  cluster = local.cluster;
});
afterAll(() => local?.close());
beforeEach(async () => {
  const { items } = await cluster.list<SidecarSet>(SIDECARSETS);
  for (const { metadata } of items) await cluster.delete(SIDECARSETS, { name: metadata?.name ?? "" });
  for (const one of [key, formerKey]) await cluster.delete(MUTATING_WEBHOOK_CONFIGURATIONS, one).catch(() => undefined);
});

function sidecarSet(name: string, selector?: LabelSelector): SidecarSet {
  const spec = { ...(selector ? { selector } : {}), containers: [{ name: "proxy", image: "proxy:1" }] };
  return { apiVersion: SIDECARSET_V1BETA1, kind: "SidecarSet", metadata: { name }, spec };
}

/** Registers the pod webhook; without a condition it covers every pod. */
async function register(condition: string | undefined, { name } = key): Promise<void> {
  const url = "https://127.0.0.1:1";
  const [mutating] = webhookConfigurations({ url }, { podCondition: condition });
  const none = {
    webhooks: mutating?.webhooks.filter((webhook) => (webhook as { name: string }).name === "mpod.kb.io"),
    metadata: { name },
  };
  await cluster.create(MUTATING_WEBHOOK_CONFIGURATIONS, { ...mutating, ...none } as KubernetesObject);
}

const create = (object: SidecarSet, dryRun = false): AdmissionRequest => ({
  uid: "u",
  kind: { group: "apps.kruise.io", version: "v1beta1", kind: "SidecarSet" },
  resource: { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" },
  operation: "CREATE",
  dryRun,
  object: object as unknown as NonNullable<AdmissionRequest["object"]>,
});

const waits: number[] = [];
const now = Date.now;
/** Creates the object as the API server does: first the webhook, then the store. */
async function admit(on: Cluster, object: SidecarSet): Promise<void> {
  const connect = async () => on;
  const sleep = async (ms: number) => void waits.push(ms);
  await widening({ connect, now, sleep })(() => ({ kind: "allowed" }))(create(object));
  await on.create(SIDECARSETS, object);
}

const later = (ms: number) => ({ ...systemClock, epochMs: () => Date.now() + ms });
const pass = (on: Cluster, clock = systemClock, dryRun = false) =>
  runPass(on, {
    kruiseNamespace: KRUISE_NAMESPACE,
    deadlineMs: 10_000,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: false,
    withoutSidecarSets: true,
    isKeepingRegistration: true,
    dryRun,
    clock,
  });

const condition = async () => (await readPodRegistration(cluster))?.condition;
async function asksAbout(selector: LabelSelector): Promise<boolean> {
  const now = await condition();
  return now === widenedBySidecarSet(now, sidecarSet("any", selector));
}

describe("the registration:", () => {
  test("the registration covers a SidecarSet before it is stored, and no longer covers it some time after its deletion", async () => {
    await register(callCondition([]));
    waits.length = 0;
    await admit(cluster, sidecarSet("one", WEB));
    expect([await asksAbout(WEB), await asksAbout(API), waits]).toEqual([true, false, [1_000]]);
    await cluster.delete(SIDECARSETS, { name: "one" });
    await pass(cluster);
    expect(await asksAbout(WEB)).toBe(true);
    const { registration } = await pass(cluster, later(6 * 60_000));
    expect([await asksAbout(WEB), registration]).toEqual([
      false,
      { asks: "about pods that SidecarSets match", isChanged: true },
    ]);
  });

  test("a pass adds SidecarSets that no webhook saw and a missing condition", async () => {
    await register(undefined);
    await cluster.create(SIDECARSETS, sidecarSet("one", WEB));
    expect((await pass(cluster)).registration?.isChanged).toBe(true);
    await admit(cluster, sidecarSet("two", sidecarSet("two").spec.selector));
    await cluster.create(SIDECARSETS, sidecarSet("three", API));
    await pass(cluster);
    expect([await asksAbout(WEB), await asksAbout(API)]).toEqual([true, true]);
    expect((await pass(cluster)).registration?.isChanged).toBe(false);
  });

  test("a selector that has no expression makes the registration cover every pod", async () => {
    await register(callCondition([]));
    const odd = { matchExpressions: [{ key: "app", operator: "Like", values: ["w"] }] };
    const none = () => Promise.resolve({ kind: "allowed" as const });
    const connect = async () => cluster;
    await widening({ connect, now, sleep: async () => undefined })(none)(create(sidecarSet("odd", odd)));
    expect(await condition()).toBeUndefined();
    expect(await cluster.get(MUTATING_WEBHOOK_CONFIGURATIONS, key)).toMatchObject({
      webhooks: [{ matchConditions: [{ name: "not-a-mirror-pod" }] }],
    });
  });

  test("a pass with the gate KruisePodReadinessGate makes the registration cover every pod", async () => {
    await register(callCondition([]));
    const gated = {
      kruiseNamespace: KRUISE_NAMESPACE,
      deadlineMs: 10_000,
      follow: false,
      settings: { ...DEFAULT_ROLLOUT_SETTINGS, KruisePodReadinessGate: true },
    };
    const { registration } = await runPass(cluster, { ...gated, isKeepingRegistration: true });
    expect(registration).toEqual({ asks: "about every pod", isChanged: true });
    expect(await condition()).toBeUndefined();
  });

  test("a dry run, a refusal, a deletion and an update with the same selector write nothing", async () => {
    await register(callCondition([]));
    const before = await cluster.get(MUTATING_WEBHOOK_CONFIGURATIONS, key);
    const connect = async () => cluster;
    const through = (request: AdmissionRequest, kind: "allowed" | "denied" = "allowed") =>
      widening({ connect, now, sleep: async () => undefined })(() =>
        kind === "allowed" ? { kind } : { kind, code: 422, reason: "Invalid", message: "no" },
      )(request);
    const object = sidecarSet("one", WEB);
    await through(create(object, true));
    await through(create(object), "denied");
    await through({ ...create(object), operation: "DELETE" });
    const again = { ...object, spec: { ...object.spec, containers: [] } };
    await through({ ...create(again), operation: "UPDATE", oldObject: create(object).object ?? null });
    const report = await pass(cluster, later(HOUR_MS), true);
    expect(await cluster.get(MUTATING_WEBHOOK_CONFIGURATIONS, key)).toEqual(before);
    expect(report.registration?.isChanged).toBe(false);
    await through({ ...create(object), operation: "UPDATE", oldObject: create(sidecarSet("one", API)).object ?? null });
    expect(await asksAbout(WEB)).toBe(true);
  });

  test("a dry run of a pass reports what it would write", async () => {
    await register(callCondition([]));
    await cluster.create(SIDECARSETS, sidecarSet("one", WEB));
    expect((await pass(cluster, systemClock, true)).registration?.planned).toHaveLength(1);
    expect(await asksAbout(WEB)).toBe(false);
  });

  test("without a registration SidecarSets are admitted and a pass does nothing", async () => {
    await admit(cluster, sidecarSet("one", WEB));
    expect((await pass(cluster)).registration).toBeUndefined();
  });

  test("a SidecarSet is refused when the registration cannot be patched, and a pass names the missing role", async () => {
    await register(callCondition([]));
    const forbidden = async () => {
      throw new KubeError("forbidden", { code: 403, reason: "Forbidden" });
    };
    const patch: Cluster["patch"] = (resource, ...rest) =>
      resource === MUTATING_WEBHOOK_CONFIGURATIONS ? forbidden() : cluster.patch(resource, ...rest);
    const reader: Cluster = { ...cluster, patch };
    await expect(admit(reader, sidecarSet("one", WEB))).rejects.toThrow("forbidden");
    await cluster.create(SIDECARSETS, sidecarSet("two", WEB));
    const { problems } = await pass(reader);
    expect(problems).toEqual([expect.stringContaining("infra/rbac/optional/webhook-configuration.yaml")]);
  });
});

describe("the registration with the former name:", () => {
  const former = async () => {
    const stored = await cluster.get<KubernetesObject & { readonly webhooks?: readonly object[] }>(
      MUTATING_WEBHOOK_CONFIGURATIONS,
      formerKey,
    );
    return stored.webhooks ?? [];
  };

  test("the registration with the former name is updated while there is none with the new name", async () => {
    await register(callCondition([]), formerKey);
    await admit(cluster, sidecarSet("one", WEB));
    expect([await asksAbout(WEB), await asksAbout(API)]).toEqual([true, false]);
    await cluster.delete(SIDECARSETS, { name: "one" });
    await cluster.create(SIDECARSETS, sidecarSet("two", API));
    await pass(cluster, later(HOUR_MS));
    expect([await asksAbout(WEB), await asksAbout(API), (await former()).length]).toEqual([false, true, 1]);
  });

  test("the registration with the former name is emptied when the new one covers every pod that it covered", async () => {
    await register(callCondition([sidecarSet("one", WEB)]), formerKey);
    await cluster.create(SIDECARSETS, sidecarSet("one", WEB));
    await register(callCondition([]));
    expect((await pass(cluster)).registration).toEqual({ asks: "about pods that SidecarSets match", isChanged: true });
    expect([await asksAbout(WEB), (await former()).length]).toEqual([true, 1]);
    expect((await pass(cluster, systemClock, true)).registration?.planned).toEqual([
      `empty the registration of the former name, ${FORMER_WEBHOOK_CONFIGURATION}`,
    ]);
    expect(await former()).toHaveLength(1);
    expect((await pass(cluster)).registration?.isChanged).toBe(true);
    expect([await asksAbout(WEB), await former()]).toEqual([true, []]);
    expect((await pass(cluster)).registration?.isChanged).toBe(false);
  });

  test("the registration with the former name is not emptied while a SidecarSet that relied on it may be stored", async () => {
    await register(callCondition([]), formerKey);
    await admit(cluster, sidecarSet("one", WEB));
    await register(callCondition([sidecarSet("one", WEB)]));
    await pass(cluster);
    expect(await former()).toHaveLength(1);
    await pass(cluster, later(6 * 60_000));
    expect(await former()).toEqual([]);
  });

  test("the registration with the former name is not emptied when somebody changed it during the pass", async () => {
    await register(callCondition([]), formerKey);
    await register(callCondition([]));
    const list: Cluster["list"] = async (resource, options) => {
      const body = { metadata: { labels: { a: "b" } } };
      if (resource === SIDECARSETS)
        await cluster.patch(MUTATING_WEBHOOK_CONFIGURATIONS, formerKey, { type: "merge", body });
      return cluster.list(resource, options);
    };
    await pass({ ...cluster, list });
    expect(await former()).toHaveLength(1);
  });
});

/** Runs calls of several actors one at a time, in the order of `turns`. An actor without turns runs freely. */
function inTurns(turns: readonly string[]) {
  const left = [...turns];
  const waiting: { readonly actor: string; readonly go: () => void }[] = [];
  let isBusy = false;
  const isOver = new Set<string>();
  const next = (): void => {
    while (left[0] !== undefined && isOver.has(left[0])) left.shift();
    const index = left.length === 0 ? 0 : waiting.findIndex(({ actor }) => actor === left[0]);
    const [turn] = isBusy || index < 0 ? [] : waiting.splice(index, 1);
    if (turn === undefined) return;
    left.shift();
    isBusy = true;
    turn.go();
  };
  const call = async <T>(actor: string, work: () => Promise<T>): Promise<T> => {
    await new Promise<void>((go) => {
      waiting.push({ actor, go });
      next();
    });
    return work().finally(() => {
      isBusy = false;
      next();
    });
  };
  const end = (actor: string) => {
    isOver.add(actor);
    next();
  };
  const through = (actor: string): Cluster => ({
    ...cluster,
    get: (...args) => call(actor, () => cluster.get(...args)),
    list: (...args) => call(actor, () => cluster.list(...args)),
    create: (...args) => call(actor, () => cluster.create(...args)),
    patch: (...args) => call(actor, () => cluster.patch(...args)),
    delete: (...args) => call(actor, () => cluster.delete(...args)),
  });
  return { through, end };
}

/** Returns every order of the given numbers of turns. */
function orders(counts: Readonly<Record<string, number>>): readonly (readonly string[])[] {
  const open = Object.entries(counts).filter(([, count]) => count > 0);
  if (open.length === 0) return [[]];
  return open.flatMap(([actor, count]) =>
    orders({ ...counts, [actor]: count - 1 }).map((rest) => [actor, ...rest] as const),
  );
}

interface Start {
  readonly name: string;
  readonly condition: string | undefined;
  /** selector of the SidecarSet that is deleted during the calls */
  readonly selector: LabelSelector;
}

/** Returns the problems of one order: after all calls, and after a final pass. */
async function missedIn(start: Start, turns: readonly string[]): Promise<readonly string[]> {
  await register(start.condition);
  await cluster.create(SIDECARSETS, sidecarSet("old", start.selector));
  const { through, end } = inTurns(turns);
  await Promise.all([
    admit(through("admission"), sidecarSet("new", WEB)).finally(() => end("admission")),
    passOnly(through("pass")).finally(() => end("pass")),
    through("deletion")
      .delete(SIDECARSETS, { name: "old" })
      .finally(() => end("deletion")),
  ]);
  const isAsked = await asksAbout(WEB);
  await pass(cluster, later(HOUR_MS));
  const isInTheEnd = (await asksAbout(WEB)) && !(await asksAbout(API));
  await cluster.delete(SIDECARSETS, { name: "new" });
  await cluster.delete(MUTATING_WEBHOOK_CONFIGURATIONS, key);
  return isAsked && isInTheEnd ? [] : [`${start.name}: ${turns.join(" ")}: ${isAsked}, ${isInTheEnd}`];
}

test("in every order of an admission, a pass and a deletion the registration covers the pods of stored SidecarSets", async () => {
  const starts: readonly Start[] = [
    { name: "wide", condition: undefined, selector: API },
    { name: "known", condition: callCondition([sidecarSet("old", WEB)]), selector: WEB },
    { name: "unknown", condition: callCondition([]), selector: API },
  ];
  // An admission reads, writes and stores. A pass reads both names, lists, and writes if necessary.
  const all = orders({ admission: 3, pass: 4, deletion: 1 });
  const missed: string[] = [];
  for (const start of starts) for (const turns of all) missed.push(...(await missedIn(start, turns)));
  process.stdout.write(`registration: ${starts.length * all.length} orders of calls\n`);
  expect(missed).toEqual([]);
  expect(starts.length * all.length).toBeGreaterThan(400);
});

/** Runs a pass in which only the calls about the registration take turns. */
async function passOnly(on: Cluster): Promise<void> {
  const { get, list } = on;
  const isOurs = (plural: string) => plural === "sidecarsets" || plural === "mutatingwebhookconfigurations";
  const narrowed: Cluster = {
    ...on,
    get: (resource, name) => (isOurs(resource.plural) ? get(resource, name) : cluster.get(resource, name)),
    list: (resource, options) => (isOurs(resource.plural) ? list(resource, options) : cluster.list(resource, options)),
  };
  await pass(narrowed);
}
