import { expect, test } from "vitest";
import { byText } from "../../../shared/go/by-text.ts";

test("byText caches a short text for one owner, and reads a long or forgotten text again", () => {
  const asked: string[] = [];
  const read = byText((text, owner) => {
    asked.push(`${owner} ${text}`.slice(0, 20));
    return text === "none" ? undefined : `${owner}: ${text.length}`;
  });
  expect(["a", "none", "a", "none"].map((text) => read(text, "x"))).toEqual(["x: 1", undefined, "x: 1", undefined]);
  expect(asked).toEqual(["x a", "x none"]);
  expect([read("a", "y"), read("a", "x")]).toEqual(["y: 1", "x: 1"]);
  expect(asked.slice(2)).toEqual(["y a", "x a"]);
  const long = "l".repeat(5_001);
  expect([read(long, "x"), read(long, "x")]).toEqual(["x: 5001", "x: 5001"]);
  expect(asked.filter((one) => one.startsWith("x l"))).toHaveLength(2);
  for (let index = 0; index < 1_000; index++) read(`text ${index}`, "x");
  asked.length = 0;
  expect([read("text 999", "x"), read("a", "x"), read("a", "x")]).toEqual(["x: 8", "x: 1", "x: 1"]);
  expect(asked).toEqual(["x a"]);
});
