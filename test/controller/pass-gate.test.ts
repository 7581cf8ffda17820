/** Which pods of a batch need a gate's yes. */
import { expect, test } from "vitest";
import { GATE_ANNOTATION } from "../../shared/api/names.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import type { Context, Snapshot } from "../../shared/controller/rollout/observe.ts";
import { passGate } from "../../shared/controller/rollout/pass-gate.ts";
import type { Reservation } from "../../shared/core/ledger.ts";
import type { GateRequest } from "../../shared/core/rollout/approval.ts";
import { type Decision, decide } from "../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { NOW, podOf, reservedFor, sidecarSetOf, UNTOUCHED } from "../support/rollout-fixture.ts";

const CONTEXT = { now: NOW, kruiseNamespace: "kruise-system", settings: DEFAULT_ROLLOUT_SETTINGS };
const PODS = ["a", "b"].map((name) => podOf({ name }));

type Names = readonly string[];
type Row = [where: string, stored: Names, kept: Names, asked: Names, allowed: Names];

function gatedSet() {
  const set = sidecarSetOf({ selector: {}, updateStrategy: { maxUnavailable: 2 } });
  const annotations = { ...set.metadata?.annotations, [GATE_ANNOTATION]: "https://gate.example/batch" };
  return { ...set, metadata: { ...set.metadata, annotations }, status: { observedGeneration: 2 } };
}

function reservationOf(name: string): Reservation {
  const { namespace = "", uid = "", resourceVersion = "" } = podOf({ name }).metadata ?? {};
  return { namespace, name, uid, resourceVersion, generation: 2, revision: "r" };
}
const patched = ({ actions }: Decision) =>
  actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.name] : []));

test.each<Row>([
  ["none is reserved", [], [], ["a", "b"], []],
  ["one is reserved still", ["a"], ["a"], ["b"], ["a"]],
  ["one was reserved, and has been freed since: it was written to by somebody else", ["a"], [], ["a", "b"], []],
])("where %s", async (...[, stored, kept, asked, allowed]) => {
  const sidecarSet = gatedSet();
  const uids = kept.map((name) => reservationOf(name).uid);
  const decision = decide(
    { sidecarSet, pods: PODS, revisions: [], ...UNTOUCHED, reserved: reservedFor(uids) },
    CONTEXT,
  );
  expect(patched(decision).toSorted()).toEqual(["a", "b"]);
  const requests: GateRequest[] = [];
  const ask = async (_: URL, request: GateRequest) => {
    requests.push(request);
    return { allow: false, reason: "freeze" } as const;
  };
  const context = { gates: { ask, refusals: new Map() }, clock: systemClock, endsAtMs: Number.POSITIVE_INFINITY };
  const snapshot = {
    sidecarSet,
    stored: { ledger: { uid: "", generation: 2, reservations: stored.map(reservationOf) } },
  };
  const passed = await passGate(context as unknown as Context, snapshot as unknown as Snapshot, decision, {
    kept: kept.map(reservationOf),
    mayAsk: true,
  });
  expect(requests.flatMap(({ pods }) => pods.map(({ name }) => name)).toSorted()).toEqual(asked);
  expect(patched(passed)).toEqual(allowed);
});
