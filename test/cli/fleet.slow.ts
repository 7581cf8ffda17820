/**
 * Tests `fleet apply` when it is killed at each of its calls, and on 50 clusters of which three are broken in different
 * ways.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { eventually } from "../controller/fixture.ts";
import { startVirtualTime, stopVirtualTime } from "../support/virtual-time.ts";
import { apply, Killer, recordOf, type StandIn, startStandIn, status, type Trouble, undo } from "./fleet-stand-ins.ts";

let standIns: readonly StandIn[] = [];

beforeAll(startVirtualTime);
afterEach(async () => {
  await Promise.all(standIns.map(({ close }) => close()));
  standIns = [];
});
afterAll(stopVirtualTime);

async function start(names: readonly string[], troubles: Readonly<Record<string, Trouble>> = {}) {
  const started = await Promise.all(names.map((name) => startStandIn(name, troubles[name])));
  standIns = [...standIns, ...started];
  return started;
}

const versions = (all: readonly StandIn[]) => Promise.all(all.map(async (one) => (await one.versions()).join()));
const SOAK = { soak: "10s" };

/** Expects that each cluster got the release once, after the soak of the cluster before it. */
async function expectInOrder(all: readonly StandIn[]): Promise<void> {
  expect(await versions(all)).toEqual(all.map(() => "2,2"));
  for (const one of all)
    expect(
      one.releases().map((image) => image.split(":")[1]),
      one.name,
    ).toEqual(["1", "2"]);
  const records = await Promise.all(all.map(recordOf));
  for (const [index, { at = "" }] of records.entries())
    if (index > 0)
      expect(Date.parse(at) - Date.parse(records[index - 1]?.["readyAt"] ?? "")).toBeGreaterThanOrEqual(10_000);
}

it("fleet apply, killed at any call and started again, gives each cluster the release once and in order", async () => {
  const counter = new Killer();
  const whole = await apply({ standIns: await start(["a", "b"]), killer: counter, options: SOAK }, 2);
  expect([whole.code, counter.writes]).toEqual([0, 4]);
  const calls = Array.from({ length: counter.calls }, (_, index) => ({ call: index + 1, when: "before" as const }));
  const writes = Array.from({ length: counter.writes }, (_, index) => ({ write: index + 1, when: "after" as const }));
  for (const at of [...calls, ...writes]) {
    const all = await start(["a", "b"]);
    expect((await apply({ standIns: all, killer: new Killer(at), options: SOAK }, 2)).isKilled).toBe(true);
    const { code, stdout } = await apply({ standIns: all, options: SOAK }, 2);
    expect([code, stdout.includes("All of 2 clusters done.")], JSON.stringify(at)).toEqual([0, true]);
    await expectInOrder(all);
  }
});

const NAMES = Array.from({ length: 50 }, (_, index) => `c${String(index + 1).padStart(2, "0")}`);

/** Kills the command before and after each write, and starts it again until one run ends by itself. */
async function applyKilled(all: readonly StandIn[], options: Readonly<Record<string, string>>) {
  for (let kills = 0; ; kills += 2) {
    const before = await apply({ standIns: all, killer: new Killer({ write: 1, when: "before" }), options }, 2);
    if (!before.isKilled) return { ...before, kills };
    // A killed write is repeated once.
    await apply({ standIns: all, killer: new Killer({ write: 1, when: "after" }), options }, 2);
  }
}

it("fleet apply, killed at every write, stops at each broken one of 50 clusters and continues after its repair", async () => {
  const all = await start(NAMES, { c10: "refuses", c25: "silent", c40: "never ready" });
  const [c10, c25] = [all[9], all[24]];
  if (c10 === undefined || c25 === undefined) throw new Error("there are 50");
  const options = { ...SOAK, timeout: "20m" };

  const refused = await apply({ standIns: all, options }, 2);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(
    /^c10: .*is forbidden.*\nc25: .*did not answer.*\nNothing was changed: 2 of 50 clusters cannot get it\.\n$/,
  );
  expect(new Set(await versions(all))).toEqual(new Set(["1,1"]));

  c10.trouble = "refuses later";
  c25.trouble = "silent later";
  const untilStopped = () => applyKilled(all, options);
  const first = await untilStopped();
  expect([first.code, first.stderr]).toEqual([1, expect.stringMatching(/^c10: .*is forbidden/)]);
  expect(first.stdout).toMatch(
    /\nStopped at c10\.\n9 of 50 clusters done: c01, .*c09\.\nLeft as they are: c11, .*c50\.\n/,
  );
  await expectInOrder(all.slice(0, 9));
  c10.trouble = undefined;

  const second = await untilStopped();
  expect([second.code, second.stderr]).toEqual([1, expect.stringMatching(/^c25: .*did not answer/)]);
  expect((await status({ standIns: all })).code).toBe(5);
  c25.trouble = undefined;

  const third = await untilStopped();
  expect([third.code, third.stdout]).toEqual([
    3,
    expect.stringContaining("\nStopped at c40.\n39 of 50 clusters done: c01, "),
  ]);
  await expectInOrder(all.slice(0, 39));
  expect(new Set(await versions(all.slice(40)))).toEqual(new Set(["1,1"]));
  expect(first.kills + second.kills + third.kills).toBeGreaterThan(50);

  const back = await undo({ standIns: all });
  expect([
    back.code,
    back.stdout.match(/back to revision 1/g)?.length,
    back.stdout.match(/left as it is/g)?.length,
  ]).toEqual([0, 40, 10]);
  await eventually(async () => expect(new Set(await versions(all))).toEqual(new Set(["1,1"])));
});
