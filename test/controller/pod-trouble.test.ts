/** What follows from a write to a pod that was refused: how long is waited, when it is sent again, and what is reported. */
import { describe, expect, it } from "vitest";
import type { Outcome } from "../../shared/controller/rollout/act.ts";
import type { Context } from "../../shared/controller/rollout/observe.ts";
import { backOff, isBusy, noteProblem, waitMsOf } from "../../shared/controller/rollout/pod-trouble.ts";
import { isDue, noteRefused } from "../../shared/controller/rollout/refusals.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
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

describe("a write that was refused", () => {
  it.each<[number | undefined, number]>([
    [undefined, 1_000],
    [3, 3_000],
    [60, 5_000],
  ])("since the API server has no time is waited with as long as it says, %s s, at most five", async (asked, ms) => {
    const { context, slept, problems } = stage();
    expect([isBusy(refused(429, asked)), waitMsOf(refused(429, asked))]).toEqual([true, ms]);
    await backOff(context, pod, refused(429, asked));
    expect([slept, problems]).toEqual([[ms], []]);
  });

  it("for good is a problem of its pod, and nothing is waited for", async () => {
    const { context, slept, problems } = stage();
    expect(isBusy(refused(403))).toBe(false);
    await backOff(context, pod, refused(403));
    expect([slept, problems]).toEqual([[], [{ namespace: "shop", name: "a", message: "no" }]]);
  });

  it("as nothing could be sent at all ends it", async () => {
    const { context, problems } = stage();
    await expect(backOff(context, pod, refused(0))).rejects.toThrow("no");
    expect(problems).toEqual([]);
  });

  it("is reported once for each pod and each reason", () => {
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
});

describe("a pod that a write was refused for", () => {
  it("is tried again after a second, and after twice as long each time, at most sixteen", async () => {
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

  it("is tried at once in another state, and so are others, and by another rollout", () => {
    const { context } = stage();
    noteRefused(context, pod, "no");
    expect(isDue(context, { ...pod, resourceVersion: "8" })).toBe(true);
    expect(isDue(context, { ...pod, uid: "v" })).toBe(true);
    expect(isDue(stage().context, pod)).toBe(true);
    expect(isDue(context, pod)).toBe(false);
  });
});
