import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import type { Restarted } from "../../../shared/core/actions.ts";
import { formatLedger, parseLedger } from "../../../shared/core/ledger.ts";
import { restartsAtOnce } from "../../../shared/core/pod/replaced.ts";
import { steeringOf } from "../../../shared/core/pod/steering/steering.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import {
  isThrough,
  mostDown,
  openRestarts,
  type Restarting,
  type Workload,
  whyNotRestarted,
  withRestartFor,
} from "../../../shared/core/rollout/rules/restarts/workload-object.ts";
import { wavesText } from "../../../shared/core/rollout/rules/waves/wave-text.ts";
import { addSeconds } from "../../../shared/go/seconds-between.ts";
import { CONTEXT, NEW_HASH, podOf, sidecarSetOf, UNTOUCHED } from "../../support/rollout-fixture.ts";

const CHANGED = "2025-05-31T10:00:00Z";

/** Returns a pod that cannot be upgraded by default; its StatefulSet is the part before the dash. */
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
/** Returns a workload's template with a restart that many seconds ago. */
const restartedBefore = (seconds: number) => ({
  metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": addSeconds(CONTEXT.now, -seconds) ?? "" } },
});
const workload = (name: string, more: Partial<Workload> = {}): Workload => ({
  metadata: { name, namespace: "shop", uid: `uid-${name}`, resourceVersion: "9", generation: 1 },
  status,
  ...more,
  spec: { replicas: 2, template: restartedBefore(60), ...more.spec },
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

/** Returns a SidecarSet with one wave for the namespace shop. */
function setInWaves(replace?: string, spec: SidecarSetSpec = {}): SidecarSet {
  const waves = JSON.stringify([{ name: "dev", namespaceSelector: { matchLabels: { stage: "dev" } } }]);
  const { metadata, ...rest } = setOf(spec, replace);
  const annotations = { ...metadata?.annotations, "sidecarset.kruise.io/waves": waves };
  return { ...rest, metadata: { ...metadata, annotations } } as SidecarSet;
}
const inWaves = setInWaves();
const shopFirst = { namespaceLabels: new Map([["shop", { stage: "dev" }]]) };

test("a workload that is deleted during its restart frees its place, and a workload that was not read keeps its place", () => {
  const facts = { reserved: new Set<string>(), pods: both, now: CONTEXT.now };
  expect(openRestarts(known([null], [entry("a")]), facts)).toEqual([]);
  expect(openRestarts(known([], [entry("a")]), facts)).toEqual([entry("a")]);
});

describe("decide about restarts of workloads:", () => {
  test("a workload is read before it is restarted", () => {
    const { restarted, asked } = decided(setOf(), both, known([]));
    expect([restarted, asked]).toEqual([[], ["a", "b"]]);
  });

  test("a restart is one patch of the workload with its resourceVersion, the time and the release", () => {
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

  test("a restart gets a later time if the workload was restarted in the same second", () => {
    const metadata = { annotations: { "kubectl.kubernetes.io/restartedAt": CONTEXT.now } };
    const a = workload("a", { spec: { replicas: 2, template: { metadata } } });
    const [restart] = decided(setOf(), both, known([a, workload("b")])).actions.filter(
      (one) => one.kind === "RestartWorkload",
    );
    expect(restart?.at).toBe(addSeconds(CONTEXT.now, 1));
  });

  test.each<[string, SidecarSet, readonly Pod[], Restarting, readonly string[]]>([
    [
      "two if the annotation and the budget allow two",
      setOf({ updateStrategy: { maxUnavailable: 2 } }, "NotUpgradable,Restart=2"),
      both,
      all,
      ["a", "b"],
    ],
    ["one if the budget allows one", setOf({}, "NotUpgradable,Restart=2"), both, all, ["a"]],
    [
      "none while another workload is not done",
      setOf(),
      both,
      known([workload("a"), workload("b", { status: {} })], [entry("b")]),
      [],
    ],
    [
      "the next one after a workload is done",
      setOf(),
      both.slice(2),
      known([workload("a"), workload("b")], [entry("a")]),
      ["b"],
    ],
    [
      "the next one after a workload was scaled to zero while it was restarted",
      setOf(),
      both.slice(2),
      known([workload("a", { spec: { replicas: 0 }, status: { observedGeneration: 1 } }), workload("b")], [entry("a")]),
      ["b"],
    ],
    [
      "one beside a workload with a pod that is down, which counts once",
      setOf({ updateStrategy: { maxUnavailable: 2 } }, "NotUpgradable,Restart=2"),
      [...both.slice(0, 2), updated("b-0", { isReady: false }), updated("b-1")],
      known([workload("a"), workload("b", { status: {} })], [entry("b")]),
      ["a"],
    ],
    [
      "none beside a workload that will still take a pod down",
      setOf({ updateStrategy: { maxUnavailable: 1 } }, "NotUpgradable,Restart=2"),
      [...both.slice(0, 2), updated("b-0"), updated("b-1")],
      known([workload("a"), workload("b", { status: {} })], [entry("b")]),
      [],
    ],
    ["none while a pod is down", setOf(), [...both, updated("c-0", { isReady: false })], all, []],
    [
      "a workload whose pods are all ready before a workload with a pod that is down",
      setOf(),
      [pod("a-0", { isReady: false }), ...both.slice(1)],
      all,
      ["b"],
    ],
    ["a whole workload outside the partition", setOf({ updateStrategy: { partition: 2 } }), both, all, ["a"]],
    [
      "none beside a running restart if the partition keeps the other pods",
      setOf({ updateStrategy: { partition: 2, maxUnavailable: 2 } }, "NotUpgradable,Restart=2"),
      both,
      known([workload("a"), workload("b", { status: {} })], [entry("b")]),
      [],
    ],
    ["none with a pod that the partition keeps", setOf({ updateStrategy: { partition: 3 } }), both, all, []],
    ["none while the rollout is paused", setOf({ updateStrategy: { paused: true } }), both, all, []],
    ["none while injection is paused", setOf({ injectionStrategy: { paused: true } }), both, all, []],
    [
      "none if a new pod was created with the old release",
      setOf(),
      [...both, pod("b-2", { creationTimestamp: "2025-05-31T11:00:00Z" })],
      all,
      [],
    ],
    ["the next one if the first does not exist", setOf(), both, known([null, workload("b")]), ["b"]],
    ["none if the annotation asks only for evictions", setOf({}, "NotUpgradable"), both, all, []],
  ])("a pass restarts workloads: %s", (...[_what, set, pods, restarting, expected]) => {
    expect(decided(set, pods, restarting).restarted).toEqual(expected);
  });

  const underWay = (spec: Workload["spec"], metadata: Workload["metadata"] = workload("b").metadata) =>
    known([workload("a"), workload("b", { status: {}, spec, metadata } as Partial<Workload>)], [entry("b")]);
  const forThis = { "sidecarset.kruise.io/restarted-for": `ss=${NEW_HASH}` };
  const going = { ...workload("b").metadata, deletionTimestamp: "2025-05-31T11:59:00Z" } as Workload["metadata"];

  test.each<[string, Restarting, string]>([
    ["is paused", underWay({ paused: true }), "it is paused"],
    [
      "gets the strategy OnDelete",
      underWay({ updateStrategy: { type: "OnDelete" } }),
      "its update strategy is OnDelete",
    ],
    [
      "gets a partition",
      underWay({ updateStrategy: { rollingUpdate: { partition: 2 } } }),
      "its update strategy has a partition",
    ],
    ["is being deleted", underWay({}, going), "it is being deleted"],
    [
      "has made no new pod for an hour",
      underWay({ template: restartedBefore(3_600) }, {
        ...workload("b").metadata,
        annotations: forThis,
      } as Workload["metadata"]),
      "it was restarted for this version already, and not all of its pods are new yet",
    ],
    [
      "claims a restart in the future",
      underWay({ template: restartedBefore(-86_400) }),
      "it is being rolled out already",
    ],
    ["lost the time of its restart", underWay({ template: {} }), "it is being rolled out already"],
  ])("a workload that %s while it is restarted delays no others, and the summary names it", (_, restarting, why) => {
    const { restarted, summary } = decided(setOf(), both, restarting);
    expect([restarted, summary.rules.restarts?.underWay]).toEqual([["a"], ["StatefulSet shop/a"]]);
    const alone = decided(setOf(), [...both.slice(2)], restarting);
    expect([alone.restarted, alone.summary.rules.restarts?.held, alone.summary.hold]).toEqual([
      [],
      [`StatefulSet shop/b: ${why}`],
      "restart",
    ]);
  });

  test("a restarted workload that gets a partition delays others until the pods above the partition are new", () => {
    const spec = { replicas: 4, updateStrategy: { rollingUpdate: { partition: 2 } } };
    const restartedBeside = (updatedReplicas: number) => {
      const b = workload("b", { spec, status: { observedGeneration: 1, updatedReplicas, replicas: 4 } });
      return decided(setOf(), both, known([workload("a"), b], [entry("b")])).restarted;
    };
    expect([restartedBeside(1), restartedBeside(2)]).toEqual([[], ["a"]]);
  });

  test("a restart that began an hour ago delays others as long as the workload makes new pods", () => {
    const slow = underWay({ template: restartedBefore(7_200) });
    const made = (seconds: number) => updated("b-2", { creationTimestamp: addSeconds(CONTEXT.now, -seconds) ?? "" });
    const restartedBeside = (one: Pod) => decided(setOf(), [...both, one], slow).restarted;
    expect([restartedBeside(made(3_500)), restartedBeside(made(3_700))]).toEqual([[], ["a"]]);
  });

  test("a namespace whose workloads were restarted recently comes after a namespace whose workloads wait for their first restart", () => {
    const inYard = (one: Pod): Pod => ({ ...one, metadata: { ...one.metadata, namespace: "yard" } });
    const other = inYard(pod("z-0", { creationTimestamp: "2025-05-29T00:00:00Z" }));
    const restartedAs = (seconds: number) => restartedPod("c-0", addSeconds(CONTEXT.now, -seconds) ?? "");
    const asked = (...more: readonly Pod[]) => decided(setOf(), [...both, other, ...more], known([])).asked;
    expect([asked()?.[0], asked(restartedAs(3_600))?.[0], asked(restartedAs(86_400))?.[0]]).toEqual(["a", "z", "a"]);
    expect(asked(inYard(restartedAs(3_600)))?.[0]).toBe("a");
  });

  test("restarts wait until in-place upgrades are done, and upgrades may continue during a running restart", () => {
    const pods = [...both, pod("c-0", { withoutImage: "same" })];
    const first = decided(setOf(), pods, all);
    expect([first.restarted, first.written]).toEqual([[], 1]);
    const then = decided(setOf(), pods, known([workload("a", { status: {} })], [entry("a")]));
    expect([then.restarted, then.written, then.summary.hold]).toEqual([[], 0, "restart"]);
  });

  test("a wave is not passed while one of its workloads is being restarted, even if all its pods are updated", () => {
    const stageOf = (a: Workload) =>
      decided(inWaves, [updated("a-0")], known([a], [entry("a")]), shopFirst).summary.rules.waves?.rows[0]?.stage;
    expect([stageOf(workload("a", { status: {} })), stageOf(workload("a"))]).toEqual(["updating", "passed"]);
  });

  test("a workload that may not be restarted holds its wave", () => {
    const later = pod("b-0");
    const pods = [pod("a-0"), { ...later, metadata: { ...later.metadata, namespace: "prod" } }];
    const holdOf = (a: Workload) => decided(inWaves, pods, known([a]), shopFirst).summary.hold;
    expect(holdOf(workload("a", { spec: { replicas: 2, updateStrategy: { type: "OnDelete" } } }))).toBe("restart");
    expect(
      decided(
        inWaves,
        pods,
        {
          ...known([]),
          unread: new Map([
            ["StatefulSet shop/a", "forbidden"],
            ["x", "forbidden"],
            ["y", "forbidden"],
          ]),
        },
        shopFirst,
      ).summary.hold,
    ).toBe("restart");
    expect(decided(inWaves, [...pods, pod("c-0", { withoutImage: "same" })], known([]), shopFirst).summary.hold).toBe(
      "wave",
    );
  });

  test("a workload with pods that missed their sidecars is restarted even if all other pods are updated", () => {
    const missed = [pod("b-0")];
    const set = setOf({}, "Missed,Restart");
    const { restarted } = decided(set, [updated("a-0")], { ...all, missed });
    expect(restarted).toEqual(["b"]);
    expect(decided(setOf({}, "NotUpgradable,Restart"), [updated("a-0")], all).summary.hold).toBe("finished");
  });

  test("a workload with a pod that missed its sidecars is not restarted while the partition keeps another of its pods", () => {
    const restartedWith = (partition: number) => {
      const set = setOf({ updateStrategy: { partition, maxUnavailable: 2 } }, "NotUpgradable,Missed,Restart");
      return decided(set, [pod("b-1")], { ...all, missed: [pod("b-0")] }).restarted;
    };
    expect([restartedWith(0), restartedWith(1)]).toEqual([["b"], []]);
  });

  test("maxUnavailable as a percentage counts missed pods too, so that a restart is possible if no pod has sidecars", () => {
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
    ["without a restart annotation", updated("b-1"), bare("b-0")],
    ["of a restart before the change", updated("b-1"), bare("b-0", "2025-01-01T00:00:00Z")],
    ["of a restart whose other pods have sidecars", restartedPod("b-1", SINCE), bare("b-0", SINCE)],
  ])("a workload is restarted for a pod without sidecars %s", (_, other, missed) => {
    expect(decided(missedAsked, [other, missed], { ...all, missed: [missed] }).restarted).toEqual(["b"]);
  });

  test.each<[string, readonly Pod[]]>([
    ["an older pod of the workload has sidecars", [updated("b-1")]],
    ["a pod of another restart of the workload has sidecars", [restartedPod("b-1", "2025-05-31T10:58:00Z")]],
    ["a pod of another workload with the same restart time has sidecars", [restartedPod("a-1", SINCE)]],
  ])(
    "no workload is restarted after a restart since the change brought only pods without sidecars, even if %s",
    (_, others) => {
      const missed = [bare("a-0"), bare("b-0", SINCE)];
      const { restarted, summary } = decided(missedAsked, [...others, ...missed], { ...all, missed });
      const why = "created after the change, and without what it says: shop/b-0";
      expect([restarted, summary.rules.restarts?.held]).toEqual([
        [],
        ["a", "b"].map((name) => `StatefulSet shop/${name}: ${why}`),
      ]);
    },
  );

  test("a pod without a controller cannot stop restarts with its restart annotation", () => {
    const { metadata, ...rest } = bare("c-0", SINCE);
    const alone = { ...rest, metadata: { ...metadata, ownerReferences: [] } };
    const missed = [bare("b-0")];
    expect(decided(missedAsked, [...missed, alone], { ...all, missed }).restarted).toEqual(["b"]);
  });

  test.each<[string, Restarting, readonly Pod[], string]>([
    ["waits for its restart", known([workload("b")]), [], "updating"],
    ["was not read yet", known([]), [], "updating"],
    ["is being restarted", known([workload("b", { status: {} })], [entry("b")]), [], "updating"],
    ["is paused", known([workload("b", { spec: { paused: true } })]), [], "passed"],
    ["does not exist any more", known([null, null]), [], "passed"],
    ["was restarted without success", known([workload("b")]), [bare("b-1", SINCE)], "passed"],
    ["has a pod that the update selector leaves out", known([workload("b")]), [pod("b-1")], "passed"],
  ])("if a workload with missed pods %s, its wave has the right stage", (_, restarting, others, stage) => {
    const selector = { matchLabels: { is: "meant" } };
    const asked = setInWaves("Missed,Restart", { updateStrategy: { selector } });
    const namespaceLabels = new Map([["shop", { stage: "dev" }]]);
    const missed = [bare("b-0")];
    const { summary } = decided(asked, [...missed, ...others], { ...restarting, missed }, { namespaceLabels });
    expect(summary.rules.waves?.rows[0]?.stage).toBe(stage);
  });

  test.each<[string, SidecarSet, Restarting, string]>([
    [
      "a paused workload",
      setOf({}, "Missed,Restart"),
      known([workload("b", { spec: { paused: true } })]),
      "it is paused",
    ],
    ["a workload of a later wave", setInWaves("Missed,Restart"), all, "its wave has not begun"],
  ])("the summary says why %s with missed pods is not restarted", (_, set, restarting, why) => {
    const waves = {
      namespaceLabels: new Map([
        ["shop", { stage: "prod" }],
        ["yard", { stage: "dev" }],
      ]),
    };
    const { restarted, summary } = decided(set, [updated("a-0")], { ...restarting, missed: [pod("b-0")] }, waves);
    expect([restarted, summary.rules.restarts?.held, summary.hold]).toEqual([
      [],
      [`StatefulSet shop/b: ${why}`],
      "finished",
    ]);
  });
});

test.each<[string, readonly Pod[], string]>([
  ["no other pods", [], "1 workload is being restarted, or to be"],
  [
    "an old pod",
    [pod("c-0", { withoutImage: "same" }), updated("c-1")],
    "1 of its 2 pods is not updated and ready yet, and 1 workload is being restarted, or to be",
  ],
])("the text about a wave counts workloads that are being restarted, with %s in the wave", (_, others, text) => {
  const namespaceLabels = new Map([["shop", { stage: "dev" }]]);
  const restarting = { ...known([workload("b")]), missed: [pod("b-0")] };
  const {
    rules: { waves },
  } = decided(setInWaves("Missed,Restart"), others, restarting, { namespaceLabels }).summary;
  expect(waves && wavesText(waves)).toBe(`wave dev comes first, ${text}`);
});

describe("whyNotRestarted and mostDown:", () => {
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
  ])("whyNotRestarted in row %$ returns the reason: %s", (why, more) => {
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
  ])("mostDown returns %i for a %s with the spec %j", (most, kind, spec = {}) => {
    expect(mostDown(kind, { spec, status: { desiredNumberScheduled: 10 } })).toBe(most);
  });

  test.each([0, 1, 2, 3])(
    "a restart is done when all of %i pods are new and available, and no old one is left",
    (wanted) => {
      const ofReplicas = (updated: number, available: number, old: number) => ({
        ...{ observedGeneration: 1, replicas: updated + old, updatedReplicas: updated, availableReplicas: available },
        ...{ currentRevision: "r1", updateRevision: old > 0 ? "r2" : "r1" },
      });
      const ofDaemons = (updated: number, available: number) => ({
        ...{ observedGeneration: 1, desiredNumberScheduled: wanted },
        ...{ updatedNumberScheduled: updated, numberAvailable: available },
      });
      const counts = [0, 1, 2, 3].flatMap((updated) =>
        [0, 1, 2, 3].flatMap((available) => [0, 1].map((old) => [updated, available, old] as const)),
      );
      for (const [updated, available, old] of counts.filter(([most, least]) => least <= most)) {
        const one = { spec: { replicas: wanted }, status: ofReplicas(updated, available, old) };
        const found = [
          isThrough("Deployment", one),
          isThrough("StatefulSet", one),
          isThrough("DaemonSet", { status: ofDaemons(updated, available) }),
        ];
        const isDone = available >= wanted;
        const isAlone = isDone && old === 0;
        expect([updated, available, old, ...found]).toEqual([updated, available, old, isAlone, isAlone, isDone]);
      }
    },
  );

  test("a restart is done when all pods are available, and the annotation keeps the restarts for other SidecarSets", () => {
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
])("the annotation %s lets %i workloads restart at once", (text, count) => {
  expect(restartsAtOnce(setOf({}, text))).toBe(count);
  expect(steeringOf(setOf({}, text)).problems.length === 0).toBe(count > 0);
});

test("a ledger keeps the running restarts, and an invalid line makes it unreadable", () => {
  const reservation = { ...entry("a"), resourceVersion: "9", generation: 2, revision: "new" };
  const ledger = { uid: "u", generation: 2, reservations: [reservation], restarted: [entry("a")] };
  expect(parseLedger(formatLedger(ledger))).toEqual(ledger);
  expect(parseLedger({ ...formatLedger(ledger), restarted: "Job shop/a uid\n" })).toBe(undefined);
});

test("200 workloads of a namespace that cannot be restarted do not delay the workload of another namespace", () => {
  const inNamespace = (namespace: string, one: Pod): Pod => ({ ...one, metadata: { ...one.metadata, namespace } });
  const greedy = Array.from({ length: 200 }, (_, nth) => `g${nth}`);
  const pods = [
    ...greedy.map((name) => inNamespace("greedy", pod(`${name}-0`, { creationTimestamp: "2025-05-31T00:00:00Z" }))),
    inNamespace("modest", pod("m-0")),
  ];
  const workloads = new Map<string, Workload>();
  const restarting = { missed: [], restarted: [], workloads };
  const read = (name: string) => {
    const isModest = name === "m";
    const { metadata, ...rest } = workload(name, isModest ? {} : { spec: { updateStrategy: { type: "OnDelete" } } });
    const namespace = isModest ? "modest" : "greedy";
    workloads.set(`StatefulSet ${namespace}/${name}`, { ...rest, metadata: { ...metadata, namespace } });
  };
  const rounds = Array.from({ length: 6 }, () => {
    const { restarted, asked = [] } = decided(setOf(), pods, restarting);
    if (restarted.length === 0) asked.forEach(read);
    return restarted;
  });
  expect(rounds.at(-1)).toEqual(["m"]);
});

test("a workload that cannot be read is named, and a workload of another namespace is restarted", () => {
  const inNamespace = (namespace: string, one: Pod): Pod => ({ ...one, metadata: { ...one.metadata, namespace } });
  const pods = [inNamespace("closed", pod("a-0", { creationTimestamp: "2025-05-29T00:00:00Z" })), pod("b-0")];
  const unread = new Map([["StatefulSet closed/a", "may not be read: forbidden"]]);
  const { restarted, summary } = decided(setOf(), pods, { ...known([workload("b")]), unread });
  expect(restarted).toEqual(["b"]);
  expect(summary.rules.restarts?.held).toEqual(["StatefulSet closed/a: it may not be read: forbidden"]);
});

/** Returns the restarted workloads after all wanted ones are read. Only "m" may be restarted. */
function lookOf(pods: readonly Pod[], turn: number): readonly string[] {
  const workloads = new Map<string, Workload>();
  const stays = { spec: { updateStrategy: { type: "OnDelete" } } };
  const rounds = Array.from({ length: 9 }, () => {
    const { restarted, asked = [] } = decided(setOf(), pods, { missed: [], restarted: [], workloads, turn });
    for (const name of asked) {
      const { metadata, ...rest } = workload(name, name === "m" ? {} : stays);
      workloads.set(`StatefulSet ${name}/${name}`, { ...rest, metadata: { ...metadata, namespace: name } });
    }
    return restarted;
  });
  return rounds.at(-1) ?? [];
}

test("a workload behind 200 namespaces with unrestartable workloads is restarted by a decision that begins elsewhere", () => {
  const inNamespace = (namespace: string, one: Pod): Pod => ({ ...one, metadata: { ...one.metadata, namespace } });
  const kept = Array.from({ length: 200 }, (_, nth) => `k${nth}`);
  const pods = [
    ...kept.map((name) => inNamespace(name, pod(`${name}-0`, { creationTimestamp: "2025-05-31T00:00:00Z" }))),
    inNamespace("m", pod("m-0")),
  ];
  expect([lookOf(pods, 0), lookOf(pods, 0.7)]).toEqual([[], ["m"]]);
});

test("a workload with pods that are not ready comes after the ready ones of every namespace", () => {
  const inNamespace = (namespace: string, one: Pod): Pod => ({ ...one, metadata: { ...one.metadata, namespace } });
  const ready = ["a", "b"].map((name) => pod(`${name}-0`));
  const down = inNamespace("other", pod("z-0", { isReady: false }));
  const { asked } = decided(setOf({ updateStrategy: { maxUnavailable: 2 } }), [...ready, down], known([]));
  expect(asked).toEqual(["a", "b", "z"]);
});

test("no workload is restarted while a running restart may not be read, because its number of down pods is unknown", () => {
  const unread = new Map([["Deployment shop/a", "cannot be read: no"]]);
  const set = setOf({ updateStrategy: { maxUnavailable: 2 } }, "NotUpgradable,Restart=2");
  const open: Restarted = { ...entry("a"), workload: "Deployment" };
  const other = [pod("b-0"), pod("b-1")];
  const { restarted, summary } = decided(set, other, { ...known([workload("b")], [open]), unread });
  expect([restarted, summary.rules.restarts?.held]).toEqual([[], ["workloads cannot be read: no"]]);
  // The workload can now be read, and its strategy takes all of its ten pods down.
  const recreated = workload("a", { spec: { replicas: 10, strategy: { type: "Recreate" } }, status: {} });
  const read = new Map([
    ["Deployment shop/a", recreated],
    ["StatefulSet shop/b", workload("b")],
  ] as const);
  expect(decided(set, other, { missed: [], restarted: [open], workloads: read }).restarted).toEqual([]);
});

test("a workload is restarted even if the workloads of five namespaces before it may not be read", () => {
  const inNamespace = (namespace: string, one: Pod): Pod => ({ ...one, metadata: { ...one.metadata, namespace } });
  const closed = ["a", "b", "c", "d", "e"];
  const pods = [
    ...closed.map((name) => inNamespace(name, pod(`${name}-0`))),
    inNamespace("m", pod("m-0", { creationTimestamp: "2025-05-29T00:00:00Z" })),
  ];
  const [workloads, unread] = [new Map<string, Workload>(), new Map<string, string>()];
  const rounds = Array.from({ length: 9 }, (_, nth) => {
    const restarting = { missed: [], restarted: [], workloads, unread, turn: nth / 9 };
    const { restarted, asked = [] } = decided(setOf(), pods, restarting);
    for (const name of asked) {
      const { metadata, ...rest } = workload(name);
      if (closed.includes(name)) unread.set(`StatefulSet ${name}/${name}`, "may not be read: forbidden");
      else workloads.set(`StatefulSet ${name}/${name}`, { ...rest, metadata: { ...metadata, namespace: name } });
    }
    return restarted;
  });
  expect(rounds.at(-1)).toEqual(["m"]);
});
