/** Tests the report of a whole pass, its events for tracing, and its traces in the cluster. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { POD_WEBHOOK, WEBHOOK_CONFIGURATION } from "../../shared/api/names.ts";
import { type Clock, systemClock } from "../../shared/controller/loop/clock.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { DOINGS, type Doing, type Ending } from "../../shared/doings.ts";
import { type Cluster, LEASES, MUTATING_WEBHOOK_CONFIGURATIONS, SIDECARSETS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";
import { oneLook } from "./service.ts";
import { sharedClock } from "./stepped-clock.ts";

/** Runs a pass over SidecarSet set, whose two pods are up to date. */
async function pass(more: Partial<PassOptions> = {}, refuse?: Refuse) {
  const on = bareRollout("set", refuse);
  on.deploy(2);
  return await runPass(on.cluster, oneLook(more));
}

const refuseTo =
  (call: string, code: number): Refuse =>
  (asked) =>
    asked === call ? refusal(code, "no") : undefined;

describe("tracing of a pass:", () => {
  let told: (readonly [values: Doing["values"], ending: Ending])[];
  const listen = (message: unknown) => {
    const doing = message as Doing;
    if (doing.name === "pass") doing.end = (ending) => told.push([doing.values, ending]);
  };
  beforeEach(() => {
    told = [];
    DOINGS.subscribe(listen);
  });
  afterEach(() => DOINGS.unsubscribe(listen));

  const asked = (isDry: boolean, name?: string) => ({ "sidecarset.pass.dry_run": isDry, "sidecarset.name": name });
  const counted = { "sidecarset.pass.sidecarsets": 1, "sidecarset.pass.not_reached": 0 };

  it.each<[string, Partial<PassOptions>, object]>([
    ["for all SidecarSets", {}, asked(false)],
    ["as a dry run of one SidecarSet", { dryRun: true, sidecarSet: "set" }, asked(true, "set")],
  ])("a pass publishes its options and its counts: %s", async (_, options, values) => {
    await pass(options);
    expect(told).toEqual([[values, { values: counted, problems: [] }]]);
  });

  it("a pass publishes why it failed", async () => {
    await pass({}, refuseTo("LIST sidecarsets", 500));
    expect(told).toMatchObject([[asked(false), { problems: ["no"], failure: "no" }]]);
  });
});

it.each<[number, string | undefined]>([
  [500, "no"],
  [403, "no"],
  [404, undefined],
])("a pass whose list of SidecarSets answers %i fails, unless the answer is 404", async (code, failure) => {
  const report = await pass({}, refuseTo("LIST sidecarsets", code));
  expect(report).toMatchObject({ sidecarSets: [], problems: ["no"] });
  expect(report.failure).toBe(failure);
});

it.each<[string, Partial<PassOptions>, unknown]>([
  ["a SidecarSet that is requested by name", { sidecarSet: "set" }, expect.any(Object)],
  ["all SidecarSets", {}, undefined],
])("a dry run plans the later steps only for one requested SidecarSet: %s", async (_, options, plan) => {
  const { sidecarSets } = await pass({ dryRun: true, ...options });
  expect(sidecarSets.map((report) => report.plan)).toEqual([plan]);
});

it.each([true, false])(
  "a pass writes or reads the webhook's registration only with isKeepingRegistration, here %s",
  async (isAsked) => {
    const { calls } = await pass({ isKeepingRegistration: isAsked });
    expect(Object.keys(calls).some((call) => call.includes("webhookconfigurations"))).toBe(isAsked);
  },
);

it("the report says what a pass wrote to the webhook's registration", async () => {
  const on = bareRollout("set");
  const webhooks = [{ name: POD_WEBHOOK, clientConfig: { url: "https://127.0.0.1:1" } }];
  const metadata = { name: WEBHOOK_CONFIGURATION, uid: "registration" };
  on.server.put("test", MUTATING_WEBHOOK_CONFIGURATIONS, { metadata, ...{ webhooks } });
  const { registration } = await runPass(on.cluster, oneLook({ isKeepingRegistration: true }));
  expect(registration).toEqual({ asks: "about pods that SidecarSets match", isChanged: true });
});

it.each<[string, string | undefined, readonly string[], readonly number[]]>([
  ["lists all SidecarSets every ten seconds and begins new ones", undefined, ["later", "set"], [0, 10_000, 20_000]],
  ["over one SidecarSet lists no others", "set", ["set"], []],
])("a following pass %s", async (_, sidecarSet, names, listedAtMs) => {
  const on = bareRollout("set");
  on.deploy(1);
  on.release(2);
  const { clock, plan } = sharedClock();
  plan(15_000, () => {
    const { metadata, ...set } = on.readSet();
    on.server.put("test", SIDECARSETS, { ...set, metadata: { ...metadata, name: "later", uid: "uid-later" } });
  });
  const listed: number[] = [];
  const list: Cluster["list"] = (resource, options) => {
    if (resource === SIDECARSETS) listed.push(clock.now());
    return on.cluster.list(resource, options);
  };
  const options = oneLook({ follow: true, clock, deadlineMs: 30_000, ...(sidecarSet ? { sidecarSet } : {}) });
  const { sidecarSets, durationMs } = await runPass({ ...on.cluster, list }, options);
  expect(sidecarSets.map(({ name }) => name).toSorted()).toEqual(names);
  expect([listed, durationMs]).toEqual([listedAtMs, 28_000]);
});

it("a pass gives the Lease back within half a second after its deadline", async () => {
  let nowMs = 0;
  const on = bareRollout("set", (call) => {
    if (call === "LIST sidecarsets") nowMs = 60_100;
    return undefined;
  });
  const { problems } = await runPass(on.cluster, oneLook({ clock: { ...on.clock, now: () => nowMs } }));
  expect(problems).not.toContainEqual(expect.stringContaining("Lease"));
  expect(on.server.peek(LEASES, { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" })).toMatchObject({
    spec: { holderIdentity: "" },
  });
});

it("a pass reports its duration and aborts all its sleeps at the end", async () => {
  const signals: (AbortSignal | undefined)[] = [];
  const clock: Clock = {
    ...systemClock,
    now: () => 1e9 + systemClock.now(),
    sleep: (ms, signal) => {
      signals.push(signal);
      return systemClock.sleep(ms, signal);
    },
  };
  const { durationMs } = await pass({ clock });
  expect(durationMs).toBeLessThan(60_000);
  expect(signals.length).toBeGreaterThan(0);
  expect(signals.filter((signal) => !signal?.aborted)).toEqual([]);
});
