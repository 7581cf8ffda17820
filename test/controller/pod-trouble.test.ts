/** Tests a refused write to a pod: the wait, the retry, and the report. */
import { expect, it } from "vitest";
import type { Outcome } from "../../shared/controller/rollout/act.ts";
import type { Context } from "../../shared/controller/rollout/observe.ts";
import { backOff, isBusy, waitMsOf } from "../../shared/controller/rollout/pod-trouble.ts";
import { isDue, noteRefused } from "../../shared/controller/rollout/refusals.ts";
import { newTally, noteProblem } from "../../shared/controller/rollout/report.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { steppedClock } from "./stepped-clock.ts";

const pod = { namespace: "shop", name: "a", uid: "u", resourceVersion: "7" };

function stage() {
  const { clock, slept } = steppedClock();
  const context = { clock, tally: newTally() } as unknown as Context;
  return { clock, slept, context, problems: context.tally.problems };
}

function refused(code: number, retryAfterSeconds?: number) {
  const more = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  const error = new KubeError("no", { code, reason: "Refused", isOutcomeKnown: true, ...more });
  return { kind: "refused", error } as const satisfies Outcome;
}

it.each<[number | undefined, number]>([
  [undefined, 1_000],
  [3, 3_000],
  [60, 5_000],
])("a pass waits as long as a busy API server asks (%s s), at most five seconds", async (asked, ms) => {
  const { context, slept, problems } = stage();
  expect([isBusy(refused(429, asked)), waitMsOf(refused(429, asked))]).toEqual([true, ms]);
  await backOff(context, pod, refused(429, asked));
  expect([slept, problems]).toEqual([[ms], []]);
});

it("a write that is forbidden is a problem of its pod, without a wait", async () => {
  const { context, slept, problems } = stage();
  expect(isBusy(refused(403))).toBe(false);
  await backOff(context, pod, refused(403));
  expect([slept, problems]).toEqual([[], [{ namespace: "shop", name: "a", message: "no" }]]);
});

it("backOff fails when nothing could be sent", async () => {
  const { context, problems } = stage();
  await expect(backOff(context, pod, refused(0))).rejects.toThrow("no");
  expect(problems).toEqual([]);
});

it("a problem is reported once per pod and message", () => {
  const { context, problems } = stage();
  const told = [
    ["shop", "a", "no"],
    ["shop", "a", "no"],
    ["shop", "b", "no"],
    ["shop", "b", "never"],
    ["other", "b", "no"],
    ["other", "b", "no"],
  ] as const;
  for (const [namespace, name, message] of told) noteProblem(context, { namespace, name }, message);
  const texts = problems.map(({ namespace, name, message }) => `${namespace}/${name} ${message}`);
  expect(texts).toEqual(["shop/a no", "shop/b no", "shop/b never", "other/b no"]);
});

it("a pod whose write was refused is due again after 1 second, then after twice as long, up to 16 seconds", async () => {
  const { context, clock } = stage();
  expect(isDue(context, pod)).toBe(true);
  for (const waitMs of [1_000, 2_000, 4_000, 8_000, 16_000, 16_000]) {
    noteRefused(context, pod, "no");
    await clock.sleep(waitMs - 1);
    expect(isDue(context, pod)).toBe(false);
    await clock.sleep(1);
    expect(isDue(context, pod)).toBe(true);
  }
});

it("a refused pod is due at once with another resourceVersion or uid, or in another rollout", () => {
  const { context } = stage();
  noteRefused(context, pod, "no");
  expect(isDue(context, { ...pod, resourceVersion: "8" })).toBe(true);
  expect(isDue(context, { ...pod, uid: "v" })).toBe(true);
  expect(isDue(stage().context, pod)).toBe(true);
  expect(isDue(context, pod)).toBe(false);
});
