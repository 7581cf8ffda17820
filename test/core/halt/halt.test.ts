/** Tests halts of a rollout, and which pods count for them. */
import { describe, expect, test } from "vitest";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import type { PodState } from "../../../shared/core/pod/pod-state.ts";
import { steeringOf } from "../../../shared/core/pod/steering/steering.ts";
import { haltIsShort, haltOf } from "../../../shared/core/rollout/rules/halt/standstill.ts";
import { NEW_HASH, podOf, sidecarSetOf, statusesOf } from "../../support/rollout-fixture.ts";

const set = (value?: string): SidecarSet => ({
  metadata: {
    name: "agent",
    ...(value === undefined ? {} : { annotations: { "sidecarset.kruise.io/halt-on": value } }),
  },
  spec: {},
});

const atMinute = (minute: number, namespace = "shop") => ({
  namespace,
  updatedAt: new Date(minute * 60_000).toISOString(),
});

const times = (count: number, namespace: string, minute = 0) =>
  Array<ReturnType<typeof atMinute>>(count).fill(atMinute(minute, namespace));

/** Returns failing pods; `minutes`: the minute of each pod's update. */
const failing = (...minutes: readonly number[]) => minutes.map((minute) => atMinute(minute));

test.each<[string, string | undefined, readonly number[], number, boolean]>([
  ["does not halt without the annotation", undefined, [0, 0, 0], 3, false],
  ["does not halt if as many pods fail as allowed", "3", [0, 0, 0], 10, false],
  ["halts if one more pod fails than allowed", "3", [0, 0, 0, 0], 10, true],
  ["halts if one pod fails and none may", "0", [0], 10, true],
  ["does not halt if none may fail and none fails", "0", [], 10, false],
  ["does not halt if the allowed percentage fails", "10%", [0], 10, false],
  ["halts if more than the allowed percentage fails", "10%", [0, 0], 10, true],
  ["halts if 1 of 2 pods fails and 10% may", "10%", [0], 2, true],
  ["does not halt if 1 of 10 pods fails and 15% may", "15%", [0], 10, false],
  ["halts if 2 of 10 pods fail and 15% may", "15%", [0, 0], 10, true],
  ["does not halt if all pods are updated and none fails", "0%", [], 0, false],
  ["halts if 2 failing pods were updated within 5 minutes and 1 may", "1 within 5m", [0, 4], 10, true],
  ["does not halt if the failing pods were updated at least 6 minutes apart", "1 within 5m", [0, 6, 12], 10, false],
  ["halts if two of three failing pods were updated within 5 minutes", "1 within 5m", [0, 6, 11], 10, true],
  ["halts if more than 10% fail within 1 hour", "10% within 1h", [0, 59], 10, true],
  ["does not halt if 10% fail only over more than 1 hour", "10% within 1h", [0, 61], 10, false],
])("a rollout %s", (...[, value, minutes, upgraded, isHalted]) => {
  const testimony = { witnesses: failing(...minutes), upgraded, namespaces: 1 } as const;
  expect(haltOf(set(value), testimony) !== undefined).toBe(isHalted);
});

describe("haltOf with pods of several namespaces:", () => {
  test.each<[string, string, readonly ReturnType<typeof atMinute>[], boolean]>([
    ["failing pods of one namespace alone do not halt the rollout", "3", times(99, "evil"), false],
    ["failing pods of one namespace do not halt it even if halt-on is 0", "0", times(99, "evil"), false],
    ["failing pods of one namespace do not halt it if halt-on is a percentage", "1%", times(100, "evil"), false],
    ["failing pods of one namespace do not halt it if halt-on has a time", "3 within 5m", times(99, "evil"), false],
    [
      "one failing pod in each of two namespaces halts it if halt-on is 0",
      "0",
      [...times(1, "a"), ...times(1, "b")],
      true,
    ],
    [
      "two failing pods in each of two namespaces halt it if halt-on is 3",
      "3",
      [...times(2, "a"), ...times(2, "b")],
      true,
    ],
    [
      "many failing pods of one namespace count for at most half of the limit",
      "3",
      [...times(9, "a"), ...times(1, "b")],
      false,
    ],
    [
      "one failing pod in each of four namespaces halts it if halt-on is 3",
      "3",
      ["a", "b", "c", "d"].flatMap((one) => times(1, one)),
      true,
    ],
    [
      "failing pods of two namespaces do not add up if they were updated an hour apart",
      "3 within 5m",
      [...times(9, "a"), ...times(2, "b", 60)],
      false,
    ],
    [
      "failing pods of two namespaces add up if they were updated within the time",
      "3 within 5m",
      [...times(9, "a", 58), ...times(2, "b", 60)],
      true,
    ],
    [
      "failing pods of another time window do not count",
      "3 within 5m",
      [...times(9, "b"), ...times(2, "a", 58), ...times(1, "b", 60)],
      false,
    ],
  ])("%s", (_, value, witnesses, isHalted) => {
    expect(haltOf(set(value), { witnesses, upgraded: 100, namespaces: 2 }) !== undefined).toBe(isHalted);
  });
});

const upTo = (most: number) => Array.from({ length: most + 1 }, (_, index) => index);

test.each(upTo(12))(
  "with halt-on %i a rollout halts when one more pod fails, if each of two namespaces has at least half of them",
  (allowed) => {
    const needed = Math.max(allowed + 1, 2);
    for (const [one = 0, other = 0] of upTo(14).flatMap((first) => upTo(14).map((second) => [first, second]))) {
      const halts = one + other >= needed && Math.min(one, other) >= Math.floor(needed / 2);
      const testimony = { witnesses: [...times(one, "a"), ...times(other, "b")], upgraded: 100, namespaces: 2 };
      const found = [`${allowed}`, `${allowed} within 5m`].map((text) => haltOf(set(text), testimony) !== undefined);
      expect([one, other, ...found]).toEqual([one, other, halts, halts]);
    }
  },
);

describe("an invalid halt-on annotation:", () => {
  test.each(["", "many", "10 %", "-1", "1.5", "3 within", "3 within 5", "3 within 5d", "10%5m"])(
    "a rollout halts with an example if halt-on is %j",
    (value) => {
      const text = expect.stringContaining("write for example 3, 10%");
      expect(steeringOf(set(value)).problems).toMatchObject([{ text, isStopping: true }]);
    },
  );
});

test("the reason of a halt has the numbers of failing and updated pods and the limit", () => {
  expect(haltOf(set("1"), { witnesses: failing(0, 0), upgraded: 4, namespaces: 1 })).toBe(
    "2 of 4 updated pods fail, and sidecarset.kruise.io/halt-on is 1",
  );
});

test.each([
  ["1 within 5m", ["a", "a"], /: the failing pods were not updated close enough together$/],
  ["0 within 5m", ["a", "b"], /: each of 2 namespaces counts for at most half of them, or the failing pods were not/],
  ["3", ["a", "a", "a", "a", "b"], /: each of 2 namespaces counts for at most half of them$/],
] as const)(
  "explain says why halt-on %s does not stop a rollout with failing pods of the namespaces %s",
  (limit, places, words) => {
    const { metadata, ...rest } = sidecarSetOf();
    const annotations = { ...metadata?.annotations, "sidecarset.kruise.io/halt-on": limit };
    const states = places.map((namespace, hour) => failingPod(`p${hour}`, namespace, `2025-06-01T0${hour}:00:00Z`));
    expect(haltIsShort({ ...rest, metadata: { ...metadata, annotations } }, states)).toMatch(words);
  },
);

function failingPod(name: string, namespace: string, updateTimestamp: string): PodState {
  const pod = podOf({ name, hash: NEW_HASH, image: "reg/sc:v2", isReady: false });
  const HASH = "kruise.io/sidecarset-hash";
  const records = JSON.parse(pod.metadata?.annotations?.[HASH] ?? "{}") as { readonly ss: object };
  const annotations = {
    ...pod.metadata?.annotations,
    [HASH]: JSON.stringify({ ss: { ...records.ss, updateTimestamp } }),
    "kruise.io/sidecarset-inplace-update-state": JSON.stringify({
      ss: { revision: NEW_HASH, updateTimestamp, lastContainerStatuses: { sc: { imageID: "before" } } },
    }),
  };
  const conditions = [{ type: "Ready", status: "False", lastTransitionTime: "2025-06-02T00:00:00Z" }] as const;
  const containerStatuses = statusesOf(pod.spec).map((status) =>
    status.name === "sc" ? { ...status, ready: false, state: { waiting: { reason: "CrashLoopBackOff" } } } : status,
  );
  const failing = { ...pod, metadata: { ...pod.metadata, namespace, annotations } };
  const status = { ...pod.status, conditions, containerStatuses };
  return { pod: { ...failing, status }, isUpdated: true, isReady: false, isConsistent: true } as unknown as PodState;
}
