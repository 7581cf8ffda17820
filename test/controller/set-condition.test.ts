/** How a pod's condition is written by itself: how often it is tried, and whom a refusal holds off. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { UPGRADABLE_CONDITION } from "../../shared/api/names.ts";
import { decideOn, observe } from "../../shared/controller/rollout/observe.ts";
import { setCondition } from "../../shared/controller/rollout/write-condition.ts";
import { PODS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";

/** A pod whose condition is still to be written. */
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

describe("a pod's condition", () => {
  it("is appended to the conditions that its pod has", async () => {
    const { set, stored } = await stage();
    await set();
    expect(stored()).toEqual(["ContainersReady", "Ready", UPGRADABLE_CONDITION]);
  });

  it("is the first of a pod that has none", async () => {
    const { set, stored } = await stage(undefined, false);
    await set();
    expect(stored()).toEqual([UPGRADABLE_CONDITION]);
  });

  it("is written once: what says so already is left", async () => {
    const { set, tried, snapshot } = await stage();
    await set();
    snapshot.observed.view.remove("uid-set-0", null);
    await set();
    expect(tried()).toHaveLength(1);
  });

  it("is none where nothing is to be said, or the pod is gone", async () => {
    const { context, snapshot, set, server, readPod, tried } = await stage();
    await setCondition(context, snapshot, undefined);
    server.remove("test", PODS, readPod(0));
    snapshot.observed.view.remove("uid-set-0", null);
    await set();
    expect(tried()).toEqual([]);
  });
});

describe("a condition that is refused", () => {
  it("for want of rights is tried again after half a minute", async () => {
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

  it.each([400, 413])("for another reason, %i, is tried again by the next round", async (code) => {
    const { set, tried } = await stage((call) => (call === "PATCH pods/status" ? refusal(code, "no") : undefined));
    await set();
    await set();
    expect(tried()).toEqual([0, 0]);
  });

  it("as its pod is gone is tried no more, and not looked into", async () => {
    const { set, tried, calls } = await stage((call) =>
      call === "PATCH pods/status" ? refusal(404, "NotFound") : undefined,
    );
    await set();
    expect(tried()).toEqual([0]);
    expect(calls.map(([, call]) => call)).not.toContain("GET pods");
  });

  it("without a word whether it was written is tried again as the pod is now", async () => {
    const { set, tried, stored } = await stage((call, nth) =>
      call === "PATCH pods/status" && nth === 1 ? refusal(500, "InternalError") : undefined,
    );
    await set();
    expect(tried()).toHaveLength(2);
    expect(stored()).toContain(UPGRADABLE_CONDITION);
  });
});
