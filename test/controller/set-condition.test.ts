/** Tests writes of only a pod's condition: the number of tries, and the delay after a refusal. */
import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { UPGRADABLE_CONDITION } from "../../shared/api/names.ts";
import { decideOn, observe } from "../../shared/controller/rollout/observe.ts";
import { setCondition } from "../../shared/controller/rollout/write-condition.ts";
import { PODS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";

/** Prepares a pod without its condition. */
async function stage(refuse?: Refuse, conditions = true) {
  const on = bareRollout("set", refuse);
  on.deploy(1);
  const bare: Pod = { ...on.readPod(0), status: { phase: "Running" } };
  if (!conditions) on.server.put("test", PODS, bare);
  on.release(2);
  const snapshot = await observe(on.context, "set");
  if (!snapshot) throw new Error("there is no SidecarSet");
  const { actions } = decideOn(on.context, snapshot, []);
  const condition = actions.find((action) => action.kind === "PatchPodCondition");
  const set = () => setCondition(on.context, snapshot, condition);
  const tried = () => on.calls.filter(([, call]) => call.startsWith("PATCH pods/status")).map(([atMs]) => atMs);
  const stored = () => on.server.peek<Pod>(PODS, on.keyOf(0))?.status?.conditions?.map(({ type }) => type) ?? [];
  return { ...on, snapshot, condition, set, tried, stored, problems: on.context.tally.problems };
}

it("setCondition appends the condition to the pod's conditions", async () => {
  const { set, stored } = await stage();
  await set();
  expect(stored()).toEqual(["ContainersReady", "Ready", UPGRADABLE_CONDITION]);
});

it("setCondition writes the first condition of a pod without conditions", async () => {
  const { set, stored } = await stage(undefined, false);
  await set();
  expect(stored()).toEqual([UPGRADABLE_CONDITION]);
});

it("setCondition writes a condition only once", async () => {
  const { set, tried, snapshot } = await stage();
  await set();
  snapshot.observed.view.remove("uid-set-0", null);
  await set();
  expect(tried()).toHaveLength(1);
});

it("setCondition writes nothing without a condition or for a pod that is gone", async () => {
  const { context, snapshot, set, server, readPod, tried } = await stage();
  await setCondition(context, snapshot, undefined);
  server.remove("test", PODS, readPod(0));
  snapshot.observed.view.remove("uid-set-0", null);
  await set();
  expect(tried()).toEqual([]);
});

it("a forbidden condition is tried again after half a minute", async () => {
  const { set, tried, clock, problems } = await stage((call) =>
    call === "PATCH pods/status" ? refusal(403, "Forbidden") : undefined,
  );
  await set();
  await set();
  await clock.sleep(29_999);
  await set();
  expect(tried()).toEqual([0]);
  await clock.sleep(1);
  await set();
  expect(tried()).toEqual([0, 30_000]);
  expect(problems).toHaveLength(1);
});

it.each([400, 413])("a condition that is refused with %i is tried again in the next round", async (code) => {
  const { set, tried } = await stage((call) => (call === "PATCH pods/status" ? refusal(code, "no") : undefined));
  await set();
  await set();
  expect(tried()).toEqual([0, 0]);
});

it("the condition of a deleted pod is not tried again, and the pod is not read", async () => {
  const { set, tried, calls } = await stage((call) =>
    call === "PATCH pods/status" ? refusal(404, "NotFound") : undefined,
  );
  await set();
  expect(tried()).toEqual([0]);
  expect(calls.map(([, call]) => call)).not.toContain("GET pods");
});

it("a condition whose outcome is unknown is tried again at once", async () => {
  const { set, tried, stored } = await stage((call, nth) =>
    call === "PATCH pods/status" && nth === 1 ? refusal(500, "InternalError") : undefined,
  );
  await set();
  expect(tried()).toHaveLength(2);
  expect(stored()).toContain(UPGRADABLE_CONDITION);
});
