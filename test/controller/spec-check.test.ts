/** Tests the check, during a batch, whether the SidecarSet has changed. */
import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { observe } from "../../shared/controller/rollout/observe.ts";
import { SpecCheck } from "../../shared/controller/rollout/write-pods.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";

async function begin(refuse?: Refuse) {
  const on = bareRollout("set", refuse);
  on.deploy(1);
  const snapshot = await observe(on.context, "set");
  if (!snapshot) throw new Error("there is no SidecarSet");
  const spec = new SpecCheck(on.context, snapshot);
  /** Repeats the check until answers have come. */
  const check = async () => {
    const said = spec.check();
    for (let turn = 0; turn < 5; turn++) await setImmediate();
    return said;
  };
  const asked = () => on.calls.filter(([, call]) => call.startsWith("GET sidecarsets")).map(([atMs]) => atMs);
  const first = asked().length;
  return { ...on, spec, check, asked: () => asked().slice(first) };
}

it("SpecCheck reads the SidecarSet after two seconds, and the next check knows the result", async () => {
  const { check, clock, release, spec, asked } = await begin();
  release(2);
  await clock.sleep(1_999);
  expect([await check(), asked()]).toEqual([false, []]);
  await clock.sleep(1);
  expect([await check(), asked()]).toEqual([false, [2_000]]);
  expect([await check(), spec.isOutdated, asked()]).toEqual([true, true, [2_000]]);
  await clock.sleep(9_000);
  expect([await check(), asked()]).toEqual([true, [2_000]]);
});

it("SpecCheck reads an unchanged SidecarSet every two seconds", async () => {
  const { check, clock, asked } = await begin();
  for (let turn = 0; turn < 6; turn++) {
    await clock.sleep(1_000);
    expect(await check()).toBe(false);
  }
  expect(asked()).toEqual([2_000, 4_000, 6_000]);
});

it.each<[string, (on: Awaited<ReturnType<typeof begin>>) => void]>([
  ["is deleted", ({ server, readSet }) => server.remove("test", SIDECARSETS, readSet())],
  [
    "gets another annotation that steers the rollout",
    ({ server, readSet }) => {
      const { metadata, ...set } = readSet();
      const annotations = { ...metadata?.annotations, "sidecarset.kruise.io/halt-on": "3" };
      server.put("test", SIDECARSETS, { ...set, metadata: { ...metadata, annotations } });
    },
  ],
])("SpecCheck reports a change when the SidecarSet %s", async (_, change) => {
  const on = await begin();
  change(on);
  await on.clock.sleep(2_000);
  await on.check();
  expect(on.spec.isOutdated).toBe(true);
});

it("SpecCheck reports no change when the read fails, and reads again two seconds later", async () => {
  const { check, clock, asked, spec } = await begin((call, nth) =>
    call === "GET sidecarsets" && nth === 2 ? refusal(503, "ServiceUnavailable") : undefined,
  );
  await clock.sleep(2_000);
  await check();
  await clock.sleep(1_999);
  await check();
  await clock.sleep(1);
  await check();
  expect([spec.isOutdated, asked()]).toEqual([false, [2_000, 4_000]]);
});

it("SpecCheck runs only one read at a time", async () => {
  const { spec, clock, asked } = await begin();
  await clock.sleep(2_000);
  for (let turn = 0; turn < 3; turn++) spec.check();
  expect(asked()).toEqual([2_000]);
});
