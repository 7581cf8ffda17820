/**
 * Tests the Lease of the passes: the last served SidecarSet, the pass that works, and the feature gates that are on.
 */
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { errorMessage, systemClock } from "../../shared/controller/loop/clock.ts";
import {
  announcedSettings,
  holdLease,
  type LeaseSite,
  noteDrains,
  readLease,
  renewLease,
} from "../../shared/controller/loop/lease.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
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

it.each([
  ["no gates on", {}],
  ["two gates on", { InPlaceResize: true, RespectDisruptionBudgets: true }],
  ["all gates but one on", { ...allOn(), InPlaceResize: false }],
])("announcedSettings reads back the settings that a Lease announces: %s", async (name, more) => {
  const settings = { ...allOff(), ...more };
  const site = { ...siteOf(name.replaceAll(" ", "-")), settings };
  await renewLease(site);
  expect(announcedSettings(await readLease(site))).toEqual(settings);
});

it.each([
  ["no Lease", { cursor: "" }],
  ["a Lease without annotations", { cursor: "", stored: { metadata: { name: "lease" } } }],
  ["a Lease without metadata", { cursor: "", stored: {} }],
])("announcedSettings returns undefined for %s", (_, state) => {
  expect(announcedSettings(state)).toBeUndefined();
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

it("a Lease without times and annotations has no holder and an empty cursor", async () => {
  const metadata = { namespace: KRUISE_NAMESPACE, name: "bare" };
  const spec = { holderIdentity: "somebody" };
  const stored = await cluster.create<KubernetesObject>(LEASES, { metadata, ...({ spec } as object) });
  expect(await readLease(siteOf("bare"))).toEqual({ stored, cursor: "" });
  expect(await readLease(siteOf("absent"))).toEqual({ cursor: "" });
});

/** Runs the work as a pass does. */
async function underLease<T>(
  at: Parameters<typeof holdLease>[0],
  cursor: () => string,
  work: () => Promise<T>,
  onTrouble: (error: unknown) => void,
): Promise<T | undefined> {
  const held = await holdLease(at, cursor, onTrouble);
  return held && (await work().finally(held.end));
}

describe("the Lease of a pass:", () => {
  const EPOCH = Date.UTC(2026, 0, 10);
  const NAME = "sidecarset-rollout";
  /** The name of the holder with the stepped clock's random number, 0.25. */
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
    /** Works until that moment; the renewals move the clock. */
    const work = (untilMs: number, more: Partial<LeaseSite> = {}) =>
      underIt(async () => {
        if (untilMs > 0) await new Promise<void>((resolve) => stepped.plan(untilMs, () => resolve()));
        return "done";
      }, more);
    /** Works for 15 more seconds after that call was refused. */
    const workBeyond = (call: string) =>
      underIt(async () => {
        while (!bare.calls.some(([, made]) => made === `${call} refused`)) await setImmediate();
        await stepped.clock.sleep(15_000);
        return "done";
      });
    const serve = (key: string) => {
      cursor = key;
    };
    const underCursor = async (used: LeaseSite) =>
      holdLease(
        { site: used, state: await readLease(used) },
        () => cursor,
        (error) => troubles.push(error),
      );
    const calls = () => bare.calls.map(([atMs, call]) => `${atMs} ${call}`);
    const means = { site, over, peek, put, troubles, work, workBeyond, serve, underCursor, calls, server: bare.server };
    return { ...stepped, ...means };
  }

  it("a pass holds the Lease, renews it every ten seconds and stores the last served SidecarSet in it", async () => {
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

  it("a pass gives the Lease back once its last renewal has an answer", async () => {
    const { site, work, peek, clock } = stage();
    let [underWay, most] = [0, 0];
    const slow: Cluster = {
      ...site.cluster,
      patch: async (...call) => {
        most = Math.max(most, ++underWay);
        try {
          if (underWay === 1) await clock.sleep(2_000);
          return (await site.cluster.patch(...call)) as never;
        } finally {
          underWay--;
        }
      },
    };
    expect(await work(11_000, { cluster: slow })).toBe("done");
    expect(most).toBe(1);
    expect(peek()?.spec?.holderIdentity).toBe("");
  });

  it("a pass announces its feature gates in the Lease", async () => {
    const { work, peek, site } = stage();
    const settings = { ...allOff(), InPlaceResize: true, RespectDisruptionBudgets: true };
    await work(0, { settings });
    const text = peek()?.metadata?.annotations?.["sidecarset.kruise.io/feature-gates"];
    expect(text?.split(",").toSorted()).toEqual(["InPlaceResize=true", "RespectDisruptionBudgets=true"]);
    expect(announcedSettings(await readLease(site))).toEqual(settings);
  });

  it.each<[string, number, object, string | undefined]>([
    ["held until 30 seconds after its renewal", 29.999, {}, "other"],
    ["free 30 seconds after its renewal", 30, {}, undefined],
    ["free when its own shorter duration is over", 10, { leaseDurationSeconds: 10 }, undefined],
    ["free after 30 seconds even if its own duration is longer", 30, { leaseDurationSeconds: 3_600 }, undefined],
    ["held when the holder's clock is less than 30 seconds ahead", -29.999, {}, "other"],
    ["free when the holder's clock is 30 seconds ahead", -30, {}, undefined],
    ["free when its holder gave it back", 0, { holderIdentity: "" }, undefined],
    ["free when it was never renewed", 0, { renewTime: undefined }, undefined],
  ])("readLease sees a Lease as %s", async (_, ageSeconds, more, heldBy) => {
    const { put, site } = stage();
    put({ holderIdentity: "other", leaseDurationSeconds: 30, renewTime: secondsIn(-ageSeconds), ...more });
    expect((await readLease(site)).heldBy).toBe(heldBy);
  });

  it("a pass does not wait for a Lease whose holder has ended in the same process", async () => {
    const { put, site, over } = stage();
    over.add("other");
    put({ holderIdentity: "other", leaseDurationSeconds: 30, renewTime: secondsIn(0) });
    expect(await readLease(site)).not.toHaveProperty("heldBy");
  });

  it("a pass reads the last served SidecarSet from the Lease, or an empty cursor when there is none", async () => {
    const { put, site } = stage();
    expect(await readLease(site)).toEqual({ cursor: "" });
    put({}, { "sidecarset.kruise.io/last-served": "web" });
    expect((await readLease(site)).cursor).toBe("web");
  });

  it("readLease reads the note about drains, also from a Lease without a spec", async () => {
    const { put, site } = stage();
    put(undefined, { "sidecarset.kruise.io/drains": "true" });
    expect(await readLease(site)).toMatchObject({ cursor: "", mayDrain: true });
  });

  it("a pass writes the note about drains into its Lease, and a later pass removes it", async () => {
    const { work, peek } = stage();
    const served = { "sidecarset.kruise.io/last-served": "begun" };
    await work(0, { drains: { isAsked: true, mayDrain: true } });
    expect(peek()?.metadata?.annotations).toEqual({ ...served, "sidecarset.kruise.io/drains": "true" });
    await work(0, { drains: { isAsked: false, mayDrain: false } });
    expect(peek()?.metadata?.annotations).toEqual(served);
  });

  it("a pass renews its Lease at once when it asks for it, and without a Lease it asks in vain", async () => {
    const { site, peek, serve, underCursor } = stage();
    const held = await underCursor(site);
    serve("next");
    await held?.renew();
    expect(peek()?.metadata?.annotations?.["sidecarset.kruise.io/last-served"]).toBe("next");
    await held?.end();
    const on = stage((call) => (call === "CREATE leases" ? refusal(403, "Forbidden") : undefined));
    const none = await on.underCursor(on.site);
    await none?.renew();
    await none?.end();
    expect(on.calls()).toEqual(["0 GET leases", "0 CREATE leases refused"]);
  });

  it("a pass does no work when another pass creates the Lease first", async () => {
    const on = stage((call) => {
      if (call !== "CREATE leases") return undefined;
      on.put({ holderIdentity: "other", leaseDurationSeconds: 30, renewTime: secondsIn(0) });
      return refusal(409, "AlreadyExists");
    });
    expect(await on.work(0)).toBe("left to another pass");
    expect([on.troubles, on.over]).toEqual([[], new Set()]);
  });

  it.each([
    ["creation", "CREATE leases", 409, undefined],
    ["change", "PATCH leases", 409, ""],
    ["change", "PATCH leases", 404, ""],
  ] as const)(
    "a pass works without a Lease and names it when a policy refuses its %s (%s) with %s",
    async (_, refused, code, holderIdentity) => {
      const denied = new KubeError("policy says no", { code, reason: "Conflict", isOutcomeKnown: true });
      const { work, put, calls, troubles } = stage((call) => (call === refused ? denied : undefined));
      if (holderIdentity !== undefined) put({ holderIdentity });
      expect(await work(0)).toBe("done");
      expect(calls()).toEqual(["0 GET leases", `0 ${refused} refused`, "0 GET leases"]);
      expect(troubles.map(errorMessage)).toEqual([
        "the Lease shop/sidecarset-rollout is not written, and nobody else wrote it: policy says no",
      ]);
    },
  );

  it("a pass works without a Lease after three tries when others write it each time without holding it", async () => {
    const on = stage((call) => {
      if (call === "PATCH leases") on.put({}, { seen: String(on.calls().length) });
      return undefined;
    });
    on.put({ holderIdentity: "" });
    expect(await on.work(0)).toBe("done");
    expect(on.calls().filter((call) => call.includes("PATCH"))).toHaveLength(3);
    expect(on.troubles.map(errorMessage)).toEqual([
      "the Lease shop/sidecarset-rollout is written by others each time, and none of them is a pass",
    ]);
  });

  it("a pass still renews its Lease and gives it back after somebody else wrote an annotation into the Lease", async () => {
    const { plan, work, peek, site, calls, troubles } = stage();
    const drains = { ...site, drains: { isAsked: false, mayDrain: false } };
    plan(5_000, () => void noteDrains(drains));
    expect(await work(25_000)).toBe("done");
    expect([peek()?.spec?.holderIdentity, peek()?.metadata?.annotations?.["sidecarset.kruise.io/drains"]]).toEqual([
      "",
      "true",
    ]);
    expect(calls().filter((call) => /^(?:10|20|25)000 PATCH/.test(call))).toHaveLength(4);
    expect(troubles).toEqual([]);
  });

  it("a Lease keeps the note about drains that a pass over one SidecarSet wrote in the meantime", async () => {
    const { peek, site, put } = stage();
    put({ holderIdentity: "" });
    const drains = { ...site, drains: { isAsked: false, mayDrain: false } };
    const held = await holdLease(
      { site: drains, state: await readLease(site) },
      () => "a",
      () => undefined,
    );
    await noteDrains(site);
    await held?.end();
    expect(peek()?.metadata?.annotations?.["sidecarset.kruise.io/drains"]).toBe("true");
    expect(peek()?.spec?.holderIdentity).toBe("");
  });

  it("a pass does no work when the Lease changed after it was read", async () => {
    const { put, site, server } = stage();
    put({ holderIdentity: "" });
    const state = await readLease(site);
    await server.patch(
      callOf("other", LEASES, { namespace: "shop", name: NAME }),
      {
        type: "merge",
        body: { spec: { holderIdentity: "other", leaseDurationSeconds: 30, renewTime: secondsIn(0) } },
      },
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
  ] as const)("a pass continues its work, without another renewal, when its Lease %s", async (_, code, reason) => {
    const on = stage((call) => {
      if (call !== "PATCH leases") return undefined;
      on.put({ holderIdentity: "other" });
      if (code === 404) on.server.remove("test", LEASES, { metadata: { namespace: "shop", name: NAME } });
      return refusal(code, reason);
    });
    const { workBeyond, calls, troubles, over } = on;
    over.add("pass-before");
    expect(await workBeyond("PATCH leases")).toBe("done");
    const written = calls().filter((call) => call.includes("PATCH"));
    expect(written).toEqual(["10000 PATCH leases refused", "25000 PATCH leases refused"]);
    expect(troubles).toEqual([]);
    expect(over, "the Lease may still name it").toEqual(new Set(["pass-before", HOLDER]));
  });

  it("a pass continues when a renewal is forbidden, reports the error, and clears the ended holders when it gives the Lease back", async () => {
    const forbidden = refusal(403, "Forbidden");
    const { workBeyond, calls, troubles, over, peek } = stage((call, nth) =>
      call === "PATCH leases" && nth === 1 ? forbidden : undefined,
    );
    over.add("pass-before");
    expect(await workBeyond("PATCH leases")).toBe("done");
    expect(calls().slice(2)).toEqual(["10000 PATCH leases refused", "25000 PATCH leases"]);
    expect([troubles, over, peek()?.spec?.holderIdentity]).toEqual([[forbidden], new Set(), ""]);
  });

  it("a pass reports an error when it cannot give the Lease back, and remembers that it has ended", async () => {
    const down = refusal(503, "ServiceUnavailable");
    const { work, troubles, over } = stage((call) => (call === "PATCH leases" ? down : undefined));
    expect(await work(5_000)).toBe("done");
    expect([troubles, over]).toEqual([[down], new Set([HOLDER])]);
  });

  it.each([
    ["the API server fails", 500, "InternalError"],
    ["its namespace does not exist", 404, "NotFound"],
    ["creating it is forbidden", 403, "Forbidden"],
  ] as const)("a pass works without a Lease and reports the error when %s", async (_, code, reason) => {
    const error = refusal(code, reason);
    const { work, calls, troubles, over } = stage((call) => (call === "CREATE leases" ? error : undefined));
    expect(await work(0)).toBe("done");
    expect(calls()).toEqual(["0 GET leases", "0 CREATE leases refused"]);
    expect([troubles, over]).toEqual([[error], new Set([HOLDER])]);
  });

  it("readLease rejects when reading the Lease is forbidden", async () => {
    const forbidden = refusal(403, "Forbidden");
    const { site } = stage((call) => (call === "GET leases" ? forbidden : undefined));
    await expect(readLease(site)).rejects.toBe(forbidden);
  });

  it("a pass gives the Lease back when its work fails", async () => {
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
