/** Tests rounds of a pass over an Advanced StatefulSet: writes and counts, and outdated snapshots. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import {
  FENCE_ANNOTATION,
  IN_PLACE_READY_CONDITION,
  POD_NAME_LABEL,
  POD_READY_CONDITION,
} from "../../../shared/api/names.ts";
import type { PersistentVolumeClaim, StatefulSet, StatefulSetSpec } from "../../../shared/api/stateful-set.ts";
import { readLedger, swapLedger } from "../../../shared/controller/rollout/ledger-store.ts";
import { OutdatedSnapshot } from "../../../shared/controller/statefulset/act.ts";
import { observeSet, type SetContext, type SetSnapshot } from "../../../shared/controller/statefulset/observe.ts";
import { newSetTally } from "../../../shared/controller/statefulset/report.ts";
import { fence, setRound } from "../../../shared/controller/statefulset/round.ts";
import { MAX_OF_SET } from "../../../shared/core/ledger.ts";
import { claimState } from "../../../shared/core/statefulset/replicas.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import { CLAIMS, PODS, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { bareCluster, type Refuse, refusal } from "../bare-cluster.ts";
import { steppedClock } from "../stepped-clock.ts";
import { createSet, haveThemRun, images, keyOf, NAMESPACE, patchSpec, readPods, readSet, template } from "./fixture.ts";

const CLAIM = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };

/** Returns the spec of set db, whose pods wait for that gate and have one claim each. */
function specOf(gate: string, spec: StatefulSetSpec = {}): StatefulSetSpec {
  const { spec: podSpec, ...pod } = template("db");
  return {
    replicas: 2,
    podManagementPolicy: "Parallel",
    template: { ...pod, spec: { ...podSpec, readinessGates: [{ conditionType: gate }] } },
    volumeClaimTemplates: [{ metadata: { name: "data" }, spec: CLAIM } as PersistentVolumeClaim],
    updateStrategy: {
      type: "RollingUpdate",
      rollingUpdate: { podUpdatePolicy: "InPlaceIfPossible", maxUnavailable: 1 },
    },
    ...spec,
  };
}

function stage(refuse?: Refuse) {
  const stepped = steppedClock();
  const bare = bareCluster(stepped, refuse);
  const { cluster, server } = bare;
  const context: SetContext = {
    ...{ cluster, clock: stepped.clock, key: keyOf("db"), gates: DEFAULT_STATEFUL_SET_FEATURE_GATES },
    ...{ tally: newSetTally(), recorded: new Set<string>() },
  };
  const look = async (): Promise<SetSnapshot> => {
    const snapshot = await observeSet(context, true);
    if (!snapshot) throw new Error("there is no set");
    return snapshot;
  };
  /** Runs a round. Returns its result, and its calls without the look's. */
  const round = async (seen?: SetSnapshot) => {
    const snapshot = seen ?? (await look());
    const before = bare.calls.length;
    const { written, touched, reserved } = await setRound(context, snapshot);
    const names = touched.map(({ metadata }) => metadata?.name);
    return { written, touched: names, reserved, calls: bare.calls.slice(before).map(([, call]) => call) };
  };
  const run = () => haveThemRun(cluster, "db");
  /** Creates pods that all run and are ready, so that nothing is left to write. */
  const deploy = async (spec = specOf(IN_PLACE_READY_CONDITION)) => {
    await createSet(cluster, "db", spec);
    for (let times = 0; times < 3; times++) {
      await round();
      await run();
    }
    await round();
  };
  const release = (image: string) =>
    cluster.patch(STATEFUL_SETS, keyOf("db"), {
      type: "json",
      operations: [{ op: "replace", path: "/spec/template/spec/containers/0/image", value: image }],
    });
  const readPod = (name: string) => server.peek<Pod>(PODS, keyOf(name)) as Pod;
  const imagesNow = async () => images(await readPods(cluster, "db")).join(" ");
  const ledger = async () => (await readLedger(cluster, NAMESPACE, "db", "statefulset")).ledger;
  /** Writes the ledger of another pass that was killed, with these pods reserved. */
  const reserve = async (names: readonly string[], generation: number) => {
    const owner = await readSet(cluster, "db");
    const stored = await readLedger(cluster, NAMESPACE, "db", "statefulset");
    const reservations = names.map((name) => {
      const { uid = "", resourceVersion = "" } = readPod(name).metadata ?? {};
      return { ...keyOf(name), uid, resourceVersion, generation, revision: "" };
    });
    const next = { uid: owner.metadata?.uid ?? "", generation, reservations };
    await swapLedger(cluster, { namespace: NAMESPACE, owner, kind: "statefulset" }, stored, next);
  };
  return { ...stepped, ...bare, context, look, round, run, deploy, release, readPod, imagesNow, ledger, reserve };
}

it("a round creates each missing claim and pod once, after the ledger and the revision", async () => {
  const { cluster, round, context } = stage();
  await createSet(cluster, "db", specOf(IN_PLACE_READY_CONDITION));
  const made = [
    "GET persistentvolumeclaims",
    "CREATE persistentvolumeclaims",
    "CREATE events",
    "CREATE pods",
    "CREATE events",
  ];
  expect(await round()).toEqual({
    written: 6,
    touched: ["db-0", "db-1"],
    reserved: 0,
    calls: ["CREATE configmaps", "CREATE controllerrevisions", ...made, ...made, "PATCH statefulsets/status"],
  });
  expect(context.tally.rounds).toBe(1);
});

it("a round opens the gates of running pods and does not read claims that were listed", async () => {
  const { cluster, round, run } = stage();
  await createSet(cluster, "db", specOf(IN_PLACE_READY_CONDITION));
  await round();
  await run();
  const calls = ["PATCH pods/status", "PATCH pods/status", "PATCH statefulsets/status"];
  expect(await round()).toEqual({ written: 2, touched: ["db-0", "db-1"], reserved: 0, calls });
});

it("a round reads a claim only once before it makes the set its owner", async () => {
  const persistentVolumeClaimRetentionPolicy = { whenDeleted: "Delete", whenScaled: "Retain" };
  const { cluster, server, look, round } = stage();
  await createSet(cluster, "db", specOf(IN_PLACE_READY_CONDITION, { persistentVolumeClaimRetentionPolicy }));
  const snapshot = await look();
  await cluster.create(CLAIMS, { metadata: keyOf("data-db-0"), ...{ spec: CLAIM } });
  expect((await round(snapshot)).calls).toEqual([
    ...["CREATE configmaps", "CREATE controllerrevisions"],
    ...["GET persistentvolumeclaims", "CREATE pods", "PATCH persistentvolumeclaims", "CREATE events"],
    ...["GET persistentvolumeclaims", "CREATE persistentvolumeclaims", "CREATE events"],
    ...["CREATE pods", "PATCH persistentvolumeclaims", "CREATE events", "PATCH statefulsets/status"],
  ]);
  const owners = server.all(CLAIMS).map(({ metadata }) => metadata?.ownerReferences?.map(({ name }) => name));
  expect(owners).toEqual([["db"], ["db"]]);
});

it("a round opens only one of two gates of a pod, and the next round opens the other", async () => {
  const { cluster, round, run } = stage();
  const { template: pods, ...spec } = specOf(IN_PLACE_READY_CONDITION, { replicas: 1 });
  const { readinessGates = [] } = pods?.spec ?? {};
  const both = [...readinessGates, { conditionType: POD_READY_CONDITION }];
  await createSet(cluster, "db", {
    ...spec,
    template: { ...pods, spec: { ...pods?.spec, readinessGates: both } },
  } as never);
  await round();
  await run();
  const touched = { written: 1, touched: ["db-0"], reserved: 0 };
  expect(await round()).toEqual({ ...touched, calls: ["PATCH pods/status", "PATCH statefulsets/status"] });
  expect(await round()).toEqual({ ...touched, calls: ["PATCH pods/status"] });
});

it("a round marks a recreated pod as terminating", async () => {
  const { cluster, deploy, release, look, context } = stage();
  await deploy();
  await patchSpec(cluster, "db", { updateStrategy: { rollingUpdate: { podUpdatePolicy: "ReCreate" } } });
  await release("app:2");
  const { touched, written } = await setRound(context, await look());
  expect(written).toBe(2);
  expect(touched).toMatchObject([{ metadata: { name: "db-1", deletionTimestamp: "now" } }]);
});

it("a round makes no call when nothing has changed", async () => {
  const { deploy, round } = stage();
  await deploy();
  expect(await round()).toEqual({ written: 0, touched: [], reserved: 0, calls: [] });
});

it("an update in place takes two writes, and the second is reserved with the version that the first produced", async () => {
  let between: string | undefined;
  const on = stage((call) => {
    if (call === "PATCH pods" && between === undefined) between = on.readPod("db-1").metadata?.resourceVersion;
    return undefined;
  });
  await on.deploy();
  between = undefined;
  await on.release("app:2");
  expect(await on.round()).toEqual({
    written: 3,
    touched: ["db-1", "db-1"],
    reserved: 1,
    calls: [
      "PATCH configmaps",
      "CREATE controllerrevisions",
      "GET pods",
      "PATCH pods/status",
      "PATCH configmaps",
      "PATCH pods",
      "CREATE events",
      "PATCH statefulsets/status",
    ],
  });
  expect(await on.imagesNow()).toBe("app:1 app:2");
  expect((await on.ledger()).reservations).toMatchObject([
    { ...keyOf("db-1"), resourceVersion: between, generation: 2 },
  ]);
});

it("two pods that are updated in one round are each reserved once", async () => {
  const { cluster, deploy, release, round, ledger, imagesNow } = stage();
  await deploy();
  await patchSpec(cluster, "db", { updateStrategy: { rollingUpdate: { maxUnavailable: 2 } } });
  await release("app:2");
  expect(await round()).toMatchObject({ written: 5, reserved: 2 });
  expect((await ledger()).reservations.map(({ name }) => name).sort()).toEqual(["db-0", "db-1"]);
  expect(await imagesNow()).toBe("app:2 app:2");
});

it("a round has no new status when the status write is forbidden", async () => {
  const { cluster, context, look } = stage((call) =>
    call === "PATCH statefulsets/status" ? refusal(403, "Forbidden") : undefined,
  );
  await createSet(cluster, "db", { replicas: 1 });
  expect((await setRound(context, await look())).status).toBeUndefined();
});

describe("a node's report during an update:", () => {
  const OUTDATED = expect.any(OutdatedSnapshot);

  /**
   * Changes the pod before each of the first `times` tries of the second write. `change` returns undefined to delete
   * it.
   */
  function reporting(times: number, change: (pod: Pod) => Pod | undefined) {
    let left = 0;
    const on = stage((call) => {
      if (call !== "PATCH pods" || left-- <= 0) return undefined;
      const changed = change(on.readPod("db-1"));
      if (changed) on.server.put("kubelet", PODS, changed);
      else on.server.remove("kubelet", PODS, on.readPod("db-1"));
      return undefined;
    });
    const update = async () => {
      await on.deploy();
      await on.release("app:2");
      left = times;
      return await on.round();
    };
    return { ...on, update };
  }
  const OPEN = [{ type: IN_PLACE_READY_CONDITION, status: "True" }];
  const reported = ({ status, ...pod }: Pod): Pod => {
    const { conditions = [] } = status ?? {};
    return { ...pod, status: { ...status, conditions: [...conditions, { type: "Seen", status: "True" }] } };
  };

  it("a pod is updated in its newest state when its node reports between the two writes", async () => {
    const { update, imagesNow } = reporting(1, reported);
    const { written, calls } = await update();
    expect(written).toBe(3);
    expect(calls).toEqual([
      ...["PATCH configmaps", "CREATE controllerrevisions", "GET pods", "PATCH pods/status", "PATCH configmaps"],
      ...["PATCH pods", "GET pods", "PATCH configmaps", "PATCH pods", "CREATE events", "PATCH statefulsets/status"],
    ]);
    expect(await imagesNow()).toBe("app:1 app:2");
  });

  it.each([
    [2, true],
    [3, false],
  ])(
    "the second write of an update is tried at most three times: after %i reports of the node it succeeds: %s",
    async (times, isUpdated) => {
      const { update, imagesNow } = reporting(times, reported);
      const updating = update();
      if (isUpdated) await updating;
      else await expect(updating).rejects.toEqual(OUTDATED);
      expect(await imagesNow()).toBe(isUpdated ? "app:1 app:2" : "app:1 app:1");
    },
  );

  it.each<[string, (pod: Pod) => Pod | undefined]>([
    ["was deleted", () => undefined],
    ["got another label", ({ metadata, ...pod }) => ({ ...pod, metadata: { ...metadata, labels: { app: "db" } } })],
    ["is another pod", ({ metadata, ...pod }) => ({ ...pod, metadata: { ...metadata, uid: "another" } })],
    ["has its gate open again", ({ status, ...pod }) => ({ ...pod, status: { ...status, conditions: OPEN } })],
  ])("the second write of an update is left to the next round when the pod %s", async (_, change) => {
    const { update, imagesNow } = reporting(1, change);
    await expect(update()).rejects.toEqual(OUTDATED);
    expect(await imagesNow()).not.toContain("app:2");
  });
});

it("a pod that another pass reserved is fenced and counts as down, so no other pod is updated", async () => {
  const { deploy, release, round, reserve, imagesNow } = stage();
  await deploy();
  await release("app:2");
  await reserve(["db-0"], 2);
  expect(await round()).toEqual({
    written: 2,
    touched: [],
    reserved: 1,
    calls: ["PATCH pods", "CREATE controllerrevisions", "PATCH statefulsets/status"],
  });
  expect(await imagesNow()).toBe("app:1 app:1");
});

it("a reservation of the older generation delays the observedGeneration of the new one", async () => {
  const { cluster, deploy, release, round, reserve } = stage();
  await deploy();
  await release("app:2");
  await reserve(["db-0"], 1);
  const observed = async () => (await readSet(cluster, "db")).status?.observedGeneration;
  await round();
  expect(await observed()).toBe(1);
  await round();
  expect(await observed()).toBe(2);
});

it("a reserved pod that needs no write is fenced, and the fence counts as written", async () => {
  const { deploy, round, reserve, readPod, context } = stage();
  await deploy();
  const { resourceVersion } = readPod("db-0").metadata ?? {};
  await reserve(["db-0"], 1);
  expect(await round()).toEqual({ written: 1, touched: [], reserved: 1, calls: ["PATCH pods"] });
  expect(readPod("db-0").metadata?.annotations?.[FENCE_ANNOTATION]).toBe(resourceVersion);
  expect(context.tally.fenced).toBe(1);
  expect(await round()).toEqual({ written: 0, touched: [], reserved: 0, calls: ["PATCH configmaps"] });
});

it("no pod is updated in the round that fences another pass's reservation", async () => {
  const { deploy, round, reserve, release, cluster, imagesNow } = stage();
  await deploy();
  await patchSpec(cluster, "db", { updateStrategy: { rollingUpdate: { maxUnavailable: 2, partition: 1 } } });
  await release("app:2");
  await reserve(["db-0"], 2);
  await expect(round()).rejects.toThrow(new OutdatedSnapshot("db-1 is to be written to, and is not reserved"));
  expect(await imagesNow()).toBe("app:1 app:1");
});

it("a round's snapshot is outdated when another pass has seen a newer generation of the set", async () => {
  const { cluster, round, reserve } = stage();
  await createSet(cluster, "db", { replicas: 0 });
  await reserve([], 9);
  await expect(round()).rejects.toThrow(new OutdatedSnapshot("another pass has seen a newer generation of the set"));
});

it("a round's snapshot is outdated when another pass has written the ledger", async () => {
  const { deploy, release, look, round, reserve, imagesNow } = stage();
  await deploy();
  await release("app:2");
  const snapshot = await look();
  await reserve(["db-0"], 2);
  await expect(round(snapshot)).rejects.toThrow(new OutdatedSnapshot("another pass has written the ledger"));
  expect(await imagesNow()).toBe("app:1 app:1");
});

it.each<[string, (set: StatefulSet) => StatefulSet | undefined]>([
  ["has another spec", ({ metadata, ...set }) => ({ ...set, metadata: { ...metadata, generation: 9 } })],
  [
    "was recreated under the same name",
    ({ metadata, ...set }) => ({ ...set, metadata: { ...metadata, uid: "another" } }),
  ],
  [
    "is being deleted",
    ({ metadata, ...set }) => ({ ...set, metadata: { ...metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } }),
  ],
  ["was deleted", () => undefined],
])("a round creates no pod when the set was read a second ago and now %s", async (_, change) => {
  const { cluster, server, look, round, clock } = stage();
  await createSet(cluster, "db", { replicas: 1 });
  const snapshot = await look();
  const changed = change(await readSet(cluster, "db"));
  if (changed) server.put("test", STATEFUL_SETS, changed);
  else await cluster.delete(STATEFUL_SETS, keyOf("db"));
  await clock.sleep(1_000);
  await expect(round(snapshot)).rejects.toThrow(new OutdatedSnapshot("the set has changed"));
  expect(await readPods(cluster, "db")).toEqual([]);
});

it.each([
  [999, 0],
  [1_000, 1],
])(
  "when a round creates two pods %i ms after the set was read, it reads the set again %i times",
  async (ageMs, times) => {
    const { cluster, look, round, clock } = stage();
    await createSet(cluster, "db", { replicas: 2, podManagementPolicy: "Parallel" });
    const snapshot = await look();
    await clock.sleep(ageMs);
    const { calls, touched } = await round(snapshot);
    expect(touched).toEqual(["db-0", "db-1"]);
    expect(calls.filter((call) => call === "GET statefulsets")).toHaveLength(times);
  },
);

it("a round's snapshot is outdated when a pod has changed that it would update in place", async () => {
  const { cluster, deploy, release, look, round, imagesNow } = stage();
  await deploy();
  await release("app:2");
  const snapshot = await look();
  const body = { metadata: { annotations: { changed: "since" } } };
  await cluster.patch(PODS, keyOf("db-1"), { type: "merge", body });
  await expect(round(snapshot)).rejects.toThrow(new OutdatedSnapshot("pod db-1 has changed"));
  expect(await imagesNow()).toBe("app:1 app:1");
});

it.each([[["db-0", "db-1"]], [["db-1"]]])(
  "a round is outdated when a node reported about a pod that the round has not written yet: pods to write %j",
  async (names) => {
    const { server, deploy, look, round, readPod } = stage();
    await deploy();
    for (const name of names) {
      const { metadata, ...pod } = readPod(name);
      const { [POD_NAME_LABEL]: _, ...labels } = metadata?.labels ?? {};
      server.put("test", PODS, { ...pod, metadata: { ...metadata, labels } });
    }
    const snapshot = await look();
    server.put("kubelet", PODS, readPod("db-1"));
    await expect(round(snapshot)).rejects.toThrow(OutdatedSnapshot);
    expect(["db-0", "db-1"].map((name) => readPod(name).metadata?.labels?.[POD_NAME_LABEL])).toEqual([
      "db-0",
      undefined,
    ]);
  },
);

it("a round deletes at most as many pods as its ledger has lines, and the next round continues", async () => {
  const { cluster, round, server } = stage();
  await createSet(cluster, "db", { replicas: MAX_OF_SET + 1, podManagementPolicy: "Parallel" });
  await round();
  await patchSpec(cluster, "db", { replicas: 0 });
  await expect(round()).rejects.toThrow(OutdatedSnapshot);
  // Pods without a node are deleted at once.
  expect(server.all(PODS)).toHaveLength(1);
  await round();
  expect(server.all(PODS)).toEqual([]);
});

describe("a pod with the readiness gate:", () => {
  const waiting = async (refuse?: Refuse, replicas = 1) => {
    const on = stage(refuse);
    await createSet(on.cluster, "db", specOf(POD_READY_CONDITION, { replicas }));
    await on.round();
    await on.run();
    return on;
  };

  it("a round opens a pod's readiness gate once, and a later round has nothing to do", async () => {
    const { round, run, readPod } = await waiting();
    const calls = ["PATCH statefulsets/status", "PATCH pods/status"];
    expect(await round()).toEqual({ written: 1, touched: ["db-0"], reserved: 0, calls });
    expect(readPod("db-0").status?.conditions).toContainEqual(
      expect.objectContaining({ type: POD_READY_CONDITION, status: "True" }),
    );
    await run();
    await round();
    expect(await round()).toEqual({ written: 0, touched: [], reserved: 0, calls: [] });
  });

  it("a round opens the readiness gates of two pods", async () => {
    const { round } = await waiting(undefined, 2);
    expect((await round()).touched).toEqual(["db-0", "db-1"]);
  });

  it("a round touches no pod when opening the readiness gate is forbidden", async () => {
    const { round } = await waiting((call, nth) =>
      call === "PATCH pods/status" && nth > 1 ? refusal(403, "no") : undefined,
    );
    expect(await round()).toMatchObject({ written: 0, touched: [] });
  });

  it("a round does not open the gate of a selected pod with another owner", async () => {
    const { round, server, readPod } = await waiting();
    const { metadata, ...pod } = readPod("db-0");
    const [own] = metadata?.ownerReferences ?? [];
    const ownerReferences = [{ ...(own as NonNullable<typeof own>), uid: "another" }];
    server.put("test", PODS, { ...pod, metadata: { ...metadata, ownerReferences } });
    expect((await round()).touched).toEqual([]);
  });
});

describe("fences:", () => {
  const fencing = async (error?: KubeError) => {
    const on = stage((call) => (call === "PATCH persistentvolumeclaims" ? error : undefined));
    const metadata = keyOf("data-db-0");
    const claim = await on.cluster.create<PersistentVolumeClaim>(CLAIMS, { metadata, spec: CLAIM });
    await fence(on.context, { ...claimState(claim), generation: 1, revision: "" });
    const after = on.server.peek(CLAIMS, metadata)?.metadata;
    return { before: claim.metadata?.resourceVersion, after, fenced: on.context.tally.fenced };
  };

  it("a fence on a claim changes its resourceVersion and counts in the tally", async () => {
    const { before, after, fenced } = await fencing();
    expect(fenced).toBe(1);
    expect(after?.annotations).toEqual({ [FENCE_ANNOTATION]: before });
    expect(after?.resourceVersion).not.toBe(before);
  });

  it.each([
    refusal(404, "NotFound"),
    refusal(409, "Conflict"),
    refusal(422, "Invalid"),
    new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false }),
  ])("a fence that failed with a conflict or an unknown outcome does not count: %s", async (error) => {
    expect(await fencing(error)).toMatchObject({ fenced: 0 });
  });

  it.each([refusal(403, "Forbidden"), new TypeError("a bug of ours")])(
    "a fence that failed for another reason ends the round: %s",
    async (error) => {
      await expect(fencing(error as KubeError)).rejects.toBe(error);
    },
  );
});
