/** Tests how long a pass skips the pods of a controller after a refused eviction. */
import { expect, it } from "vitest";
import { forgetKept, keptOwners, noteKept } from "../../shared/controller/rollout/departures.ts";
import { steppedClock } from "./stepped-clock.ts";

const of = (owner: string, namespace = "shop") => ({ departure: { namespace, owner } });
const OF_WEB = of("web");

function rollout() {
  const { clock } = steppedClock();
  const context = { clock };
  const kept = () => [...keptOwners(context)];
  return {
    kept,
    refuse: (wanted = OF_WEB) => noteKept(context, wanted),
    evict: () => forgetKept(context, OF_WEB),
    ...clock,
  };
}

it("a refused eviction makes a pass skip the pods of that controller for two seconds", async () => {
  const { kept, refuse, sleep } = rollout();
  expect(kept()).toEqual([]);
  refuse();
  expect(kept()).toEqual(["shop/web"]);
  await sleep(1_999);
  refuse(of("api"));
  expect(kept()).toEqual(["shop/web", "shop/api"]);
  await sleep(1);
  expect(kept()).toEqual(["shop/api"]);
});

it("a refused eviction does not delay pods of another namespace, even if the pod names their owner", () => {
  const { kept, refuse } = rollout();
  refuse(of("web", "greedy"));
  expect(kept()).toEqual(["greedy/web"]);
});

it("each further refusal doubles the time that the controller's pods are skipped, up to 30 seconds", async () => {
  const { kept, refuse, sleep } = rollout();
  for (const waitMs of [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    refuse();
    await sleep(waitMs - 1);
    expect(kept()).toEqual(["shop/web"]);
    await sleep(1);
    expect(kept()).toEqual([]);
  }
});

it("a second refusal within the wait does not prolong it", async () => {
  const { kept, refuse, sleep } = rollout();
  refuse();
  await sleep(1_999);
  refuse();
  await sleep(1);
  expect(kept()).toEqual([]);
});

it("a successful eviction after the wait resets the wait of the next refusal to two seconds", async () => {
  const { kept, refuse, evict, sleep } = rollout();
  refuse();
  await sleep(2_000);
  evict();
  refuse();
  await sleep(1_999);
  expect(kept()).toEqual(["shop/web"]);
  await sleep(1);
  expect(kept()).toEqual([]);
});

it("a successful eviction does not end a wait that has begun", async () => {
  const { kept, refuse, evict, sleep } = rollout();
  evict();
  expect(kept()).toEqual([]);
  refuse();
  await sleep(1_999);
  evict();
  expect(kept()).toEqual(["shop/web"]);
});

it("a refusal in one rollout does not affect another rollout", () => {
  rollout().refuse();
  expect(rollout().kept()).toEqual([]);
});
