/**
 * Tests how a round treats disruption budgets that changed after it listed the pods, and how often it reads budgets.
 */
import { expect, it } from "vitest";
import { readDisruptionBudgets } from "../../../shared/controller/rollout/disruption-budgets.ts";
import { type Context, observe } from "../../../shared/controller/rollout/observe.ts";
import { round } from "../../../shared/controller/rollout/round.ts";
import { DISRUPTION_BUDGETS } from "../../../shared/kube/port.ts";
import { type Refuse, refusal } from "../bare-cluster.ts";
import { bareRollout } from "../bare-rollout.ts";
import { NAMESPACE } from "../fixture.ts";

/** Prepares two pods that wait for an upgrade. A budget with this label, if there is one, lets one pod go down. */
async function stage(refuse?: Refuse) {
  const on = bareRollout("set", refuse);
  const context: Context = { ...on.context, settings: { ...on.context.settings, RespectDisruptionBudgets: true } };
  on.deploy(2, { maxUnavailable: 2 });
  on.release(2, { maxUnavailable: 2 });
  const guard = (matchLabels: Readonly<Record<string, string>>, namespace = NAMESPACE) => {
    const status = { observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 };
    const metadata = { namespace, name: "web", uid: "web", generation: 1 };
    on.server.put("test", DISRUPTION_BUDGETS, { metadata, ...{ spec: { selector: { matchLabels } }, status } });
  };
  const look = async () => {
    const snapshot = await observe(context, "set");
    if (!snapshot) throw new Error("there is no SidecarSet");
    return snapshot;
  };
  return { ...on, context, guard, look };
}

it("a budget with a selector on a label that the snapshot lacks holds the pods of its namespace until they are read again", async () => {
  const { context, guard, look, clock, versions } = await stage();
  const snapshot = await look();
  guard({ tier: "web" });
  await clock.sleep(500);
  const held = await round(context, snapshot, "act");
  expect(held?.decision.summary.rules.disruptionBudgets?.full).toEqual([
    expect.stringMatching(/selects by labels that the pass has not read yet, so all pods of its namespace wait$/),
  ]);
  expect(versions()).toBe("1 1");
  expect(await round(context, await look(), "act")).toMatchObject({ written: 2 });
});

it("a new budget of another namespace with a selector on a label that the snapshot lacks holds no pod here", async () => {
  const { context, guard, look, clock, versions } = await stage();
  const snapshot = await look();
  guard({ tier: "web" }, "elsewhere");
  await clock.sleep(500);
  expect(await round(context, snapshot, "act")).toMatchObject({ written: 2 });
  expect(versions()).toBe("2 2");
});

it("a round obeys a changed budget at once if the snapshot has the labels of its selector", async () => {
  const { context, guard, look, clock, versions } = await stage();
  guard({ app: "other" });
  const snapshot = await look();
  guard({ app: "set" });
  await clock.sleep(500);
  expect(await round(context, snapshot, "act")).toMatchObject({ written: 1, isMoreToWrite: false });
  expect(versions()).toBe("2 1");
});

it("a pod whose budget write conflicted is upgraded in the next round, without a wait", async () => {
  const { context, guard, look, versions } = await stage((call, nth) =>
    call === "PATCH poddisruptionbudgets/status" && nth === 1 ? refusal(409, "Conflict") : undefined,
  );
  guard({ app: "set" });
  const snapshot = await look();
  expect(await round(context, snapshot, "act")).toMatchObject({ written: 0, isMoreToWrite: true });
  expect(versions()).toBe("1 1");
  expect(await round(context, snapshot, "act")).toMatchObject({ written: 1, isMoreToWrite: false });
  expect(versions()).toBe("2 1");
});

it.each([
  [0, 20],
  [100, 10],
  [1_000, 1],
])("in ten seconds, budgets that take %i ms to read are read %i times", async (tookMs, times) => {
  const { context, clock, calls } = await stage();
  const cluster = {
    ...context.cluster,
    list: async (...[resource, options]: Parameters<typeof context.cluster.list>) => {
      if (resource === DISRUPTION_BUDGETS) await clock.sleep(tookMs);
      return context.cluster.list(resource, options);
    },
  } as typeof context.cluster;
  while (clock.now() < 10_000) {
    await readDisruptionBudgets({ ...context, cluster });
    await clock.sleep(100);
  }
  expect(calls.filter(([, call]) => call === "LIST poddisruptionbudgets")).toHaveLength(times);
});

it("a budget that is created after a read of half a minute holds its pods ten seconds later", async () => {
  const { context, guard, clock, versions } = await stage();
  let tookMs = 30_000;
  const list = async (...[resource, options]: Parameters<typeof context.cluster.list>) => {
    if (resource === DISRUPTION_BUDGETS) await clock.sleep(tookMs);
    return context.cluster.list(resource, options);
  };
  const slow: Context = { ...context, cluster: { ...context.cluster, list } as typeof context.cluster };
  guard({ app: "other" });
  const snapshot = await observe(slow, "set");
  if (!snapshot) throw new Error("there is no SidecarSet");
  tookMs = 0;
  guard({ app: "set" });
  await clock.sleep(10_000);
  expect(await round(slow, snapshot, "act")).toMatchObject({ written: 1 });
  expect(versions()).toBe("2 1");
});
