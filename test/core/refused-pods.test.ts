/** Tests which pods passes skip after refusals, and for how long. Also tests the texts about these pods. */
import { expect, it } from "vitest";
import {
  DRAINED_AGAIN,
  isPassedOver,
  keptRefusals,
  passedOver,
  type RefusedPod,
  refusalText,
  refusedText,
  waitSecondsAfter,
} from "../../shared/core/refused-pods.ts";

const refused = (namespace: string, name: string, more: Partial<RefusedPod> = {}): RefusedPod => ({
  namespace,
  name,
  uid: `${namespace}-${name}`,
  times: 1,
  until: "2026-01-02T03:04:05Z",
  message: "no",
  ...more,
});
const some = (namespace: string, count: number) =>
  Array.from({ length: count }, (_, index) => refused(namespace, `p${index}`));

it("the time to the next try doubles with each refusal, up to ten minutes", () => {
  expect([1, 2, 3, 4, 10, 11, 99_999].map(waitSecondsAfter)).toEqual([1, 2, 4, 8, 512, 600, 600]);
});

it("four refused pods keep no other pod of their namespace waiting, and five do", () => {
  const other = { uid: "other", namespace: "a" };
  expect(
    isPassedOver(
      passedOver(some("a", 4), () => false),
      other,
    ),
  ).toBe(false);
  expect(
    isPassedOver(
      passedOver(some("a", 5), () => false),
      other,
    ),
  ).toBe(true);
  expect(
    isPassedOver(
      passedOver(some("a", 5), () => false),
      { ...other, namespace: "b" },
    ),
  ).toBe(false);
});

it("a refused pod whose time is over is tried although its namespace waits", () => {
  const pods = some("a", 6);
  const due = passedOver(pods, ({ name }) => name === "p0");
  expect(pods.map((pod) => isPassedOver(due, pod))).toEqual([false, true, true, true, true, true]);
});

it("the ledger keeps 50 refused pods, and a namespace with few refused pods loses none of them to a namespace with many", () => {
  const kept = keptRefusals([...some("greedy", 1_000), ...some("modest", 3)]);
  expect(kept).toHaveLength(50);
  expect(kept.filter(({ namespace }) => namespace === "modest")).toHaveLength(3);
});

it("the text names the pod that was refused most often, and counts the others", () => {
  expect(refusedText([])).toBeUndefined();
  expect(refusedText([refused("a", "x")])).toBe("the API server refuses to change pod a/x: no");
  expect(refusedText([refused("a", "x"), refused("b", "y", { times: 9 })])).toBe(
    "the API server refuses to change pod b/y (and 1 more pod): no",
  );
  expect(refusedText(some("a", 3))).toContain("(and 2 more pods)");
});

it("the API server's message becomes one line of at most 200 characters without invisible characters", () => {
  expect(refusalText("a\n\tb\u202Ec")).toBe("a b c");
  expect(refusalText("x".repeat(300))).toBe(`${"x".repeat(200)}…`);
});

it("a pod keeps its place in the budget until three passes drained it again, because another pass may have restarted it", () => {
  const sureOf = (times: number, message: string) =>
    passedOver([refused("a", "p", { times, message })], () => false).takenBack.size;
  expect([1, 2, 3, 4].map((times) => sureOf(times, DRAINED_AGAIN))).toEqual([0, 0, 1, 1]);
  expect(sureOf(9, "no"), "refused by the API server").toBe(0);
});
