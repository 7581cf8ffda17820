import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { SKIP_WAVES_ANNOTATION, UNDONE_ANNOTATION, WAVES_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet, SidecarSetStatus, UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { isSoakBehind, type WavesRecord } from "../../../shared/core/rollout/waves/standing.ts";
import {
  CONTEXT,
  NEW_HASH,
  NOW,
  OLD_HASH,
  podOf,
  reservedFor,
  sidecarSetOf,
  UNTOUCHED,
} from "../../support/rollout-fixture.ts";

interface WaveFacts {
  readonly name: string;
  readonly soakSeconds?: number;
  readonly paused?: boolean;
}

const WAVES = [{ name: "dev" }, { name: "staging" }, { name: "production" }] as const;
const LATER = "2025-06-01T00:01:00Z";
const NONE = { pods: 0, updated: 0, updatedReady: 0 };

interface SetFacts {
  readonly waves?: readonly WaveFacts[];
  readonly strategy?: UpdateStrategy;
  readonly status?: SidecarSetStatus["waves"];
}

function setWith({ waves = WAVES, strategy = { maxUnavailable: 100 }, status }: SetFacts = {}): SidecarSet {
  const set = sidecarSetOf({ selector: {}, updateStrategy: strategy });
  const list = waves.map((wave) => ({ ...wave, namespaceSelector: { matchLabels: { stage: wave.name } } }));
  const annotations = { ...set.metadata?.annotations, [WAVES_ANNOTATION]: JSON.stringify(list) };
  return { ...set, metadata: { ...set.metadata, annotations }, status: { ...(status ? { waves: status } : {}) } };
}

/** "dev" old and ready; "dev+" updated and ready; "dev-" updated and down. Its namespace is the stage, or "" for none. */
function podsOf(...standings: readonly string[]): readonly Pod[] {
  return standings.map((standing, at) => {
    const [, stage = "", mark = ""] = /^([a-z]*)([+-]?)$/.exec(standing) ?? [];
    const hash = mark === "" ? OLD_HASH : NEW_HASH;
    const pod = podOf({
      name: `${stage}-${at}`,
      hash,
      isReady: mark !== "-",
      image: mark === "" ? "reg/sc:v1" : "reg/sc:v2",
    });
    return { ...pod, metadata: { ...pod.metadata, namespace: stage === "" ? "elsewhere" : stage } };
  });
}

const LABELS = new Map(["dev", "staging", "production"].map((stage) => [stage, { stage }]));

/** As `set`, with these annotations too. */
function annotated(set: SidecarSet, annotations: Readonly<Record<string, string>>): SidecarSet {
  return { ...set, metadata: { ...set.metadata, annotations: { ...set.metadata?.annotations, ...annotations } } };
}

function decided(set: SidecarSet, pods: readonly Pod[], now = NOW, uids: readonly string[] = []) {
  const observation = { sidecarSet: set, pods, revisions: [], ...UNTOUCHED, namespaceLabels: LABELS };
  const reserved = uids.length === 0 ? UNTOUCHED.reserved : reservedFor(uids);
  return decide({ ...observation, reserved }, { ...CONTEXT, now });
}

function upgraded({ actions }: ReturnType<typeof decided>): readonly string[] {
  return actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.name] : [])).toSorted();
}

const passed = (...names: readonly string[]) => ({
  revision: NEW_HASH,
  list: WAVES.map(({ name }) => ({
    name,
    pods: 1,
    updated: 1,
    updatedReady: 1,
    ...(names.includes(name) ? { completeSince: NOW, passedAt: NOW } : {}),
  })),
});

describe("pods are candidates", () => {
  test.each<[string, SetFacts, readonly string[], readonly string[]]>([
    ["of the first wave at first", {}, ["production", "dev", "staging", "", "dev"], ["dev-1", "dev-4"]],
    ["of no later wave while the first is not ready", {}, ["dev-", "staging"], []],
    ["of no later wave while the status does not say that the first was passed", {}, ["dev+", "staging"], []],
    ["of the next wave once it does", { status: passed("dev") }, ["dev+", "staging", "production"], ["staging-1"]],
    [
      "of waves that were passed too",
      { status: passed("dev") },
      ["dev", "staging", "production"],
      ["dev-0", "staging-1"],
    ],
    [
      "of a wave that has begun, whatever befalls the one before",
      { status: passed("dev", "staging") },
      ["dev-", "staging-", "production"],
      ["production-2"],
    ],
    [
      "of no wave at the very end",
      { status: passed("dev", "staging") },
      ["dev+", "staging+", "production", ""],
      ["production-2"],
    ],
    [
      "of no wave once all were passed",
      { status: passed("dev", "staging", "production") },
      ["dev+", "", "production+"],
      ["-1"],
    ],
    [
      "of the first wave alone when the status is about another release",
      { status: { ...passed("dev", "staging"), revision: OLD_HASH } },
      ["dev", "staging", "production"],
      ["dev-0"],
    ],
    [
      "of no wave behind one that is paused, even where it was passed",
      { waves: [{ name: "dev", paused: true }, { name: "staging" }], status: passed("dev") },
      ["dev", "staging"],
      ["dev-0"],
    ],
    [
      "of a new wave before those that were begun behind it",
      { waves: [{ name: "staging" }, { name: "dev" }, { name: "production" }], status: passed("dev") },
      ["dev", "staging", "production"],
      ["staging-1"],
    ],
    [
      "as many as the partition lets go, those of the last waves kept",
      { strategy: { maxUnavailable: 100, partition: 2 }, status: passed("dev", "staging", "production") },
      ["production", "production", "dev", "staging"],
      ["dev-2", "staging-3"],
    ],
    [
      "as many as may be down",
      { strategy: { maxUnavailable: 2 } },
      ["dev", "dev", "dev", "staging"],
      ["dev-0", "dev-1"],
    ],
  ])("%s", (_what, facts, standings, names) => {
    expect(upgraded(decided(setWith(facts), podsOf(...standings)))).toEqual(names);
  });
});

const recordOf = (facts: SetFacts, standings: readonly string[], now = NOW, uids: readonly string[] = []) => {
  const { waves } = decided(setWith(facts), podsOf(...standings), now, uids);
  return Object.fromEntries(
    (waves?.list ?? []).map(({ name, completeSince, passedAt }) => [name, [completeSince, passedAt]]),
  );
};
const soaking = (seconds: number): readonly WaveFacts[] => [{ name: "dev", soakSeconds: seconds }, { name: "staging" }];
const since = (completeSince: string) => ({
  revision: NEW_HASH,
  list: [{ name: "dev", pods: 1, updated: 1, updatedReady: 1, completeSince }],
});

describe("a wave", () => {
  test.each<[string, SetFacts, readonly string[], string, Readonly<Record<string, readonly (string | undefined)[]>>]>([
    [
      "is passed when it is complete",
      {},
      ["dev+", "staging"],
      NOW,
      { dev: [NOW, NOW], staging: [undefined, undefined], production: [undefined, undefined] },
    ],
    [
      "is complete when its pods are ready, and soaks",
      { waves: soaking(60) },
      ["dev+", "staging"],
      NOW,
      { dev: [NOW, undefined], staging: [undefined, undefined] },
    ],
    [
      "is not complete while a pod is down",
      { waves: soaking(60) },
      ["dev+", "dev-"],
      NOW,
      { dev: [undefined, undefined], staging: [undefined, undefined] },
    ],
    [
      "is not complete while a pod is old",
      { waves: soaking(60) },
      ["dev+", "dev"],
      NOW,
      { dev: [undefined, undefined], staging: [undefined, undefined] },
    ],
    [
      "soaks from when it was complete",
      { waves: soaking(60), status: since(NOW) },
      ["dev+", "staging"],
      LATER,
      { dev: [NOW, LATER], staging: [undefined, undefined] },
    ],
    [
      "has not soaked a second before",
      { waves: soaking(61), status: since(NOW) },
      ["dev+", "staging"],
      LATER,
      { dev: [NOW, undefined], staging: [undefined, undefined] },
    ],
    [
      "soaks anew when a pod went down meanwhile",
      { waves: soaking(60), status: since(NOW) },
      ["dev-", "staging"],
      LATER,
      { dev: [undefined, undefined], staging: [undefined, undefined] },
    ],
    [
      "of which no pod is there is complete, and soaks",
      { waves: soaking(60) },
      ["staging"],
      NOW,
      { dev: [NOW, undefined], staging: [undefined, undefined] },
    ],
    [
      "is not passed while it is paused",
      { waves: [{ name: "dev", paused: true }] },
      ["dev+"],
      NOW,
      { dev: [NOW, undefined] },
    ],
    [
      "stays passed",
      { status: passed("dev") },
      ["dev-", "staging"],
      LATER,
      { dev: [NOW, NOW], staging: [undefined, undefined], production: [undefined, undefined] },
    ],
    [
      "behind it is passed at the same time where nothing is left to be done in it",
      {},
      ["dev+", "staging+", "production"],
      NOW,
      { dev: [NOW, NOW], staging: [NOW, NOW], production: [undefined, undefined] },
    ],
    [
      "of another release has passed nothing",
      { status: { ...passed("dev"), revision: OLD_HASH } },
      ["dev", "staging"],
      LATER,
      { dev: [undefined, undefined], staging: [undefined, undefined], production: [undefined, undefined] },
    ],
  ])("%s", (_what, ...[facts, standings, now, record]) => {
    expect(recordOf(facts, standings, now)).toEqual(record);
  });

  test("is not complete while a pass may be writing to a pod of it", () => {
    expect(recordOf({}, ["dev+"], NOW, ["uid-dev-0"])["dev"]).toEqual([undefined, undefined]);
  });

  test("does not wait for pods that updateStrategy.selector leaves out, nor for those that cannot be upgraded", () => {
    const strategy = { selector: { matchLabels: { canary: "true" } } };
    expect(recordOf({ strategy }, ["dev", "staging"])["dev"]).toEqual([NOW, NOW]);
    const fixed = podOf({ name: "dev-0", withoutImage: "other" });
    const pods = [{ ...fixed, metadata: { ...fixed.metadata, namespace: "dev" } }];
    expect(decided(setWith(), pods).waves?.list[0]).toMatchObject({ name: "dev", completeSince: NOW, passedAt: NOW });
  });

  test("is not complete while the partition keeps some of its pods", () => {
    expect(recordOf({ strategy: { partition: 1 } }, ["dev+", "dev"])["dev"]).toEqual([undefined, undefined]);
  });
});

test.each<[string, boolean, WavesRecord | undefined]>([
  ["as it is", false, { revision: "now", list: [{ ...NONE, name: "dev", completeSince: NOW }] }],
  ["of a wave that was not complete", false, { revision: "now", list: [] }],
  ["of one that is complete no more", true, { revision: "now", list: [{ ...NONE, name: "prod", completeSince: NOW }] }],
  ["of another release", true, { revision: "before", list: [] }],
  ["nowhere", true, undefined],
])("a record that is stored %s lets a wave soak from too early: %j", (_, isBehind, stored) => {
  const list = [
    { ...NONE, name: "dev", completeSince: NOW },
    { ...NONE, name: "prod" },
  ];
  expect(isSoakBehind(stored, { revision: "now", list })).toBe(isBehind);
});

describe("what is said", () => {
  const told = (facts: SetFacts, ...standings: readonly string[]) =>
    decided(setWith(facts), podsOf(...standings)).summary;

  test("is where each wave stands, and who keeps the others", () => {
    const { hold, waves } = told({}, "dev-", "staging", "", "production");
    expect(hold).toBe("wave");
    expect(waves?.rows).toEqual([
      { name: "dev", stage: "updating", pods: 1, updated: 1, updatedReady: 0, left: 1 },
      { name: "staging", stage: "waiting", pods: 1, updated: 0, updatedReady: 0, left: 1 },
      { name: "production", stage: "waiting", pods: 1, updated: 0, updatedReady: 0, left: 1 },
      { name: "", stage: "waiting", pods: 1, updated: 0, updatedReady: 0, left: 1 },
    ]);
    expect(waves?.holder?.name).toBe("dev");
    expect(waves?.behind).toBe(3);
    expect(waves?.isTurning).toBe(false);
  });

  test("is until when a wave soaks, that it is paused, and that it was passed just now", () => {
    expect(told({ waves: soaking(60) }, "dev+", "staging").waves?.holder).toMatchObject({
      name: "dev",
      stage: "soaking",
      soaksUntil: LATER,
    });
    expect(told({ waves: [{ name: "dev", paused: true }] }, "dev+", "").waves?.holder?.stage).toBe("paused");
    expect(told({}, "dev+", "staging").waves?.isTurning).toBe(true);
    expect(told({ status: passed("dev") }, "dev+", "staging").waves?.isTurning).toBe(false);
  });

  test("is nothing where nobody asks for waves, and what was stored while nobody can read them", () => {
    const plain = sidecarSetOf({ selector: {} });
    const { summary, waves } = decided(plain, podsOf("dev"));
    expect(summary).not.toHaveProperty("waves");
    expect(waves).toBeUndefined();
    const set = setWith({ status: passed("dev") });
    const annotations = { ...set.metadata?.annotations, [WAVES_ANNOTATION]: "dev" };
    const unreadable = decided({ ...set, metadata: { ...set.metadata, annotations } }, podsOf("dev"));
    expect(unreadable.summary.hold).toBe("unreadable");
    expect(unreadable.waves).toEqual(passed("dev"));
  });
});

describe("the way back", () => {
  const waves = [{ name: "dev", soakSeconds: 3_600 }, { name: "staging", paused: true }, { name: "production" }];
  const pods = podsOf("dev", "staging", "production", "");
  const undone = (to: string) =>
    JSON.stringify([{ from: "failed", to, at: NOW, message: "put back to revision 1, since 1 pod fails" }]);
  const selectedBy = (annotations: Readonly<Record<string, string>>) =>
    decided(annotated(setWith({ waves }), annotations), pods);

  test.each<[string, Readonly<Record<string, string>>, number]>([
    ["waits for waves like any other release", {}, 1],
    ["waits for none where the annotation names this release", { [SKIP_WAVES_ANNOTATION]: NEW_HASH }, 4],
    ["waits where it names another one", { [SKIP_WAVES_ANNOTATION]: OLD_HASH }, 1],
    ["waits for none where a failed release was put back to this one", { [UNDONE_ANNOTATION]: undone(NEW_HASH) }, 4],
    ["waits where another release followed since", { [UNDONE_ANNOTATION]: undone(OLD_HASH) }, 1],
  ])("%s", (_, annotations, count) => {
    const { summary, waves: record } = selectedBy(annotations);
    expect(summary.selected).toBe(count);
    const passed = record?.list.filter(({ passedAt }) => passedAt !== undefined) ?? [];
    expect(passed).toHaveLength(count === 4 ? 3 : 0);
  });

  test("has no wave in the way, and none that is paused", () => {
    const { holder, behind, rows } = selectedBy({ [SKIP_WAVES_ANNOTATION]: NEW_HASH }).summary.waves ?? {};
    expect([holder, behind]).toEqual([undefined, 0]);
    expect(rows?.map(({ name, stage }) => `${name} ${stage}`)).toEqual([
      "dev passed",
      "staging passed",
      "production passed",
      " updating",
    ]);
  });
});
