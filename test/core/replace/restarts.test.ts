import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import type { Restarted } from "../../../shared/core/actions.ts";
import { formatLedger, parseLedger } from "../../../shared/core/ledger.ts";
import { replaceProblem, restartsAtOnce } from "../../../shared/core/pod/replaced.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import {
  isThrough,
  mostDown,
  type Restarting,
  type Workload,
  whyNotRestarted,
  withRestartFor,
} from "../../../shared/core/rollout/replace/workload-object.ts";
import { wavesText } from "../../../shared/core/rollout/waves/wave-text.ts";
import { addSeconds } from "../../../shared/go/seconds-between.ts";
import { CONTEXT, NEW_HASH, podOf, sidecarSetOf, UNTOUCHED } from "../../support/rollout-fixture.ts";

const CHANGED = "2025-05-31T10:00:00Z";

/** Not upgradable by default; of the StatefulSet before the dash. */
function pod(name: string, facts: Parameters<typeof podOf>[0] = {}): Pod {
  const { metadata, ...rest } = podOf({
    name,
    withoutImage: "other",
    creationTimestamp: "2025-05-30T00:00:00Z",
    ...facts,
  });
  const [owner = ""] = name.split("-");
  const controller = { apiVersion: "apps/v1", kind: "StatefulSet", name: owner, uid: `uid-${owner}`, controller: true };
  return { ...rest, metadata: { ...metadata, uid: `uid-${name}`, namespace: "shop", ownerReferences: [controller] } };
}
const updated = (name: string, facts: Parameters<typeof podOf>[0] = {}) =>
  pod(name, { hash: NEW_HASH, withoutImage: "same", ...facts });

function setOf(spec: SidecarSetSpec = {}, replace = "NotUpgradable, Restart"): SidecarSet {
  const { metadata, ...rest } = sidecarSetOf({ selector: {}, ...spec });
  const annotations = { ...metadata?.annotations, "sidecarset.kruise.io/replace": replace };
  const managedFields = [{ time: CHANGED, fieldsV1: { "f:spec": {} } }];
  return { ...rest, metadata: { ...metadata, managedFields, annotations } as NonNullable<SidecarSet["metadata"]> };
}

const status = { observedGeneration: 1, updatedReplicas: 2, replicas: 2, availableReplicas: 2 };
const workload = (name: string, more: Partial<Workload> = {}): Workload => ({
  metadata: { name, namespace: "shop", uid: `uid-${name}`, resourceVersion: "9", generation: 1 },
  spec: { replicas: 2 },
  status,
  ...more,
});
const known = (workloads: readonly (Workload | null)[], restarted: readonly Restarted[] = []): Restarting => ({
  missed: [],
  restarted,
  workloads: new Map(workloads.map((one, at) => [`StatefulSet shop/${one?.metadata?.name ?? "abc"[at]}`, one])),
});
const entry = (name: string): Restarted => ({ workload: "StatefulSet", namespace: "shop", name, uid: `uid-${name}` });

function decided(
  sidecarSet: SidecarSet,
  pods: readonly Pod[],
  restarting: Restarting,
  beside: Partial<Parameters<typeof decide>[0]> = {},
) {
  const observation = { ...UNTOUCHED, ...beside, sidecarSet, pods, revisions: [], restarting };
  const { actions, summary, restarts } = decide(observation, CONTEXT);
  const restarted = actions.flatMap((one) => (one.kind === "RestartWorkload" ? [one.workload.name] : []));
  const written = actions.filter(({ kind }) => kind === "PatchPod" || kind === "EvictPod").length;
  return { restarted, written, summary, asked: restarts?.asks.map(({ name }) => name), actions };
}
const both = ["a-0", "a-1", "b-0", "b-1"].map((name) => pod(name));
const all = known([workload("a"), workload("b")]);

/** With one wave, of the namespace shop. */
function setInWaves(replace?: string, spec: SidecarSetSpec = {}): SidecarSet {
  const waves = JSON.stringify([{ name: "dev", namespaceSelector: { matchLabels: { stage: "dev" } } }]);
  const { metadata, ...rest } = setOf(spec, replace);
  const annotations = { ...metadata?.annotations, "sidecarset.kruise.io/waves": waves };
  return { ...rest, metadata: { ...metadata, annotations } } as SidecarSet;
}
const inWaves = setInWaves();
const shopFirst = { namespaceLabels: new Map([["shop", { stage: "dev" }]]) };

describe("workloads", () => {
  test("are read before they are restarted", () => {
    const { restarted, asked } = decided(setOf(), both, known([]));
    expect([restarted, asked]).toEqual([[], ["a", "b"]]);
  });

  test("are restarted by the annotations of the one patch, on what was read", () => {
    const { actions, written } = decided(setOf(), both, all);
    expect(actions.filter(({ kind }) => kind === "RestartWorkload")).toEqual([
      {
        kind: "RestartWorkload",
        workload: { ...entry("a"), resourceVersion: "9" },
        at: CONTEXT.now,
        restartedFor: `ss=${NEW_HASH}`,
      },
    ]);
    expect(written).toBe(0);
  });

  test("are given another time than that of a restart in the same second, which would change nothing", () => {
    const metadata = { annotations: { "kubectl.kubernetes.io/restartedAt": CONTEXT.now } };
    const a = workload("a", { spec: { replicas: 2, template: { metadata } } });
    const [restart] = decided(setOf(), both, known([a, workload("b")])).actions.filter(
      (one) => one.kind === "RestartWorkload",
    );
    expect(restart?.at).toBe(addSeconds(CONTEXT.now, 1));
  });

  test.each<[string, SidecarSet, readonly Pod[], Restarting, readonly string[]]>([
    [
      "two where the annotation and the budget have room",
      setOf({ updateStrategy: { maxUnavailable: 2 } }, "NotUpgradable,Restart=2"),
      both,
      all,
      ["a", "b"],
    ],
    ["one where the budget has room for one", setOf({}, "NotUpgradable,Restart=2"), both, all, ["a"]],
    [
      "none beside one that is not through",
      setOf(),
      both,
      known([workload("a"), workload("b", { status: {} })], [entry("b")]),
      [],
    ],
    ["the next after one that is", setOf(), both.slice(2), known([workload("a"), workload("b")], [entry("a")]), ["b"]],
    [
      "one beside another whose pod is down, which is counted once",
      setOf({ updateStrategy: { maxUnavailable: 2 } }, "NotUpgradable,Restart=2"),
      [...both.slice(0, 2), updated("b-0", { isReady: false }), updated("b-1")],
      known([workload("a"), workload("b", { status: {} })], [entry("b")]),
      ["a"],
    ],
    [
      "none beside another whose pod is still to go down",
      setOf({ updateStrategy: { maxUnavailable: 1 } }, "NotUpgradable,Restart=2"),
      [...both.slice(0, 2), updated("b-0"), updated("b-1")],
      known([workload("a"), workload("b", { status: {} })], [entry("b")]),
      [],
    ],
    ["none while a pod is down", setOf(), [...both, updated("c-0", { isReady: false })], all, []],
    ["one with pods that are down last", setOf(), [pod("a-0", { isReady: false }), ...both.slice(1)], all, ["b"]],
    ["a whole one beside what the partition keeps", setOf({ updateStrategy: { partition: 2 } }), both, all, ["a"]],
    [
      "none beside one that is being restarted, where the partition has to keep the others then",
      setOf({ updateStrategy: { partition: 2, maxUnavailable: 2 } }, "NotUpgradable,Restart=2"),
      both,
      known([workload("a"), workload("b", { status: {} })], [entry("b")]),
      [],
    ],
    ["none of which the partition keeps a pod", setOf({ updateStrategy: { partition: 3 } }), both, all, []],
    ["none while it is paused", setOf({ updateStrategy: { paused: true } }), both, all, []],
    ["none while injection is", setOf({ injectionStrategy: { paused: true } }), both, all, []],
    [
      "none that came back in vain",
      setOf(),
      [...both, pod("b-2", { creationTimestamp: "2025-05-31T11:00:00Z" })],
      all,
      [],
    ],
    ["the next where one is not there", setOf(), both, known([null, workload("b")]), ["b"]],
    ["none that evictions are asked for", setOf({}, "NotUpgradable"), both, all, []],
  ])("are restarted: %s", (...[_what, set, pods, restarting, expected]) => {
    expect(decided(set, pods, restarting).restarted).toEqual(expected);
  });

  test("wait for pods that get there in place, which wait for none of them that is restarted", () => {
    const pods = [...both, pod("c-0", { withoutImage: "same" })];
    const first = decided(setOf(), pods, all);
    expect([first.restarted, first.written]).toEqual([[], 1]);
    const then = decided(setOf(), pods, known([workload("a", { status: {} })], [entry("a")]));
    expect([then.restarted, then.written, then.summary.hold]).toEqual([[], 0, "restart"]);
  });

  test("that are being restarted keep their wave, also while none of their pods is left", () => {
    const stageOf = (a: Workload) =>
      decided(inWaves, [updated("a-0")], known([a], [entry("a")]), shopFirst).summary.waves?.rows[0]?.stage;
    expect([stageOf(workload("a", { status: {} })), stageOf(workload("a"))]).toEqual(["updating", "passed"]);
  });

  test("that have to stay are why a wave is not passed, and why nothing goes on", () => {
    const later = pod("b-0");
    const pods = [pod("a-0"), { ...later, metadata: { ...later.metadata, namespace: "prod" } }];
    const holdOf = (a: Workload) => decided(inWaves, pods, known([a]), shopFirst).summary.hold;
    expect(holdOf(workload("a", { spec: { replicas: 2, updateStrategy: { type: "OnDelete" } } }))).toBe("restart");
    expect(decided(inWaves, pods, { ...known([]), refusal: "forbidden" }, shopFirst).summary.hold).toBe("restart");
    expect(decided(inWaves, [...pods, pod("c-0", { withoutImage: "same" })], known([]), shopFirst).summary.hold).toBe(
      "wave",
    );
  });

  test("are restarted for pods that missed their sidecars, though all others are updated", () => {
    const missed = [pod("b-0")];
    const set = setOf({}, "Missed,Restart");
    const { restarted } = decided(set, [updated("a-0")], { ...all, missed });
    expect(restarted).toEqual(["b"]);
    expect(decided(setOf({}, "NotUpgradable,Restart"), [updated("a-0")], all).summary.hold).toBe("finished");
  });

  test("are restarted for pods that missed their sidecars where no pod has any, by a share of those that should", () => {
    const missed = [pod("b-0")];
    const set = (maxUnavailable: string) => setOf({ updateStrategy: { maxUnavailable } }, "Missed,Restart");
    expect(decided(set("10%"), [], { ...all, missed }).restarted).toEqual(["b"]);
    expect(decided(set("0%"), [], { ...all, missed }).restarted).toEqual([]);
  });

  const missedAsked = setOf({}, "Missed,Restart");
  const bare = (name: string, restartedAt?: string): Pod => {
    const { metadata, ...rest } = pod(name, { creationTimestamp: "2025-05-31T11:00:00Z" });
    const annotations = restartedAt === undefined ? {} : { "kubectl.kubernetes.io/restartedAt": restartedAt };
    return { ...rest, metadata: { ...metadata, annotations } };
  };
  const SINCE = "2025-05-31T10:59:00Z";
  const restartedPod = (name: string, restartedAt: string): Pod => {
    const { metadata, ...rest } = updated(name);
    const annotations = { ...metadata?.annotations, "kubectl.kubernetes.io/restartedAt": restartedAt };
    return { ...rest, metadata: { ...metadata, annotations } };
  };

  test.each<[string, Pod, Pod]>([
    ["no restart brought", updated("b-1"), bare("b-0")],
    ["a restart before the change brought", updated("b-1"), bare("b-0", "2025-01-01T00:00:00Z")],
    ["came beside others of the same restart that have them", restartedPod("b-1", SINCE), bare("b-0", SINCE)],
  ])("are restarted for pods without sidecars that %s, and that stop no other", (_, other, missed) => {
    expect(decided(missedAsked, [other, missed], { ...all, missed: [missed] }).restarted).toEqual(["b"]);
  });

  test.each<[string, readonly Pod[]]>([
    ["an old one of its workload has them", [updated("b-1")]],
    ["one of another restart of its workload has them", [restartedPod("b-1", "2025-05-31T10:58:00Z")]],
    ["one of another workload has them that was restarted at the same time", [restartedPod("a-1", SINCE)]],
  ])(
    "are not restarted once all that a restart since the change brought are without sidecars, though %s",
    (_, others) => {
      const missed = [bare("a-0"), bare("b-0", SINCE)];
      const { restarted, summary } = decided(missedAsked, [...others, ...missed], { ...all, missed });
      const why = "created after the change, and without what it says: shop/b-0";
      expect([restarted, summary.restarts?.held]).toEqual([
        [],
        ["a", "b"].map((name) => `StatefulSet shop/${name}: ${why}`),
      ]);
    },
  );

  test("are restarted all the same, whatever a pod without a controller says that it was restarted", () => {
    const { metadata, ...rest } = bare("c-0", SINCE);
    const alone = { ...rest, metadata: { ...metadata, ownerReferences: [] } };
    const missed = [bare("b-0")];
    expect(decided(missedAsked, [...missed, alone], { ...all, missed }).restarted).toEqual(["b"]);
  });

  test.each<[string, Restarting, readonly Pod[], string]>([
    ["waits for its restart", known([workload("b")]), [], "updating"],
    ["is not known yet", known([]), [], "updating"],
    ["is being restarted", known([workload("b", { status: {} })], [entry("b")]), [], "updating"],
    ["may not be restarted", known([workload("b", { spec: { paused: true } })]), [], "passed"],
    ["is gone", known([null, null]), [], "passed"],
    ["was restarted in vain", known([workload("b")]), [bare("b-1", SINCE)], "passed"],
    ["has a pod that the selector leaves out", known([workload("b")]), [pod("b-1")], "passed"],
  ])("with pods that missed their sidecars keep their wave where one %s", (_, restarting, others, stage) => {
    const selector = { matchLabels: { is: "meant" } };
    const asked = setInWaves("Missed,Restart", { updateStrategy: { selector } });
    const namespaceLabels = new Map([["shop", { stage: "dev" }]]);
    const missed = [bare("b-0")];
    const { summary } = decided(asked, [...missed, ...others], { ...restarting, missed }, { namespaceLabels });
    expect(summary.waves?.rows[0]?.stage).toBe(stage);
  });

  test.each<[string, SidecarSet, Restarting, string]>([
    ["paused", setOf({}, "Missed,Restart"), known([workload("b", { spec: { paused: true } })]), "it is paused"],
    ["of a later wave", setInWaves("Missed,Restart"), all, "its wave has not begun"],
  ])(
    "are held, and said to be, where they are for pods that missed their sidecars and %s",
    (_, set, restarting, why) => {
      const waves = {
        namespaceLabels: new Map([
          ["shop", { stage: "prod" }],
          ["yard", { stage: "dev" }],
        ]),
      };
      const { restarted, summary } = decided(set, [updated("a-0")], { ...restarting, missed: [pod("b-0")] }, waves);
      expect([restarted, summary.restarts?.held, summary.hold]).toEqual([
        [],
        [`StatefulSet shop/b: ${why}`],
        "finished",
      ]);
    },
  );
});

test.each<[string, readonly Pod[], string]>([
  ["alone", [], "1 workload is being restarted, or to be"],
  [
    "beside pods that are left",
    [pod("c-0", { withoutImage: "same" }), updated("c-1")],
    "1 of its 2 pods is not updated and ready yet, and 1 workload is being restarted, or to be",
  ],
])("what keeps a wave is said of workloads that are restarted, %s", (_, others, text) => {
  const namespaceLabels = new Map([["shop", { stage: "dev" }]]);
  const restarting = { ...known([workload("b")]), missed: [pod("b-0")] };
  const { waves } = decided(setInWaves("Missed,Restart"), others, restarting, { namespaceLabels }).summary;
  expect(waves && wavesText(waves)).toBe(`wave dev comes first, ${text}`);
});

describe("a workload", () => {
  test.each<[string | undefined, Partial<Workload>]>([
    [undefined, {}],
    ["it is paused", { spec: { replicas: 2, paused: true } }],
    ["its update strategy is OnDelete", { spec: { replicas: 2, updateStrategy: { type: "OnDelete" } } }],
    [
      "its update strategy has a partition",
      { spec: { replicas: 2, updateStrategy: { rollingUpdate: { partition: 1 } } } },
    ],
    ["it is being rolled out already", { status: { ...status, updatedReplicas: 1 } }],
    ["it is being rolled out already", { status: { ...status, observedGeneration: 0 } }],
    [
      "it was restarted for this version already",
      { metadata: { generation: 1, annotations: { "sidecarset.kruise.io/restarted-for": "x=1,ss=new" } } },
    ],
  ])("is held: %s", (why, more) => {
    expect(whyNotRestarted("Deployment", workload("a", more), "ss", NEW_HASH)).toBe(why);
  });

  test.each<[number, "Deployment" | "StatefulSet" | "DaemonSet", Workload["spec"]]>([
    [2, "Deployment", { replicas: 10 }],
    [0, "Deployment", { replicas: 3 }],
    [10, "Deployment", { replicas: 10, strategy: { type: "Recreate" } }],
    [1, "Deployment", { replicas: 3, strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: "10%" } } }],
    [1, "StatefulSet", { replicas: 10 }],
    [3, "DaemonSet", { updateStrategy: { rollingUpdate: { maxUnavailable: "25%" } } }],
    [0, "DaemonSet", { updateStrategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } } }],
  ])("takes down at most %i: %s %j", (most, kind, spec = {}) => {
    expect(mostDown(kind, { spec, status: { desiredNumberScheduled: 10 } })).toBe(most);
  });

  test("is through when its pods are available, and remembers what else it was restarted for", () => {
    expect(isThrough("Deployment", workload("a"))).toBe(true);
    expect(isThrough("Deployment", workload("a", { status: { ...status, availableReplicas: 1 } }))).toBe(false);
    expect(isThrough("Deployment", workload("a", { status: { ...status, replicas: 3 } }))).toBe(false);
    const annotations = { "sidecarset.kruise.io/restarted-for": "other=1,ss=old" };
    expect(withRestartFor({ metadata: { annotations } }, "ss", "new")).toBe("other=1,ss=new");
  });
});

test.each([
  ["NotUpgradable,Restart", 1],
  ["Missed, Restart=3", 3],
  ["Restart", 0],
  ["NotUpgradable,Jobs,Restart", 0],
  ["NotUpgradable,Restart=0", 0],
  ["NotUpgradable,Restart=2,Restart=3", 0],
])("the annotation %s restarts %i at once", (text, count) => {
  expect(restartsAtOnce(setOf({}, text))).toBe(count);
  expect(replaceProblem(setOf({}, text)) === undefined).toBe(count > 0);
});

test("a ledger keeps what is restarted, and refuses what it cannot read", () => {
  const reservation = { ...entry("a"), resourceVersion: "9", generation: 2, revision: "new" };
  const ledger = { uid: "u", generation: 2, reservations: [reservation], restarted: [entry("a")] };
  expect(parseLedger(formatLedger(ledger))).toEqual(ledger);
  expect(parseLedger({ ...formatLedger(ledger), restarted: "Job shop/a uid\n" })).toBe(undefined);
});
