import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  launchNews,
  parseWork,
  podNews,
  queueMessage,
  seenFrom,
  subjectOfWork,
  tickWork,
  type Work,
} from "../../../shared/core/rollout/queue/work.ts";

/** Matches ids that SQS accepts for a group or a message. */
const SQS_ID = /^[A-Za-z0-9!"#$%&'()*+,./:;<=>?@[\\\]^_`{|}~-]{1,128}$/;
const MINUTE = 29_000_000;
const at = (minute: number) => minute * 60_000;
const change = (sidecarSet: string, hash: string, request: string, generation = 2): Work => ({
  kind: "change",
  sidecarSet,
  hash,
  generation,
  request,
});
const idOf = (work: Work) => queueMessage(work).MessageDeduplicationId;

/** Names that start with each other and end in numbers. Joined without a separator they would be ambiguous. */
const name = fc.constantFrom("a", "a-1", "a-11", "a-1-1", "1", "x".repeat(63));
const number = fc.nat({ max: 30 });
const work: fc.Arbitrary<Work> = fc.oneof(
  fc.tuple(name, number).map(([set, minute]) => tickWork(set, at(minute))),
  fc.tuple(name, number).map(([set, slot]) => podNews(set, slot * 500)),
  number.map((slot) => launchNews(slot * 500)),
  fc.tuple(name, name, name).map(([set, hash, request]) => change(set, hash, request)),
);

describe("the ids of a queue message:", () => {
  test("two messages have the same id only if their work is the same", () => {
    let [cases, distinct] = [0, 0];
    fc.assert(
      fc.property(work, work, (one, other) => {
        const isSame = JSON.stringify(one) === JSON.stringify(other);
        cases++;
        distinct += isSame ? 0 : 1;
        expect(idOf(one) === idOf(other)).toBe(isSame);
      }),
      { numRuns: 10_000 },
    );
    expect(cases).toBeGreaterThan(0);
    expect(distinct).toBeGreaterThan(cases / 2);
  });

  test.each<[string, Work, Work, boolean]>([
    ["a tick that is delivered twice: same id", tickWork("a", at(MINUTE)), tickWork("a", at(MINUTE) + 59_999), true],
    ["the next tick: another id", tickWork("a", at(MINUTE)), tickWork("a", at(MINUTE + 1)), false],
    ["a tick of another SidecarSet: another id", tickWork("a", at(MINUTE)), tickWork("b", at(MINUTE)), false],
    ["a request that is sent again: same id", change("a", "h", "u"), change("a", "h", "u"), true],
    ["the same hash by another request: another id", change("a", "h", "u"), change("a", "h", "v"), false],
    ["another hash: another id", change("a", "h", "u"), change("a", "i", "u"), false],
    ["pods of the same half second: same id", podNews("a", 1_000), podNews("a", 1_499), true],
    ["pods of the next half second: another id", podNews("a", 1_000), podNews("a", 1_500), false],
    ["a tick and a message about pods: different ids", tickWork("a", at(7)), podNews("a", 7 * 500), false],
  ])("messageOf gives the right id for %s", (_, one, other, isSame) => {
    expect(idOf(one) === idOf(other)).toBe(isSame);
  });

  test.each<[string, Work]>([
    ["a short name", tickWork("a", at(MINUTE))],
    ["the longest ids", change("x".repeat(63), "f".repeat(64), "0".repeat(36))],
    ["no SidecarSet", launchNews(0)],
    ["a long name that no webhook has validated", podNews(`${"x.".repeat(126)}x`, 0)],
  ])("SQS accepts the id and the group of a message with %s", (_, each) => {
    const { MessageGroupId, MessageDeduplicationId } = queueMessage(each);
    expect(MessageGroupId).toMatch(SQS_ID);
    expect(MessageDeduplicationId).toMatch(SQS_ID);
  });
});

test("messages of the same SidecarSet have the same group, and other messages do not", () => {
  fc.assert(
    fc.property(work, work, (one, other) => {
      const isSame = queueMessage(one).MessageGroupId === queueMessage(other).MessageGroupId;
      expect(isSame).toBe(one.sidecarSet === other.sidecarSet);
    }),
  );
});

test("parseWork reads the work that queueMessage wrote", () => {
  fc.assert(
    fc.property(work, (each) => {
      expect(parseWork(queueMessage(each).MessageBody)).toEqual(each);
    }),
  );
});

test.each([
  "",
  "{",
  "null",
  "[]",
  '"a"',
  '{"kind":"tick","minute":1}',
  '{"kind":"tick","sidecarSet":"a","slot":1}',
  '{"kind":"x","sidecarSet":"a","slot":1}',
  '{"kind":"launch","sidecarSet":"a","slot":1}',
])("parseWork throws an error for the message %j", (body) => {
  expect(() => parseWork(body)).toThrow(/^a message in the queue of rollouts is none of ours/);
});

test("subjectOfWork names the SidecarSet or the launch order", () => {
  expect(subjectOfWork(podNews("a", 0))).toBe("SidecarSet a");
  expect(subjectOfWork(launchNews(0))).toBe("the launch order of containers");
});

test("a message about pods counts as seen 200 ms after the end of its half second", () => {
  expect(seenFrom(podNews("a", 10_001))).toBe(10_700);
  expect(seenFrom(launchNews(10_001))).toBe(10_700);
  expect(seenFrom(tickWork("a", at(MINUTE) + 12_345))).toBe(at(MINUTE));
  expect(seenFrom(change("a", "h", "u"))).toBeUndefined();
});
