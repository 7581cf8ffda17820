/** Tests actions that annotations make a pass take: it undoes a release, and it waits for a gate's approval. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GATE_ANNOTATION, HALT_ON_ANNOTATION, UNDO_ON_HALT_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet, StatusCondition } from "../../shared/api/sidecarset.ts";
import type { Gates } from "../../shared/approval/batch-gates.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import type { GateRequest } from "../../shared/core/rollout/rules/gate/approval.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { EVENTS, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  deploy,
  imageOf,
  KRUISE_NAMESPACE,
  readPods,
  readSet,
  release,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";

let local: TestCluster;
beforeAll(async () => {
  local = await startTestCluster();
});
afterAll(() => local?.close());

const BAD = "registry.example/proxy:does-not-exist";

async function pass(sidecarSet: string, more: Partial<PassOptions> = {}) {
  const options = {
    kruiseNamespace: KRUISE_NAMESPACE,
    deadlineMs: 12_000,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: true,
    sidecarSet,
  };
  const [report] = (await runPass(local.cluster, { ...options, ...more })).sidecarSets;
  return report;
}

const annotate = (name: string, annotations: Readonly<Record<string, string | null>>) =>
  local.cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body: { metadata: { annotations } } });

const conditionOf = ({ status }: SidecarSet, type: string): Partial<StatusCondition> =>
  status?.conditions?.find((one) => one.type === type) ?? {};

const imageNow = ({ spec }: SidecarSet) => spec.containers?.[0]?.image;

async function eventsOf(set: string, reason: string) {
  const { items } = await local.cluster.list<{
    readonly metadata: object;
    readonly involvedObject: { readonly name: string };
    readonly reason: string;
    readonly message: string;
  }>(EVENTS, { namespace: "default" });
  return items.filter((one) => one.involvedObject.name === set && one.reason === reason).map(({ message }) => message);
}

describe("undo-on-halt:", () => {
  test("a release that halts is undone once, a second release of the same image only halts, and a fixed release continues", async () => {
    const { cluster } = local;
    await deploy(cluster, "undone", 4, { maxUnavailable: 2 });
    await pass("undone");
    await annotate("undone", { [HALT_ON_ANNOTATION]: "1", [UNDO_ON_HALT_ANNOTATION]: "true" });
    await release(cluster, "undone", 2, { maxUnavailable: 2, image: BAD });
    const report = await pass("undone");
    expect(report?.why).toBe("4 of 4 pods updated, 4 of them ready");
    const message = "put back to revision 1, since 2 of 2 updated pods fail, and sidecarset.kruise.io/halt-on is 1";
    expect(report?.tally.undone).toBe(message);
    const back = await readSet(cluster, "undone");
    expect(imageNow(back)).toBe(imageOf(1));
    expect(new Set(versionsOf(await readPods(cluster, "undone")))).toEqual(new Set(["1"]));
    expect(conditionOf(back, "Undone")).toMatchObject({ status: "True", reason: "Halted", message });
    expect(await eventsOf("undone", "Undone")).toEqual([message]);

    // A GitOps controller may write the release again. Then the rollout halts, and no pass undoes it a second time.
    await release(cluster, "undone", 2, { maxUnavailable: 2, image: BAD });
    await pass("undone", { deadlineMs: 6_000 });
    const { generation } = (await readSet(cluster, "undone")).metadata ?? {};
    await pass("undone", { deadlineMs: 3_000 });
    const halted = await readSet(cluster, "undone");
    expect(halted.metadata?.generation).toBe(generation);
    expect(imageNow(halted)).toBe(BAD);
    expect(conditionOf(halted, "Blocked")).toMatchObject({ status: "True", reason: "Halted" });
    expect(conditionOf(halted, "Blocked").message).toContain("it was undone before and is here again");

    await release(cluster, "undone", 3, { maxUnavailable: 2 });
    expect((await pass("undone"))?.why).toBe("4 of 4 pods updated, 4 of them ready");
    expect(conditionOf(await readSet(cluster, "undone"), "Undone")).toMatchObject({
      status: "False",
      reason: "Superseded",
    });
  });

  test("a halted release is not undone by a dry run or without the annotation undo-on-halt", async () => {
    const { cluster } = local;
    await deploy(cluster, "kept", 2, { maxUnavailable: 2 });
    await pass("kept");
    await annotate("kept", { [HALT_ON_ANNOTATION]: "0" });
    await release(cluster, "kept", 2, { maxUnavailable: 2, image: BAD });
    await pass("kept", { deadlineMs: 4_000 });
    expect(imageNow(await readSet(cluster, "kept"))).toBe(BAD);
    await annotate("kept", { [UNDO_ON_HALT_ANNOTATION]: "true" });
    const report = await pass("kept", { dryRun: true });
    expect(report?.planned?.join("\n")).toContain(
      "SidecarSet kept: put back to revision 1, with which no pod is ready now, since 2 of 2 updated pods fail",
    );
    expect(imageNow(await readSet(cluster, "kept"))).toBe(BAD);
  });

  test("a halted release is not undone when somebody changes the SidecarSet in the meantime", async () => {
    const { cluster } = local;
    await deploy(cluster, "late", 2, { maxUnavailable: 2 });
    await pass("late");
    await annotate("late", { [HALT_ON_ANNOTATION]: "0" });
    await release(cluster, "late", 2, { maxUnavailable: 2, image: BAD });
    await pass("late", { deadlineMs: 4_000 });
    await annotate("late", { [UNDO_ON_HALT_ANNOTATION]: "true" });
    let undos = 0;
    const racing: typeof cluster = Object.create(cluster, {
      patch: {
        value: async (...args: Parameters<typeof cluster.patch>) => {
          const [resource, , patch, options] = args;
          const isUndo = resource === SIDECARSETS && options?.subresource === undefined && patch.type === "merge";
          if (isUndo && undos++ === 0) await release(cluster, "late", 3, { maxUnavailable: 2 });
          return await cluster.patch(...args);
        },
      },
    });
    await runPass(racing, {
      kruiseNamespace: KRUISE_NAMESPACE,
      deadlineMs: 8_000,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: true,
      sidecarSet: "late",
    });
    expect(undos).toBe(1);
    expect(imageNow(await readSet(cluster, "late"))).toBe(imageOf(3));
    expect(await eventsOf("late", "Undone")).toEqual([]);
  });
});

test("a report names no undo if the API server forbids the undo", async () => {
  const { cluster } = local;
  await deploy(cluster, "forbidden", 2, { maxUnavailable: 2 });
  await pass("forbidden");
  await annotate("forbidden", { [HALT_ON_ANNOTATION]: "0", [UNDO_ON_HALT_ANNOTATION]: "true" });
  await release(cluster, "forbidden", 2, { maxUnavailable: 2, image: BAD });
  const forbidding: typeof cluster = {
    ...cluster,
    patch: (resource, key, patch, options) =>
      resource === SIDECARSETS && options?.subresource === undefined
        ? Promise.reject(new KubeError("no", { code: 403, reason: "Forbidden" }))
        : cluster.patch(resource, key, patch, options),
  };
  const options = {
    settings: DEFAULT_ROLLOUT_SETTINGS,
    kruiseNamespace: KRUISE_NAMESPACE,
    deadlineMs: 5_000,
    follow: true,
    sidecarSet: "forbidden",
  };
  const [report] = (await runPass(forbidding, options)).sidecarSets;
  expect(report?.tally.undone).toBeUndefined();
  expect(report?.tally.problems.map(({ message }) => message)).toEqual([
    "the SidecarSet is not undone: no (infra/rbac/optional/undo.yaml permits it)",
  ]);
  expect(await eventsOf("forbidden", "Undone")).toEqual([]);
});

describe("gates:", () => {
  function gatesOf(answer: (asked: number) => boolean) {
    const asked: GateRequest[] = [];
    const gates: Gates = {
      refusals: new Map(),
      ask: async (_url, request) => {
        asked.push(request);
        return answer(asked.length)
          ? { allow: true }
          : { allow: false, reason: "the gate at gate.example says no: freeze" };
      },
    };
    return { asked, gates };
  }

  test("a gate is called before each batch, and no pod is upgraded until it says yes", async () => {
    const { cluster } = local;
    await deploy(cluster, "gated", 3, { maxUnavailable: 1 });
    await pass("gated");
    await annotate("gated", { [GATE_ANNOTATION]: "https://gate.example/batch" });
    await release(cluster, "gated", 2, { maxUnavailable: 1 });

    const closed = gatesOf(() => false);
    const report = await pass("gated", { gates: closed.gates });
    expect(report?.why).toBe("0 of 3 pods updated, 0 of them ready; the gate at gate.example says no: freeze");
    expect(conditionOf(await readSet(cluster, "gated"), "Blocked")).toMatchObject({
      status: "True",
      reason: "Gate",
      message: "the gate at gate.example says no: freeze",
    });
    await pass("gated", { gates: closed.gates });
    // The gate refused a moment ago.
    expect(closed.asked).toHaveLength(1);
    expect(versionsOf(await readPods(cluster, "gated"))).toEqual(["1", "1", "1"]);
    const foreseen = await pass("gated", { gates: closed.gates, dryRun: true });
    expect(foreseen?.planned?.[0]).toBe("ask the gate at gate.example whether 1 pod may be upgraded");
    expect(closed.asked).toHaveLength(1);

    const open = gatesOf((times) => times <= 2);
    await pass("gated", { gates: open.gates });
    expect(versionsOf(await readPods(cluster, "gated")).toSorted()).toEqual(["1", "2", "2"]);
    expect(open.asked.map(({ pods }) => pods.length)).toEqual([1, 1, 1]);
    expect(open.asked[0]).toMatchObject({
      sidecarSet: { name: "gated" },
      counts: { matched: 3, updated: 0, maxUnavailable: 1 },
    });
    expect(open.asked[0]?.revision).toMatch(/^gated-/);

    expect((await pass("gated", { gates: gatesOf(() => true).gates }))?.why).toBe(
      "3 of 3 pods updated, 3 of them ready",
    );
    expect(conditionOf(await readSet(cluster, "gated"), "Blocked")).toMatchObject({ status: "False" });
  });

  test("the timeout of a gate call is a whole number of milliseconds below the pass's deadline", async () => {
    const { cluster } = local;
    await deploy(cluster, "hasty", 1, { maxUnavailable: 1 });
    await pass("hasty");
    await annotate("hasty", { [GATE_ANNOTATION]: "https://gate.example/batch" });
    await release(cluster, "hasty", 2, { maxUnavailable: 1 });
    const waits: number[] = [];
    const ask: Gates["ask"] = async (_url, _request, timeoutMs) => {
      waits.push(timeoutMs);
      return { allow: true };
    };
    await pass("hasty", { deadlineMs: 5_000, gates: { refusals: new Map(), ask } });
    expect(waits).toHaveLength(1);
    expect(waits[0]).toBeLessThan(5_000);
    expect(Number.isInteger(waits[0])).toBe(true);
  });

  test("a gate that refused a release is called at once for the next release, and its timeout fits into the pass", async () => {
    const { cluster } = local;
    await deploy(cluster, "next", 1, { maxUnavailable: 1 });
    await annotate("next", { [GATE_ANNOTATION]: "https://gate.example/batch" });
    await release(cluster, "next", 2, { maxUnavailable: 1 });
    const { asked, gates } = gatesOf(() => false);
    const patience: number[] = [];
    const ask: Gates["ask"] = async (url, request, timeoutMs) => {
      patience.push(timeoutMs);
      return (await gates.ask?.(url, request, timeoutMs)) ?? { allow: true };
    };
    const short = { gates: { ...gates, ask }, follow: false, deadlineMs: 4_000 };
    await pass("next", short);
    await pass("next", short);
    expect(asked).toHaveLength(1);
    await release(cluster, "next", 3, { maxUnavailable: 1 });
    await pass("next", short);
    expect(asked).toHaveLength(2);
    expect(Math.max(...patience)).toBeLessThanOrEqual(2_000);
  });

  test("a rollout waits when its gate's host is not allowed or the gate's URL cannot be read", async () => {
    const { cluster } = local;
    await deploy(cluster, "shut", 1, { maxUnavailable: 1 });
    await pass("shut");
    await annotate("shut", { [GATE_ANNOTATION]: "https://gate.example/batch" });
    await release(cluster, "shut", 2, { maxUnavailable: 1 });
    expect((await pass("shut"))?.why).toContain("the gate at gate.example may not be asked: GATE_HOSTS names no host");
    await annotate("shut", { [GATE_ANNOTATION]: "https://me:s3cret@gate.example/" });
    expect((await pass("shut"))?.why).toContain("held, since an annotation cannot be read");
    const { message } = conditionOf(await readSet(cluster, "shut"), "Blocked");
    expect(message).toMatch(/^the annotation sidecarset.kruise.io\/gate is no address/);
    expect(message).not.toContain("s3cret");
    await annotate("shut", { [GATE_ANNOTATION]: null });
    expect((await pass("shut"))?.why).toBe("1 of 1 pod updated, 1 of them ready");
  });
});
