import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Clock, systemClock } from "../../shared/controller/loop/clock.ts";
import { deadlineExceeded } from "../../shared/controller/loop/metered.ts";
import {
  failedStand,
  fromCursor,
  type Kind,
  type Listed,
  type LoopService,
  type Reconciler,
  reconcileAll,
  type Stand,
} from "../../shared/controller/loop/round-robin.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { steppedClock } from "./stepped-clock.ts";

interface Report {
  readonly key: string;
  readonly generation?: number;
  readonly stop: string;
}
type ReportStand = Stand<Report, "progress">;

// The clock moves when everything waits, so a busy machine has no effect.
const sleep = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((resolve) => {
    setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => resolve());
  });
const clock: Clock = { ...systemClock, sleep };
const PASS_MS = 100_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

function newService(changes: Partial<LoopService> = {}): LoopService {
  const limits = { endsAtMs: clock.now() + PASS_MS };
  return { clock, limits, isFollowing: true, isRescanning: true, problems: [], notReached: [], cursor: "", ...changes };
}

interface Loop {
  readonly keys: readonly string[];
  readonly service?: LoopService;
  readonly list?: () => Promise<readonly Listed[]>;
  readonly of: (key: string) => Reconciler<Report, "progress">;
}

async function reportsOf({ keys, service = newService(), list = async () => [], of }: Loop) {
  const kind: Kind<Report, "progress"> = { rescanMs: 5_000, list, reconcilerOf: of };
  let isOver = false;
  const all = reconcileAll(service, kind, keys).finally(() => {
    isOver = true;
  });
  while (!isOver) await vi.advanceTimersToNextTimerAsync();
  return await all;
}

const report = (key: string, stop: string, generation = 1): ReportStand => ({ report: { key, stop, generation } });
const underWay = (key: string): ReportStand => ({ ...report(key, "oneRound"), progress: "progress" });
const unavailable = (retryAfterSeconds?: number) =>
  new KubeError("down", {
    code: 503,
    reason: "ServiceUnavailable",
    ...(retryAfterSeconds ? { retryAfterSeconds } : {}),
  });
const neverFollowed = () => Promise.reject(new Error("there is nothing to follow"));
const KEYS = Array.from({ length: 30 }, (_, index) => `set-${String(index).padStart(2, "0")}`);

describe("reconcileAll:", () => {
  it("reconcileAll begins all objects, at most four at once, and reports in their order", async () => {
    let [now, most] = [0, 0];
    const begin = (key: string) => async () => {
      most = Math.max(most, ++now);
      await sleep(key === "set-00" ? 50 : 10);
      now--;
      return report(key, "done");
    };
    const reports = await reportsOf({ keys: KEYS, of: (key) => ({ begin: begin(key), follow: neverFollowed }) });
    expect(reports.map(({ key }) => key)).toEqual(KEYS);
    expect(most).toBe(4);
  });

  it("reconcileAll follows at most sixteen objects and settles the others at once", async () => {
    let [followed, most] = [0, 0];
    const settled: string[] = [];
    const follow = (key: string) => async () => {
      most = Math.max(most, ++followed);
      await sleep(40_000);
      followed--;
      return report(key, "followed");
    };
    const settle = (key: string) => async () => {
      settled.push(key);
      return report(key, "settled");
    };
    const of = (key: string) => ({ begin: async () => underWay(key), follow: follow(key), settle: settle(key) });
    const reports = await reportsOf({ keys: KEYS, of });
    expect(most).toBe(16);
    expect(settled).toEqual(KEYS.slice(16));
    expect(reports.map(({ stop }) => stop)).toEqual(KEYS.map((_, at) => (at < 16 ? "followed" : "settled")));
  });

  it("reconcileAll begins new and changed objects again with the same reconciler while it follows others", async () => {
    const made: string[] = [];
    const begun: string[] = [];
    const of = (key: string): Reconciler<Report, "progress"> => {
      made.push(key);
      let generation = 0;
      return {
        begin: async () => {
          begun.push(key);
          return key === "long" ? underWay(key) : report(key, "done", ++generation);
        },
        follow: async () => {
          await sleep(12_000);
          return report("long", "done");
        },
      };
    };
    const listed = ["changed", "long", "new", "same"];
    const list = async () => listed.map((key) => ({ key, generation: key === "changed" ? 2 : 1 }));
    const reports = await reportsOf({ keys: ["long", "same", "changed"], list, of });
    expect(begun).toEqual(["long", "same", "changed", "changed", "new"]);
    expect(made).toEqual(["long", "same", "changed", "new"]);
    expect(reports).toMatchObject([
      { key: "long" },
      { key: "same" },
      { key: "changed", generation: 2 },
      { key: "new" },
    ]);
  });

  it.each([
    ["after 1, 2, 4 and 8 s without Retry-After", undefined, [0, 1, 3, 7, 15]],
    ["not before a Retry-After of 3 s", 3, [0, 3, 6, 10, 18]],
    ["after 10 s with a longer Retry-After", 60, [0, 10, 20, 30, 40]],
  ])("reconcileAll begins an object again after an error of the API server: %s", async (_, retryAfter, expected) => {
    const beganAtMs = clock.now();
    const seconds: number[] = [];
    const begin = async () => {
      seconds.push(Math.round((clock.now() - beganAtMs) / 1000));
      return { ...report("one", "failed"), trouble: unavailable(retryAfter) };
    };
    await reportsOf({ keys: ["one"], of: () => ({ begin, follow: neverFollowed }) });
    expect(seconds).toEqual(expected);
  });

  it("reconcileAll names the objects that it did not reach and stores the last one as the cursor", async () => {
    const service = newService();
    const begin = (key: string) => async () => {
      await sleep(30_000);
      return report(key, "done");
    };
    const reports = await reportsOf({
      keys: KEYS,
      service,
      of: (key) => ({ begin: begin(key), follow: neverFollowed }),
    });
    expect(reports.map(({ key }) => key)).toEqual(KEYS.slice(0, 16));
    expect(service.notReached).toEqual(KEYS.slice(16));
    expect(
      fromCursor(
        KEYS.map((key) => ({ key, generation: 1 })),
        service.cursor,
        clock,
      )[0],
    ).toBe("set-16");
  });

  it("the cursor points before the first object that had too little time", async () => {
    const service = newService();
    const of = (key: string): Reconciler<Report, "progress"> => ({
      begin: async () => report(key, "done"),
      follow: neverFollowed,
      onEnd: ({ key: ended }) => void (ended === "set-05" && service.notReached.push(ended)),
    });
    await reportsOf({ keys: KEYS, service, of });
    expect(service.cursor).toBe("set-04");
  });

  it("reconcileAll lists nothing without isRescanning and follows nothing without isFollowing", async () => {
    const list = vi.fn(async () => [{ key: "other", generation: 1 }]);
    const follow = vi.fn(async () => {
      await sleep(12_000);
      return report("one", "followed");
    });
    const of = (key: string) => ({ begin: async () => underWay(key), follow });
    await reportsOf({ keys: ["one"], service: newService({ isRescanning: false }), list, of });
    expect([list, follow].map(({ mock }) => mock.calls.length)).toEqual([0, 1]);
    const reports = await reportsOf({ keys: ["one"], service: newService({ isFollowing: false }), list, of });
    expect(follow).toHaveBeenCalledTimes(1);
    expect(reports).toMatchObject([{ stop: "oneRound" }]);
  });
});

it.each<[string, Error, string, boolean]>([
  ["an API server that is too busy", new KubeError("busy", { code: 503, reason: "Busy" }), "failed", true],
  ["a refusal", new KubeError("no", { code: 403, reason: "Forbidden" }), "failed", false],
  ["the pass's deadline", deadlineExceeded("GET pods", true), "deadline", false],
  ["a bug", new TypeError("undefined is not a function"), "failed", false],
])("failedStand says whether a failure is worth another try: %s", (_, error, stop, isTrouble) => {
  const stand = failedStand(error, (end, why) => ({ end, why }));
  expect(stand).toEqual({ report: { end: stop, why: error.message }, ...(isTrouble ? { trouble: error } : {}) });
});

/** Runs a pass on a clock that moves only when something sleeps. */
function steppedPass(changes: Partial<LoopService> = {}) {
  const stepped = steppedClock();
  const signals: (AbortSignal | undefined)[] = [];
  const sleep: Clock["sleep"] = (ms, signal) => {
    signals.push(signal);
    return stepped.clock.sleep(ms, signal);
  };
  const limits = { endsAtMs: PASS_MS };
  const service = newService({ clock: { ...stepped.clock, sleep }, limits, ...changes });
  const until = (atMs: number) => new Promise<void>((resolve) => stepped.plan(atMs, () => resolve()));
  const looks: number[] = [];
  const begun: (readonly [atMs: number, key: string])[] = [];
  const noteBegin = (key: string) => void begun.push([stepped.clock.now(), key]);
  const run = (
    keys: readonly string[],
    of: (key: string) => Reconciler<Report, "progress">,
    list: () => Promise<readonly Listed[]> = async () => [],
  ) => {
    const listed = () => {
      looks.push(stepped.clock.now());
      return list();
    };
    return reconcileAll<Report, "progress">(service, { rescanMs: 5_000, list: listed, reconcilerOf: of }, keys);
  };
  return { service, signals, until, looks, begun, noteBegin, run, now: stepped.clock.now, sleep, plan: stepped.plan };
}

describe("reconcileAll on a stepped clock:", () => {
  /** Lets "long" run until that time; all other keys end at once. */
  const longUntil =
    ({ until, noteBegin }: ReturnType<typeof steppedPass>, atMs: number) =>
    (key: string): Reconciler<Report, "progress"> => ({
      begin: async () => {
        noteBegin(key);
        return key === "long" ? underWay(key) : report(key, "done");
      },
      follow: async () => {
        await until(atMs);
        return report(key, "followed");
      },
    });

  it("reconcileAll lists objects every five seconds while it follows one, and not after that", async () => {
    const pass = steppedPass();
    const reports = await pass.run(["long"], longUntil(pass, 12_000));
    expect([pass.looks, pass.now()]).toEqual([[5_000, 10_000], 12_000]);
    expect(reports).toMatchObject([{ key: "long", stop: "followed" }]);
    expect(pass.signals.at(-1)?.aborted, "a timer would keep the process").toBe(true);
  });

  it("reconcileAll follows another object in place of one that has ended", async () => {
    const pass = steppedPass();
    const names = KEYS.slice(0, 15);
    const of = (key: string): Reconciler<Report, "progress"> => ({
      begin: async () => underWay(key),
      follow: async () => {
        await pass.until(key === "long" ? 12_000 : 1_000);
        return report(key, "followed");
      },
      settle: async () => report(key, "settled"),
    });
    const list = async () => ["late", "long", ...names].map((key) => ({ key, generation: 1 }));
    const reports = await pass.run(["long", ...names], of, list);
    expect(reports.map(({ key }) => key)).toEqual(["long", ...names, "late"]);
    expect(reports.map(({ stop }) => stop)).toEqual(Array.from({ length: 17 }, () => "followed"));
  });

  it("reconcileAll lists nothing when it follows nothing", async () => {
    const pass = steppedPass();
    await pass.run(["one", "other"], longUntil(pass, 0));
    expect([pass.looks, pass.signals]).toEqual([[], []]);
  });

  it("reconcileAll begins an object again a minute after it was reconciled", async () => {
    const pass = steppedPass();
    const listed = ["long", "short"].map((key) => ({ key, generation: 1 }));
    await pass.run(["long", "short"], longUntil(pass, 62_000), async () => listed);
    expect(pass.begun).toEqual([
      [0, "long"],
      [0, "short"],
      [60_000, "short"],
    ]);
  });

  it("reconcileAll notes a failed list as a problem, continues, and lists again", async () => {
    const pass = steppedPass();
    const reports = await pass.run(["long"], longUntil(pass, 12_000), () => Promise.reject(new Error("no list")));
    expect([pass.looks, pass.service.problems]).toEqual([[5_000, 10_000], ["no list"]]);
    expect(pass.begun).toEqual([[0, "long"]]);
    expect(reports).toMatchObject([{ key: "long", stop: "followed" }]);
  });

  it("at the end of its time reconcileAll counts a new object as not reached, but not an object that it reconciled before", async () => {
    const pass = steppedPass({ limits: { endsAtMs: 20_000 } });
    const slow = ["slow-0", "slow-1", "slow-2", "slow-3"];
    const listed = [...slow, "changed", "new"].map((key) => ({ key, generation: 2 }));
    const of = longUntil(pass, 17_500);
    await pass.run(
      ["long", "changed"],
      (key) => {
        const { begin, ...more } = of(key);
        const late = async () => {
          if (key.startsWith("slow")) await pass.sleep(13_000);
          return await begin();
        };
        return { begin: late, ...more };
      },
      async () => listed,
    );
    expect(new Set(pass.begun.map(([, key]) => key))).toEqual(new Set(["long", "changed", ...slow]));
    expect(pass.service.notReached).toEqual(["new"]);
  });

  it("without following, reconcileAll settles an object before it begins another one", async () => {
    const pass = steppedPass({ isFollowing: false });
    const open = new Set<string>();
    let most = 0;
    const of = (key: string): Reconciler<Report, "progress"> => ({
      begin: async () => {
        most = Math.max(most, open.add(key).size);
        return underWay(key);
      },
      follow: neverFollowed,
      settle: async () => {
        await pass.sleep(1_000);
        open.delete(key);
        return report(key, "settled");
      },
    });
    const reports = await pass.run(KEYS, of);
    expect(most).toBe(4);
    expect(new Set(reports.map(({ stop }) => stop))).toEqual(new Set(["settled"]));
  });

  const inTrouble =
    ({ noteBegin }: ReturnType<typeof steppedPass>) =>
    (key: string): Reconciler<Report, "progress"> => ({
      begin: async () => {
        noteBegin(key);
        return { ...report(key, "failed"), trouble: unavailable() };
      },
      follow: neverFollowed,
    });

  it("reconcileAll begins an object only while three seconds are left", async () => {
    const pass = steppedPass({ isRescanning: false, limits: { endsAtMs: 4_000 } });
    await pass.run(["one"], inTrouble(pass));
    // The next look would come 2 seconds later.
    expect([pass.begun.map(([atMs]) => atMs), pass.now()]).toEqual([[0, 1_000], 3_000]);
  });

  it("reconcileAll begins nothing after it was aborted", async () => {
    const stop = new AbortController();
    const pass = steppedPass({ isRescanning: false, limits: { endsAtMs: PASS_MS, signal: stop.signal } });
    pass.plan(2_000, () => stop.abort());
    await pass.run(["one"], inTrouble(pass));
    expect([pass.begun.map(([atMs]) => atMs), pass.now()]).toEqual([[0, 1_000], 2_000]);
    expect(await pass.run(KEYS, inTrouble(pass))).toEqual([]);
    expect(pass.service.notReached).toEqual(KEYS);
  });
});
