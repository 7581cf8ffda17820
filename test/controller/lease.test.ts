/** What the Lease of the passes says: whose turn came last, who is at work, and which gates passes have on. */
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import {
  announcedSettings,
  type LeaseSite,
  readLease,
  renewLease,
  underLease,
} from "../../shared/controller/loop/lease.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, LEASES } from "../../shared/kube/port.ts";
import { callOf } from "../simulation/api-server.ts";
import { bareCluster, type Refuse, refusal } from "./bare-cluster.ts";
import { KRUISE_NAMESPACE, startTestCluster, type TestCluster } from "./fixture.ts";
import { steppedClock } from "./stepped-clock.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test?.close());

const siteOf = (name: string): LeaseSite => ({
  cluster,
  clock: systemClock,
  namespace: KRUISE_NAMESPACE,
  over: new Set(),
  name,
});

describe("the gates that passes have on", () => {
  it.each([
    ["none", {}],
    ["two", { InPlaceResize: true, RespectDisruptionBudgets: true }],
    ["all but one", { ...allOn(), InPlaceResize: false }],
  ])("are read as they were announced: %s", async (name, more) => {
    const settings = { ...allOff(), ...more };
    const site = { ...siteOf(name.replaceAll(" ", "-")), settings };
    await renewLease(site);
    expect(announcedSettings(await readLease(site))).toEqual(settings);
  });

  it.each([
    ["no Lease", { cursor: "" }],
    ["a Lease without annotations", { cursor: "", stored: { metadata: { name: "lease" } } }],
    ["a Lease without metadata", { cursor: "", stored: {} }],
  ])("are not known from %s", (_, state) => {
    expect(announcedSettings(state)).toBeUndefined();
  });
});

function allOff() {
  return allOf(false);
}

function allOn() {
  return allOf(true);
}

function allOf(isOn: boolean): typeof DEFAULT_ROLLOUT_SETTINGS {
  const gates = Object.keys(DEFAULT_ROLLOUT_SETTINGS).map((gate) => [gate, isOn]);
  return Object.fromEntries(gates) as never;
}

it("a Lease that somebody else made without a word of turns or times is nobody's", async () => {
  const metadata = { namespace: KRUISE_NAMESPACE, name: "bare" };
  const spec = { holderIdentity: "somebody" };
  const stored = await cluster.create<KubernetesObject>(LEASES, { metadata, ...({ spec } as object) });
  expect(await readLease(siteOf("bare"))).toEqual({ stored, cursor: "" });
  expect(await readLease(siteOf("absent"))).toEqual({ cursor: "" });
});

describe("a pass under a Lease", () => {
  const EPOCH = Date.UTC(2026, 0, 10);
  const NAME = "sidecarset-rollout";
  /** As the stepped clock's chance of 0.25 has it. */
  const HOLDER = `pass-${(2 ** 46).toString(36)}`;

  interface Stored extends KubernetesObject {
    readonly spec?: {
      readonly holderIdentity?: string;
      readonly leaseDurationSeconds?: number;
      readonly renewTime?: string;
    };
  }

  const secondsIn = (seconds: number) => `${new Date(EPOCH + 1000 * seconds).toISOString().slice(0, -1)}000Z`;

  function stage(refuse?: Refuse) {
    const stepped = steppedClock();
    stepped.beginAt(EPOCH);
    const bare = bareCluster(stepped, refuse);
    const over = new Set<string>();
    const site: LeaseSite = { cluster: bare.cluster, clock: stepped.clock, namespace: "shop", over };
    const peek = () => bare.server.peek<Stored>(LEASES, { namespace: "shop", name: NAME });
    const put = (spec: Stored["spec"], annotations = {}) =>
      bare.server.put("test", LEASES, {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { namespace: "shop", name: NAME, uid: "lease", annotations },
        ...({ spec } as object),
      });
    const troubles: unknown[] = [];
    let cursor = "begun";
    const underIt = async (done: () => Promise<string>, more: Partial<LeaseSite> = {}) => {
      const used = { ...site, ...more };
      const state = await readLease(used);
      const result = await underLease(
        { site: used, state },
        () => cursor,
        done,
        (error) => troubles.push(error),
      );
      return result ?? "left to another pass";
    };
    /** Until that moment; the renewals have the time go on. */
    const work = (untilMs: number, more: Partial<LeaseSite> = {}) =>
      underIt(async () => {
        if (untilMs > 0) await new Promise<void>((resolve) => stepped.plan(untilMs, () => resolve()));
        return "done";
      }, more);
    /** For 15 seconds more once that call was refused. */
    const workBeyond = (call: string) =>
      underIt(async () => {
        while (!bare.calls.some(([, made]) => made === `${call} refused`)) await setImmediate();
        await stepped.clock.sleep(15_000);
        return "done";
      });
    const serve = (key: string) => {
      cursor = key;
    };
    const calls = () => bare.calls.map(([atMs, call]) => `${atMs} ${call}`);
    return { ...stepped, ...{ site, over, peek, put, troubles, work, workBeyond, serve, calls, server: bare.server } };
  }

  it("is named in it, renews it every ten seconds, and leaves in it whose turn came last", async () => {
    const { plan, work, serve, peek, calls, troubles } = stage();
    const seen: unknown[] = [];
    const look = () => seen.push([peek()?.spec, peek()?.metadata?.annotations]);
    plan(5_000, look);
    plan(15_000, () => {
      look();
      serve("web");
    });
    plan(24_000, look);
    plan(24_500, () => serve("zoo"));
    expect(await work(25_000)).toBe("done");
    look();
    const cursor = "sidecarset.kruise.io/last-served";
    const heldSince = (seconds: number, holderIdentity = HOLDER) => ({
      ...{ holderIdentity, leaseDurationSeconds: 30 },
      renewTime: secondsIn(seconds),
    });
    expect(seen).toEqual([
      [heldSince(0), { [cursor]: "begun" }],
      [heldSince(10), { [cursor]: "begun" }],
      [heldSince(20), { [cursor]: "web" }],
      [heldSince(25, ""), { [cursor]: "zoo" }],
    ]);
    expect(calls()).toEqual([
      "0 GET leases",
      "0 CREATE leases",
      "10000 PATCH leases",
      "20000 PATCH leases",
      "25000 PATCH leases",
    ]);
    expect(troubles).toEqual([]);
  });

  it("announces the gates that it has on", async () => {
    const { work, peek, site } = stage();
    const settings = { ...allOff(), InPlaceResize: true, RespectDisruptionBudgets: true };
    await work(0, { settings });
    const text = peek()?.metadata?.annotations?.["sidecarset.kruise.io/feature-gates"];
    expect(text?.split(",").toSorted()).toEqual(["InPlaceResize=true", "RespectDisruptionBudgets=true"]);
    expect(announcedSettings(await readLease(site))).toEqual(settings);
  });

  it.each<[string, number, object, string | undefined]>([
    ["it does until half a minute after it was renewed", 29.999, {}, "other"],
    ["it does no longer than that", 30, {}, undefined],
    ["it does for no longer than it says itself", 10, { leaseDurationSeconds: 10 }, undefined],
    ["it does for half a minute at most, however long it says", 30, { leaseDurationSeconds: 3_600 }, undefined],
    ["it does when its clock is ahead", -29.999, {}, "other"],
    ["it does not when its clock is ahead by half a minute", -30, {}, undefined],
    ["none does where it was given back", 0, { holderIdentity: "" }, undefined],
    ["none does where it never was renewed", 0, { renewTime: undefined }, undefined],
  ])("sees whether another pass holds it: %s", async (_, ageSeconds, more, heldBy) => {
    const { put, site } = stage();
    put({ holderIdentity: "other", leaseDurationSeconds: 30, renewTime: secondsIn(-ageSeconds), ...more });
    expect((await readLease(site)).heldBy).toBe(heldBy);
  });

  it("is not held up by one whose pass is over in the same process", async () => {
    const { put, site, over } = stage();
    over.add("other");
    put({ holderIdentity: "other", leaseDurationSeconds: 30, renewTime: secondsIn(0) });
    expect(await readLease(site)).not.toHaveProperty("heldBy");
  });

  it("begins behind the one whose turn came last, and at the beginning where there was none", async () => {
    const { put, site } = stage();
    expect(await readLease(site)).toEqual({ cursor: "" });
    put({}, { "sidecarset.kruise.io/last-served": "web" });
    expect((await readLease(site)).cursor).toBe("web");
  });

  it("is not begun where another pass took it since it was looked at", async () => {
    const { work, calls, troubles, over } = stage((call) =>
      call === "CREATE leases" ? refusal(409, "AlreadyExists") : undefined,
    );
    expect(await work(0)).toBe("left to another pass");
    expect([calls(), troubles, over]).toEqual([["0 GET leases", "0 CREATE leases refused"], [], new Set()]);
  });

  it("takes one that it has seen as it was then, or not at all", async () => {
    const { put, site, server } = stage();
    put({ holderIdentity: "" });
    const state = await readLease(site);
    await server.patch(
      callOf("other", LEASES, { namespace: "shop", name: NAME }),
      { type: "merge", body: { spec: { holderIdentity: "other" } } },
      "metadata",
    );
    const work = vi.fn(async () => "done");
    expect(
      await underLease(
        { site, state },
        () => "",
        work,
        () => undefined,
      ),
    ).toBeUndefined();
    expect(work).not.toHaveBeenCalled();
  });

  it.each([
    ["has changed", 409, "Conflict"],
    ["no longer exists", 404, "NotFound"],
  ] as const)("goes on, and renews it no more, where the Lease %s: another pass has it", async (_, code, reason) => {
    const { workBeyond, calls, troubles, over } = stage((call) =>
      call === "PATCH leases" ? refusal(code, reason) : undefined,
    );
    over.add("pass-before");
    expect(await workBeyond("PATCH leases")).toBe("done");
    expect(calls().slice(2)).toEqual(["10000 PATCH leases refused", "25000 PATCH leases refused"]);
    expect(troubles).toEqual([]);
    expect(over, "the Lease may still name it").toEqual(new Set(["pass-before", HOLDER]));
  });

  it("goes on where it cannot renew it, and says so; that it gave it back frees what was remembered of others", async () => {
    const forbidden = refusal(403, "Forbidden");
    const { workBeyond, calls, troubles, over, peek } = stage((call, nth) =>
      call === "PATCH leases" && nth === 1 ? forbidden : undefined,
    );
    over.add("pass-before");
    expect(await workBeyond("PATCH leases")).toBe("done");
    expect(calls().slice(2)).toEqual(["10000 PATCH leases refused", "25000 PATCH leases"]);
    expect([troubles, over, peek()?.spec?.holderIdentity]).toEqual([[forbidden], new Set(), ""]);
  });

  it("is done where it cannot give it back, says so, and remembers that it is over", async () => {
    const down = refusal(503, "ServiceUnavailable");
    const { work, troubles, over } = stage((call) => (call === "PATCH leases" ? down : undefined));
    expect(await work(5_000)).toBe("done");
    expect([troubles, over]).toEqual([[down], new Set([HOLDER])]);
  });

  it.each([
    ["the API server is in trouble", 500, "InternalError"],
    ["its namespace is not there", 404, "NotFound"],
    ["it may not be taken", 403, "Forbidden"],
  ] as const)("does its work without one where %s, and says why", async (_, code, reason) => {
    const error = refusal(code, reason);
    const { work, calls, troubles, over } = stage((call) => (call === "CREATE leases" ? error : undefined));
    expect(await work(0)).toBe("done");
    expect(calls()).toEqual(["0 GET leases", "0 CREATE leases refused"]);
    expect([troubles, over]).toEqual([[error], new Set([HOLDER])]);
  });

  it("hands on what is wrong with reading it, other than that there is none", async () => {
    const forbidden = refusal(403, "Forbidden");
    const { site } = stage((call) => (call === "GET leases" ? forbidden : undefined));
    await expect(readLease(site)).rejects.toBe(forbidden);
  });

  it("gives it back also where its work fails", async () => {
    const { site, peek, calls } = stage();
    const bug = new TypeError("Cannot read properties of undefined");
    const failing = underLease(
      { site, state: { cursor: "" } },
      () => "",
      () => Promise.reject(bug),
      () => undefined,
    );
    await expect(failing).rejects.toBe(bug);
    expect([peek()?.spec?.holderIdentity, calls()]).toEqual(["", ["0 CREATE leases", "0 PATCH leases"]]);
  });
});
