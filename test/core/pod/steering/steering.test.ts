/** Tests that the annotations of a SidecarSet are parsed only once, and that problems are found at the same time. */
import { expect, test } from "vitest";
import {
  DRAIN_ANNOTATION,
  GATE_ANNOTATION,
  HALT_ON_ANNOTATION,
  IGNORE_NEVER_READY_ANNOTATION,
  IN_PLACE_ANNOTATION,
  METRICS_ANNOTATION,
  OWNER_BUDGET_ANNOTATION,
  PRE_PULL_ANNOTATION,
  REPLACE_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
  WAVES_ANNOTATION,
} from "../../../../shared/api/names.ts";
import type { SidecarSet } from "../../../../shared/api/sidecarset.ts";
import { ANNOTATIONS } from "../../../../shared/core/pod/steering/annotations.ts";
import { steered, steeringDigest } from "../../../../shared/core/pod/steering/steered.ts";
import { steeringOf } from "../../../../shared/core/pod/steering/steering.ts";

const setWith = (annotations: Readonly<Record<string, string>>): SidecarSet => ({
  metadata: { annotations },
  spec: {},
});

test("the digest of all steering annotations is the same as in the ledgers of existing clusters", () => {
  const names = Object.entries(ANNOTATIONS).flatMap(([name, { isObserved }]) => (isObserved ? [name] : []));
  const digestOf = (all: readonly string[]) =>
    steeringDigest(setWith(Object.fromEntries(all.map((name) => [name, "x"]))));
  const before = names.filter((name) => name !== DRAIN_ANNOTATION && name !== PRE_PULL_ANNOTATION);
  expect(digestOf(before.filter((name) => name !== IN_PLACE_ANNOTATION))).toBe("7715e14b6270bd3e");
  expect(digestOf(before)).toBe("939eb12507dea856");
  expect(digestOf(names.filter((name) => name !== PRE_PULL_ANNOTATION))).toBe("1897efd53197227b");
  expect(digestOf(names)).toBe("29c703fe5664c867");
});

test("a pass keeps each annotation that steers a rollout, and no other annotation", () => {
  const annotations = Object.fromEntries([...Object.keys(ANNOTATIONS), "example.com/other"].map((name) => [name, "x"]));
  const kept = steered(setWith(annotations)).metadata?.annotations ?? {};
  expect(Object.keys(kept).sort()).toEqual(Object.keys(ANNOTATIONS).sort());
});

const STOPPING = [
  HALT_ON_ANNOTATION,
  OWNER_BUDGET_ANNOTATION,
  GATE_ANNOTATION,
  METRICS_ANNOTATION,
  WAVES_ANNOTATION,
] as const;
const IGNORED = [UNDO_ON_HALT_ANNOTATION, IGNORE_NEVER_READY_ANNOTATION, REPLACE_ANNOTATION] as const;

test.each<[boolean, string]>([
  ...STOPPING.map((annotation): [boolean, string] => [true, annotation]),
  ...IGNORED.map((annotation): [boolean, string] => [false, annotation]),
])("isStopping is %s for an unreadable %s", (isStopping, annotation) => {
  const { problems } = steeringOf(setWith({ [annotation]: "?" }));
  expect(problems).toEqual([{ annotation, isStopping, text: expect.stringContaining(annotation) }]);
});

test("problems that stop the rollout come before other problems, in any order of the annotations", () => {
  const all = [...STOPPING, ...IGNORED];
  const { problems } = steeringOf(setWith(Object.fromEntries(all.toReversed().map((one) => [one, "?"]))));
  expect(problems.map(({ annotation }) => annotation)).toEqual(all);
});

test("an unreadable budget of owners allows no pod, and no annotation means no budget", () => {
  expect(steeringOf(setWith({ [OWNER_BUDGET_ANNOTATION]: "many" })).ownerBudget).toEqual({
    amount: 0,
    isPercent: false,
  });
  expect(steeringOf(setWith({})).ownerBudget).toBeUndefined();
});

test("annotations are parsed once, also when the spec or the status of the SidecarSet is replaced", () => {
  const sidecarSet = setWith({ [HALT_ON_ANNOTATION]: "10% within 5m" });
  const steering = steeringOf(sidecarSet);
  expect(steeringOf({ ...sidecarSet, spec: {}, status: { matchedPods: 1 } })).toBe(steering);
  expect(steering.haltOn).toEqual({ text: "10% within 5m", amount: 10, isPercent: true, withinSeconds: 300 });
});
