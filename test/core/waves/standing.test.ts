import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { SKIP_WAVES_ANNOTATION, UNDONE_ANNOTATION, WAVES_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet, SidecarSetStatus, UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { passedOver } from "../../../shared/core/refused-pods.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { isSoakBehind, type WavesRecord } from "../../../shared/core/rollout/rules/waves/standing.ts";
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

/**
 * Returns pods: "dev" is old and ready, "dev+" updated and ready, "dev-" updated and down. The word names the
 * namespace's stage, "" for none.
 */
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

/** The SidecarSet `set` with these annotations added. */
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

test("a pod that refuses writes holds its wave, so that no pod of the next wave is updated", () => {
  const pods = podsOf("dev", "dev+", "staging");
  const uid = pods[0]?.metadata?.uid ?? "";
  const pod = { namespace: "dev", name: "dev-0", uid, times: 9, until: LATER, message: "no" };
  const refused = { named: [pod], passedOver: passedOver([pod], () => false) };
  const reserved = { ...UNTOUCHED.reserved, refused };
  const decision = decide(
    { sidecarSet: setWith(), pods, revisions: [], ...UNTOUCHED, namespaceLabels: LABELS, reserved },
    { ...CONTEXT, now: NOW },
  );
  expect(upgraded(decision)).toEqual([]);
  expect(decision.summary.rules.waves?.holder).toMatchObject({ name: "dev", stage: "updating", left: 1 });
});

describe("pods that a pass updates:", () => {
  test.each<[string, SetFacts, readonly string[], readonly string[]]>([
    [
      "a pass updates pods of the first wave only, at first",
      {},
      ["production", "dev", "staging", "", "dev"],
      ["dev-1", "dev-4"],
    ],
    ["a pass updates pods of no later wave while the first wave is not ready", {}, ["dev-", "staging"], []],
    [
      "a pass updates pods of no later wave while the status does not record that the first wave was passed",
      {},
      ["dev+", "staging"],
      [],
    ],
    [
      "a pass updates pods of the next wave after the status records that the first wave was passed",
      { status: passed("dev") },
      ["dev+", "staging", "production"],
      ["staging-1"],
    ],
    [
      "a pass updates pods of passed waves and of the next wave",
      { status: passed("dev") },
      ["dev", "staging", "production"],
      ["dev-0", "staging-1"],
    ],
    [
      "a pass updates pods of a later wave even if the wave before it is down again",
      { status: passed("dev", "staging") },
      ["dev-", "staging-", "production"],
      ["production-2"],
    ],
    [
      "a pass updates pods of the last wave before pods that are in no wave",
      { status: passed("dev", "staging") },
      ["dev+", "staging+", "production", ""],
      ["production-2"],
    ],
    [
      "a pass updates pods that are in no wave after all waves were passed",
      { status: passed("dev", "staging", "production") },
      ["dev+", "", "production+"],
      ["-1"],
    ],
    [
      "a pass updates pods of the first wave only if the status is about another release",
      { status: { ...passed("dev", "staging"), revision: OLD_HASH } },
      ["dev", "staging", "production"],
      ["dev-0"],
    ],
    [
      "a pass updates pods of no wave behind a paused wave, even if that wave was passed before",
      { waves: [{ name: "dev", paused: true }, { name: "staging" }], status: passed("dev") },
      ["dev", "staging"],
      ["dev-0"],
    ],
    [
      "a pass updates pods of a new wave before waves behind it that have begun",
      { waves: [{ name: "staging" }, { name: "dev" }, { name: "production" }], status: passed("dev") },
      ["dev", "staging", "production"],
      ["staging-1"],
    ],
    [
      "a pass updates pods of the first waves if the partition keeps two pods",
      { strategy: { maxUnavailable: 100, partition: 2 }, status: passed("dev", "staging", "production") },
      ["production", "production", "dev", "staging"],
      ["dev-2", "staging-3"],
    ],
    [
      "a pass updates as many pods as maxUnavailable allows",
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

describe("the record of a wave:", () => {
  test.each<[string, SetFacts, readonly string[], string, Readonly<Record<string, readonly (string | undefined)[]>>]>([
    [
      "a wave with all pods updated and ready is passed",
      {},
      ["dev+", "staging"],
      NOW,
      { dev: [NOW, NOW], staging: [undefined, undefined], production: [undefined, undefined] },
    ],
    [
      "a wave with soakSeconds is complete if its pods are ready, but not passed yet",
      { waves: soaking(60) },
      ["dev+", "staging"],
      NOW,
      { dev: [NOW, undefined], staging: [undefined, undefined] },
    ],
    [
      "a wave with a pod that is down is not complete",
      { waves: soaking(60) },
      ["dev+", "dev-"],
      NOW,
      { dev: [undefined, undefined], staging: [undefined, undefined] },
    ],
    [
      "a wave with a pod of the old release is not complete",
      { waves: soaking(60) },
      ["dev+", "dev"],
      NOW,
      { dev: [undefined, undefined], staging: [undefined, undefined] },
    ],
    [
      "a wave that was complete for its soakSeconds is passed",
      { waves: soaking(60), status: since(NOW) },
      ["dev+", "staging"],
      LATER,
      { dev: [NOW, LATER], staging: [undefined, undefined] },
    ],
    [
      "a wave that was complete for one second less than its soakSeconds is not passed",
      { waves: soaking(61), status: since(NOW) },
      ["dev+", "staging"],
      LATER,
      { dev: [NOW, undefined], staging: [undefined, undefined] },
    ],
    [
      "a wave with a pod that went down during the soak time is not complete any more",
      { waves: soaking(60), status: since(NOW) },
      ["dev-", "staging"],
      LATER,
      { dev: [undefined, undefined], staging: [undefined, undefined] },
    ],
    [
      "a wave without pods is complete, but not passed before it has soaked",
      { waves: soaking(60) },
      ["staging"],
      NOW,
      { dev: [NOW, undefined], staging: [undefined, undefined] },
    ],
    [
      "a wave that is paused is complete but not passed",
      { waves: [{ name: "dev", paused: true }] },
      ["dev+"],
      NOW,
      { dev: [NOW, undefined] },
    ],
    [
      "a wave that was passed stays passed if a pod goes down",
      { status: passed("dev") },
      ["dev-", "staging"],
      LATER,
      { dev: [NOW, NOW], staging: [undefined, undefined], production: [undefined, undefined] },
    ],
    [
      "a wave with nothing left to update is passed together with the wave before it",
      {},
      ["dev+", "staging+", "production"],
      NOW,
      { dev: [NOW, NOW], staging: [NOW, NOW], production: [undefined, undefined] },
    ],
    [
      "a wave is not passed if the record is about another release",
      { status: { ...passed("dev"), revision: OLD_HASH } },
      ["dev", "staging"],
      LATER,
      { dev: [undefined, undefined], staging: [undefined, undefined], production: [undefined, undefined] },
    ],
  ])("%s", (_what, ...[facts, standings, now, record]) => {
    expect(recordOf(facts, standings, now)).toEqual(record);
  });

  test("a wave is not complete while one of its pods is reserved", () => {
    expect(recordOf({}, ["dev+"], NOW, ["uid-dev-0"])["dev"]).toEqual([undefined, undefined]);
  });

  test("a wave does not wait for pods that updateStrategy.selector leaves out or that cannot be upgraded", () => {
    const strategy = { selector: { matchLabels: { canary: "true" } } };
    expect(recordOf({ strategy }, ["dev", "staging"])["dev"]).toEqual([NOW, NOW]);
    const fixed = podOf({ name: "dev-0", withoutImage: "other" });
    const pods = [{ ...fixed, metadata: { ...fixed.metadata, namespace: "dev" } }];
    expect(decided(setWith(), pods).waves?.list[0]).toMatchObject({ name: "dev", completeSince: NOW, passedAt: NOW });
  });

  test("a wave is not complete while the partition keeps some of its pods", () => {
    expect(recordOf({ strategy: { partition: 1 } }, ["dev+", "dev"])["dev"]).toEqual([undefined, undefined]);
  });
});

test.each<[string, boolean, WavesRecord | undefined]>([
  ["with the same complete wave", false, { revision: "now", list: [{ ...NONE, name: "dev", completeSince: NOW }] }],
  ["without the complete wave", false, { revision: "now", list: [] }],
  [
    "with a wave that is not complete any more",
    true,
    { revision: "now", list: [{ ...NONE, name: "prod", completeSince: NOW }] },
  ],
  ["of another release", true, { revision: "before", list: [] }],
  ["that is missing", true, undefined],
])("isSoakBehind compares a stored record %s with the new one and returns %j", (_, isBehind, stored) => {
  const list = [
    { ...NONE, name: "dev", completeSince: NOW },
    { ...NONE, name: "prod" },
  ];
  expect(isSoakBehind(stored, { revision: "now", list })).toBe(isBehind);
});

describe("the summary of waves:", () => {
  const told = (facts: SetFacts, ...standings: readonly string[]) =>
    decided(setWith(facts), podsOf(...standings)).summary;

  test("the summary has the stage and the counts of each wave, and names the wave that holds the others", () => {
    const {
      hold,
      rules: { waves },
    } = told({}, "dev-", "staging", "", "production");
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

  test("the summary says when a soak ends, that a wave is paused, or that a wave was just passed", () => {
    expect(told({ waves: soaking(60) }, "dev+", "staging").rules.waves?.holder).toMatchObject({
      name: "dev",
      stage: "soaking",
      soaksUntil: LATER,
    });
    expect(told({ waves: [{ name: "dev", paused: true }] }, "dev+", "").rules.waves?.holder?.stage).toBe("paused");
    expect(told({}, "dev+", "staging").rules.waves?.isTurning).toBe(true);
    expect(told({ status: passed("dev") }, "dev+", "staging").rules.waves?.isTurning).toBe(false);
  });

  test("without the annotation there is no summary of waves; with an invalid one the stored record stays", () => {
    const plain = sidecarSetOf({ selector: {} });
    const { summary, waves } = decided(plain, podsOf("dev"));
    expect(summary.rules).not.toHaveProperty("waves");
    expect(waves).toBeUndefined();
    const set = setWith({ status: passed("dev") });
    const annotations = { ...set.metadata?.annotations, [WAVES_ANNOTATION]: "dev" };
    const unreadable = decided({ ...set, metadata: { ...set.metadata, annotations } }, podsOf("dev"));
    expect(unreadable.summary.hold).toBe("unreadable");
    expect(unreadable.waves).toEqual(passed("dev"));
  });
});

describe("a rollback with waves:", () => {
  const waves = [{ name: "dev", soakSeconds: 3_600 }, { name: "staging", paused: true }, { name: "production" }];
  const pods = podsOf("dev", "staging", "production", "");
  const undone = (to: string) =>
    JSON.stringify([{ from: "failed", to, at: NOW, message: "put back to revision 1, since 1 pod fails" }]);
  const selectedBy = (annotations: Readonly<Record<string, string>>) =>
    decided(annotated(setWith({ waves }), annotations), pods);

  test.each<[string, Readonly<Record<string, string>>, number]>([
    ["waits for the waves without the annotation skip-waves", {}, 1],
    ["skips the waves if the annotation skip-waves names this release", { [SKIP_WAVES_ANNOTATION]: NEW_HASH }, 4],
    [
      "waits for the waves if the annotation skip-waves names another release",
      { [SKIP_WAVES_ANNOTATION]: OLD_HASH },
      1,
    ],
    ["skips the waves if a failed release was undone to this one", { [UNDONE_ANNOTATION]: undone(NEW_HASH) }, 4],
    [
      "waits for the waves if the release that was undone led to another one",
      { [UNDONE_ANNOTATION]: undone(OLD_HASH) },
      1,
    ],
  ])("a release %s", (_, annotations, count) => {
    const { summary, waves: record } = selectedBy(annotations);
    expect(summary.selected).toBe(count);
    const passed = record?.list.filter(({ passedAt }) => passedAt !== undefined) ?? [];
    expect(passed).toHaveLength(count === 4 ? 3 : 0);
  });

  test("a release that skips the waves has all waves passed, even a paused one", () => {
    const { holder, behind, rows } = selectedBy({ [SKIP_WAVES_ANNOTATION]: NEW_HASH }).summary.rules.waves ?? {};
    expect([holder, behind]).toEqual([undefined, 0]);
    expect(rows?.map(({ name, stage }) => `${name} ${stage}`)).toEqual([
      "dev passed",
      "staging passed",
      "production passed",
      " updating",
    ]);
  });
});
