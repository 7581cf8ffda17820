/** One round of a pass over an Advanced StatefulSet: when it may go on by what was seen, and what it counts. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { POD_READY_CONDITION } from "../../../shared/api/names.ts";
import type { PersistentVolumeClaim } from "../../../shared/api/stateful-set.ts";
import { type Clock, systemClock } from "../../../shared/controller/loop/clock.ts";
import { OutdatedSnapshot } from "../../../shared/controller/statefulset/act.ts";
import { observeSet, type SetContext } from "../../../shared/controller/statefulset/observe.ts";
import { newSetTally } from "../../../shared/controller/statefulset/report.ts";
import { fence } from "../../../shared/controller/statefulset/reserve.ts";
import { setRound } from "../../../shared/controller/statefulset/round.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/gates.ts";
import { claimState } from "../../../shared/core/statefulset/takes-away.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import { CLAIMS, type Cluster, CONTROLLER_REVISIONS, PODS, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { podOf, revisionOfSet, setOf } from "../../core/ordered-set/fixture.ts";
import { PATIENT } from "../../support/patient.ts";
import { bareCluster } from "../bare-cluster.ts";
import { isReady } from "../fixture.ts";
import { steppedClock } from "../stepped-clock.ts";
import {
  createSet,
  keyOf,
  patchSpec,
  readPods,
  type SetCluster,
  settle,
  startSetCluster,
  template,
} from "./fixture.ts";

let stage: SetCluster;
let cluster: Cluster;
beforeAll(async () => {
  stage = await startSetCluster();
  cluster = stage.cluster;
});
afterAll(() => stage?.local.close());

function contextOf(name: string, through = cluster, clock: Clock = systemClock): SetContext {
  const more = { gates: DEFAULT_STATEFUL_SET_FEATURE_GATES, tally: newSetTally(), recorded: new Set<string>() };
  return { cluster: through, clock, key: keyOf(name), ...more };
}

async function look(context: SetContext) {
  const snapshot = await observeSet(context, true);
  if (!snapshot) throw new Error(`there is no set ${context.key.name}`);
  return snapshot;
}

const readPod = (name: string) => cluster.get<Pod>(PODS, keyOf(name));

async function onceIt(name: string, isThere: (pod: Pod) => boolean): Promise<Pod> {
  return await vi.waitFor(
    async () => {
      const pod = await readPod(name);
      expect(isThere(pod)).toBe(true);
      return pod;
    },
    { ...PATIENT, interval: 5 },
  );
}

/** The kubelet's last word on a pod whose readiness gate is closed: it does not write to it in the middle of a round. */
const areContainersReady = ({ status }: Pod) =>
  status?.conditions?.some(({ type, status: value }) => type === "ContainersReady" && value === "True") === true;

const gated = (name: string, conditionType = POD_READY_CONDITION) => {
  const { spec, ...rest } = template(name);
  return { ...rest, spec: { ...spec, readinessGates: [{ conditionType }] } };
};

describe("a round goes by what was seen no more", () => {
  it("once another pass has seen a newer generation of the set", async () => {
    await createSet(cluster, "newer", { replicas: 0 });
    const context = contextOf("newer");
    const snapshot = await look(context);
    const ledger = { ...snapshot.stored.ledger, uid: snapshot.set.metadata?.uid ?? "", generation: 9 };
    const ahead = { ...snapshot, stored: { ...snapshot.stored, ledger } };
    await expect(setRound(context, ahead)).rejects.toThrow(
      new OutdatedSnapshot("another pass has seen a newer generation of the set"),
    );
  });

  it("when the set has changed before a pod is created for it, a second after it was read", async () => {
    await createSet(cluster, "grown", { replicas: 1 });
    let nowMs = 0;
    const context = contextOf("grown", cluster, { ...systemClock, now: () => nowMs });
    const snapshot = await look(context);
    await patchSpec(cluster, "grown", { replicas: 0 });
    nowMs = 1_000;
    await expect(setRound(context, snapshot)).rejects.toThrow(new OutdatedSnapshot("the set has changed"));
    expect(await readPods(cluster, "grown")).toEqual([]);
  });

  it("when a pod that it is to update in place has changed", async () => {
    await createSet(cluster, "fresh", {
      replicas: 1,
      template: gated("fresh", "InPlaceUpdateReady"),
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { podUpdatePolicy: "InPlaceOnly" } },
    });
    await settle(cluster, "fresh", { follow: false });
    await onceIt("fresh-0", areContainersReady);
    await settle(cluster, "fresh", { follow: false });
    await onceIt("fresh-0", isReady);
    await cluster.patch(STATEFUL_SETS, keyOf("fresh"), {
      type: "json",
      operations: [{ op: "replace", path: "/spec/template/spec/containers/0/image", value: "app:2" }],
    });
    const context = contextOf("fresh");
    const snapshot = await look(context);
    const body = { metadata: { annotations: { changed: "since" } } };
    await cluster.patch(PODS, keyOf("fresh-0"), { type: "merge", body });
    await expect(setRound(context, snapshot)).rejects.toThrow(new OutdatedSnapshot("pod fresh-0 has changed"));
    expect((await readPod("fresh-0")).spec.containers[0]?.image).toBe("app:1");
  });
});

describe("a pod that waits for its readiness gate", () => {
  it.each<[string, number | undefined, number, readonly string[]]>([
    ["open", undefined, 1, ["open-0"]],
    ["refused", 403, 0, []],
  ])("is touched by the round only where it could be written: %s", async (name, code, written, touched) => {
    await createSet(cluster, name, { replicas: 1, template: gated(name) });
    // One that was made before its pass could open the gate.
    await settle(cluster, name, { follow: false });
    await onceIt(`${name}-0`, areContainersReady);
    const through: Cluster = {
      ...cluster,
      patch: (resource, ...call) =>
        resource === PODS && code !== undefined
          ? Promise.reject(new KubeError("no", { code, reason: "Refused" }))
          : cluster.patch(resource, ...call),
    };
    const first = await setRound(contextOf(name, through), await look(contextOf(name)));
    expect([first.written, first.touched.map(({ metadata }) => metadata?.name)]).toEqual([written, touched]);
  });
});

it("a fence moves a claim's resourceVersion, by the claim's own uid", async () => {
  const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
  const claim = await cluster.create<PersistentVolumeClaim>(CLAIMS, { metadata: keyOf("data-fenced-0"), spec });
  const context = contextOf("fenced");
  await fence(context, { ...claimState(claim), generation: 1, revision: "" });
  const { metadata } = await cluster.get(CLAIMS, keyOf("data-fenced-0"));
  const before = claim.metadata?.resourceVersion;
  expect(context.tally.fenced).toBe(1);
  expect(metadata?.annotations).toEqual({ "sidecarset.kruise.io/fence": before });
  expect(metadata?.resourceVersion).not.toBe(before);
});

it("a gate that was opened counts as written, and the next round finds nothing to do", async () => {
  const stepped = steppedClock();
  const { cluster: bare, server, calls } = bareCluster(stepped);
  const set = setOf({ replicas: 1 });
  const { spec, ...pod } = podOf(set, 0);
  const waiting = { ...pod, spec: { ...spec, readinessGates: [{ conditionType: POD_READY_CONDITION }] } };
  server.put("test", STATEFUL_SETS, set);
  server.put("test", CONTROLLER_REVISIONS, revisionOfSet(set, 1));
  server.put("test", PODS, waiting);
  const round = async () => {
    const context = contextOf("db", bare, stepped.clock);
    const before = calls.length;
    const { written, touched } = await setRound(context, await look(context));
    const writes = calls.slice(before).map(([, call]) => call);
    return { written, touched, writes: writes.filter((call) => !/^(GET|LIST) /.test(call)) };
  };
  const { writes, ...first } = await round();
  expect(writes).toContain("PATCH pods/status");
  // The gate, and the status that says which revision is the current one from now on.
  expect(first).toEqual({ written: 2, touched: [server.peek(PODS, keyOf("db-0"))] });
  expect(await round()).toEqual({ written: 0, touched: [], writes: [] });
});
