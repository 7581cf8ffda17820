/** Tests the events that a pass emits for tracing: the names of its steps, and the end of each step. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { reconcileSidecarSets } from "../../shared/controller/rollout/reconcile.ts";
import { DOINGS, type Doing, type Ending } from "../../shared/doings.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";
import { serviceOf } from "./service.ts";

interface Told {
  readonly name: string;
  readonly values: Doing["values"];
  readonly ending: Ending;
}

let told: Told[];
const listen = (message: unknown) => {
  const doing = message as Doing;
  const { name, values } = doing;
  doing.end = (ending) => told.push({ name, values, ending });
};
beforeEach(() => {
  told = [];
  DOINGS.subscribe(listen);
});
afterEach(() => DOINGS.unsubscribe(listen));

/** Runs a pass over one SidecarSet of version 2 with two old pods. */
async function pass(isFollowing: boolean, refuse?: Refuse): Promise<void> {
  const on = bareRollout("set", refuse);
  on.deploy(2);
  on.release(2);
  const limits = { endsAtMs: 6_000, lastsMs: 6_000 };
  await reconcileSidecarSets(serviceOf(on.cluster, { clock: on.clock, limits, isFollowing, isRescanning: false }), [
    "set",
  ]);
}

const SET = { "sidecarset.name": "set" };

it("a pass publishes a step for each observation, decision and batch, and the larger steps end with the rollout's state", async () => {
  await pass(false);
  const state = expect.any(String);
  expect(told.filter(({ values }) => values["sidecarset.name"] !== undefined)).toEqual([
    {
      name: "begin",
      values: SET,
      ending: {
        values: {
          "sidecarset.stop": "oneRound",
          "sidecarset.state": state,
          "sidecarset.rounds": 1,
          "sidecarset.pods.upgraded": 1,
        },
        problems: [],
      },
    },
    {
      name: "settle",
      values: SET,
      ending: {
        values: {
          "sidecarset.stop": "oneRound",
          "sidecarset.state": state,
          "sidecarset.rounds": 2,
          "sidecarset.pods.upgraded": 1,
        },
        problems: [],
      },
    },
  ]);
  expect(told.map(({ name }) => name)).toEqual(["look", "decide", "write", "begin", "decide", "settle"]);
  const [look, decide, write] = told.map(({ ending }) => ending.values);
  expect(look).toEqual({ "sidecarset.pods.matched": 2 });
  expect(decide).toEqual({ "sidecarset.pods.selected": 1, "sidecarset.hold": expect.any(String) });
  expect(write).toEqual({ "sidecarset.pods.written": 1, "sidecarset.pods.refused": 0 });
});

it("following a rollout is a step of its own that ends with the pass's stop reason", async () => {
  await pass(true);
  const follow = told.find(({ name }) => name === "follow");
  expect(follow).toMatchObject({ values: SET, ending: { values: { "sidecarset.stop": "deadline" }, problems: [] } });
  expect(follow?.ending).not.toHaveProperty("failure");
});

it("a failed pod write is a problem of its step, with the pod's name", async () => {
  await pass(false, (call) => (call === "PATCH pods" ? refusal(403, "no") : undefined));
  const endings = new Map(told.map(({ name, ending }) => [name, ending]));
  expect(endings.get("begin")).toMatchObject({
    values: { "sidecarset.pods.upgraded": 0 },
    problems: ["shop/set-0: no"],
  });
  expect(endings.get("write")).toEqual({
    values: { "sidecarset.pods.written": 0, "sidecarset.pods.refused": 1 },
    problems: ["no"],
  });
});

it("the step of a failed rollout ends with the failure", async () => {
  await pass(true, (call) => (call === "LIST controllerrevisions" ? refusal(403, "no list") : undefined));
  const begin = told.find(({ name }) => name === "begin");
  expect(begin?.ending).toMatchObject({ values: { "sidecarset.stop": "failed" }, failure: "no list" });
});
