/** Tests that a pass undoes a SidecarSet only in the state that it has seen, and reports an obstacle once. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { type Context, decideOn, observe, type Snapshot } from "../../shared/controller/rollout/observe.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
import { undoHalted } from "../../shared/controller/rollout/round.ts";
import type { Decision } from "../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, EVENTS, SIDECARSETS } from "../../shared/kube/port.ts";
import { deploy, imageOf, KRUISE_NAMESPACE, readSet, release, startTestCluster, type TestCluster } from "./fixture.ts";

const MESSAGE = "put back to revision 1, since 2 pods fail";

let local: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  local = await startTestCluster();
  cluster = local.cluster;
});
afterAll(() => local?.close());

interface Halted {
  readonly context: Context;
  readonly snapshot: Snapshot;
  readonly decision: Decision;
}

/** Prepares a SidecarSet at version 2 that must be put back to version 1. */
async function halted(name: string): Promise<Halted> {
  await deploy(cluster, name, 0, {});
  await release(cluster, name, 2);
  const context = {
    cluster,
    clock: systemClock,
    kruiseNamespace: KRUISE_NAMESPACE,
    endsAtMs: Number.POSITIVE_INFINITY,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    tally: newTally(),
    recorded: new Set<string>(),
  };
  const snapshot = await observe(context, name);
  if (!snapshot) throw new Error("there is none");
  const spec = { containers: [{ name: "proxy", image: imageOf(1) }] };
  const undo = { revision: 1, spec, annotations: { "example.com/back": "true" }, message: MESSAGE };
  return { context, snapshot, decision: { ...decideOn(context, snapshot, []), undo } };
}

const imageNow = async (name: string) => (await readSet(cluster, name)).spec.containers?.[0]?.image;

async function eventsOf(name: string): Promise<readonly KubernetesObject[]> {
  const fieldSelector = `involvedObject.name=${name}`;
  return (await cluster.list<KubernetesObject>(EVENTS, { fieldSelector })).items;
}

const withPatch = (context: Context, patch: Cluster["patch"]): Context => ({
  ...context,
  cluster: { ...cluster, patch },
});

it("undoHalted puts the SidecarSet back and says so in the report and in an Event", async () => {
  const { context, snapshot, decision } = await halted("back");
  await undoHalted(context, snapshot, decision, snapshot.sidecarSet);
  const { metadata, spec } = await readSet(cluster, "back");
  expect(spec.containers?.[0]?.image).toBe(imageOf(1));
  expect(metadata?.annotations).toMatchObject({ "example.com/back": "true" });
  expect(context.tally).toEqual({ ...newTally(), undone: MESSAGE });
  expect(await eventsOf("back")).toMatchObject([
    {
      type: "Warning",
      reason: "Undone",
      message: MESSAGE,
      involvedObject: { kind: "SidecarSet", name: "back", uid: metadata?.uid },
    },
  ]);
});

it("undoHalted does nothing when the decision has no undo", async () => {
  const { context, snapshot, decision } = await halted("unasked");
  const { undo: _, ...unasked } = decision;
  await undoHalted(context, snapshot, unasked, snapshot.sidecarSet);
  expect([await imageNow("unasked"), context.tally]).toEqual([imageOf(2), newTally()]);
});

it.each([
  ["a-deleted", { uid: "another" }],
  ["a-changed", { generation: 1 }],
  ["a-released", { annotations: { "kruise.io/sidecarset-hash": "hash1" } }],
])("undoHalted does nothing when the decision was about another state: SidecarSet %s", async (name, other) => {
  const { context, snapshot, decision } = await halted(name);
  const { metadata, spec } = snapshot.sidecarSet;
  await undoHalted(context, snapshot, decision, { metadata: { ...metadata, ...other }, spec });
  expect([await imageNow(name), context.tally]).toEqual([imageOf(2), newTally()]);
});

it("undoHalted keeps a release that somebody made in the meantime, without a problem", async () => {
  const { context, snapshot, decision } = await halted("meanwhile");
  await release(cluster, "meanwhile", 3);
  await undoHalted(context, snapshot, decision, snapshot.sidecarSet);
  expect([await imageNow("meanwhile"), context.tally]).toEqual([imageOf(3), newTally()]);
});

it("undoHalted reports no problem when the SidecarSet was deleted in the meantime", async () => {
  const { context, snapshot, decision } = await halted("gone");
  await cluster.delete(SIDECARSETS, { name: "gone" });
  await undoHalted(context, snapshot, decision, snapshot.sidecarSet);
  expect(context.tally).toEqual(newTally());
});

describe("a failed undo:", () => {
  const OTHER = { namespace: "shop", name: "web-0", message: "the pod is not upgraded" };

  it.each<[string, number, string, readonly string[]]>([
    ["forbidden", 403, "no", ["the SidecarSet is not undone: no (infra/rbac/optional/undo.yaml permits it)"]],
    ["policy", 422, "not on a Friday", ["the SidecarSet is not undone: not on a Friday"]],
    ["unanswered", 0, "no answer", []],
    ["unavailable", 503, "try again", []],
  ])(
    "a failed undo is reported at most once next to the other problems: SidecarSet %s",
    async (name, code, text, told) => {
      const { context, snapshot, decision } = await halted(name);
      context.tally.problems.push(OTHER);
      const error = new KubeError(text, { code, reason: "Unknown" });
      const refused = withPatch(context, () => Promise.reject(error));
      await undoHalted(refused, snapshot, decision, snapshot.sidecarSet);
      await undoHalted(refused, snapshot, decision, snapshot.sidecarSet);
      const problems = [OTHER, ...told.map((message) => ({ namespace: "", name, message }))];
      expect(context.tally).toEqual({ ...newTally(), problems });
      expect(await eventsOf(name)).toEqual([]);
    },
  );
});
