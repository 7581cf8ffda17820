/** How long the pods of a controller are left after an eviction of one of them was refused. */
import { expect, it } from "vitest";
import { forgetKept, keptOwners, noteKept } from "../../shared/controller/rollout/kept-owners.ts";
import { steppedClock } from "./stepped-clock.ts";

const OF_WEB = { departure: { owner: "web" } };

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

it("the pods of a controller are left for two seconds, and those of others are not", async () => {
  const { kept, refuse, sleep } = rollout();
  expect(kept()).toEqual([]);
  refuse();
  expect(kept()).toEqual(["web"]);
  await sleep(1_999);
  refuse({ departure: { owner: "api" } });
  expect(kept()).toEqual(["web", "api"]);
  await sleep(1);
  expect(kept()).toEqual(["api"]);
});

it("each refusal after that leaves them twice as long, at most half a minute", async () => {
  const { kept, refuse, sleep } = rollout();
  for (const waitMs of [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    refuse();
    await sleep(waitMs - 1);
    expect(kept()).toEqual(["web"]);
    await sleep(1);
    expect(kept()).toEqual([]);
  }
});

it("of pods that are refused together the first counts", async () => {
  const { kept, refuse, sleep } = rollout();
  refuse();
  await sleep(1_999);
  refuse();
  await sleep(1);
  expect(kept()).toEqual([]);
});

it("an eviction that is carried out ends that, once the time is over", async () => {
  const { kept, refuse, evict, sleep } = rollout();
  refuse();
  await sleep(2_000);
  evict();
  refuse();
  await sleep(1_999);
  expect(kept()).toEqual(["web"]);
  await sleep(1);
  expect(kept()).toEqual([]);
});

it("one of the same batch as the refusal changes nothing, and neither does one where none was refused", async () => {
  const { kept, refuse, evict, sleep } = rollout();
  evict();
  expect(kept()).toEqual([]);
  refuse();
  await sleep(1_999);
  evict();
  expect(kept()).toEqual(["web"]);
});

it("another rollout knows nothing of it", () => {
  rollout().refuse();
  expect(rollout().kept()).toEqual([]);
});
