import { expect, test } from "vitest";
import { millisecondText, secondText } from "../../shared/time-text.ts";

test("secondText cuts a time to whole seconds, and millisecondText keeps the milliseconds", () => {
  const times = [0, 999, 1_000, 1_767_225_600_007, 1_767_225_600_999, 1_767_225_599_999, -1, -1_000, 1_767_225_600_007];
  for (const time of times) {
    const whole = new Date(time).toISOString();
    expect(millisecondText(time)).toBe(whole);
    expect(secondText(time)).toBe(`${whole.slice(0, 19)}Z`);
  }
});
