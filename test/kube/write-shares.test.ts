import { expect, test } from "vitest";
import { type Limiter, limiter } from "../../shared/kube/rate-limit.ts";
import { namespaceShare } from "../../shared/kube/write-shares.ts";

async function turns() {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}

const inTurn = ({ enter, leave }: Limiter, work: () => Promise<void>) => enter().then(work).finally(leave);

/** Starts `atOnce` calls that do not end before `end`, and returns how many run. */
function endless(atOnce: number) {
  const places = limiter({ qps: 0, burst: 0, atOnce }, { now: () => 0, sleep: async () => undefined });
  const under = new Map<string, number>();
  const { promise, resolve } = Promise.withResolvers<void>();
  const calls: Promise<void>[] = [];
  const begin = (what: string, count: number, namespace?: string) => {
    const work = async () => {
      under.set(what, (under.get(what) ?? 0) + 1);
      await promise;
    };
    for (let nth = 0; nth < count; nth++)
      calls.push(inTurn(namespace === undefined ? places : namespaceShare(places, atOnce, namespace), work));
  };
  const end = async () => {
    resolve();
    await Promise.all(calls);
  };
  return { under, begin, end };
}

test("writes to one namespace use at most half of the places, and reads and writes to other namespaces continue", async () => {
  const { under, begin, end } = endless(64);
  begin("greedy", 500, "greedy");
  begin("modest", 10, "modest");
  begin("read", 10);
  await turns();
  expect(Object.fromEntries(under)).toEqual({ greedy: 32, modest: 10, read: 10 });
  await end();
  expect(under.get("greedy")).toBe(500);
});

test("writes to many namespaces use at most three quarters of the places, and a namespace without a place gets its first", async () => {
  const { under, begin, end } = endless(64);
  begin("greedy", 500, "greedy");
  begin("greedier", 500, "greedier");
  begin("lease", 1, "kruise-system");
  begin("read", 15);
  await turns();
  expect(Object.fromEntries(under)).toEqual({ greedy: 32, greedier: 16, lease: 1, read: 15 });
  await end();
  expect(under.get("greedier")).toBe(500);
});

test("a namespace's writes use a single place one after another", async () => {
  const { under, begin, end } = endless(1);
  begin("one", 3, "one");
  await turns();
  expect(under.get("one")).toBe(1);
  await end();
  expect(under.get("one")).toBe(3);
});
