import { describe, expect, it } from "vitest";
import {
  EMPTY_LEDGER,
  formatLedger,
  isGenerationObservable,
  isSameLedger,
  type Ledger,
  ledgerName,
  MAX_RESERVATIONS,
  type PodState,
  parseLedger,
  type Reservation,
  reconcileLedger,
  withReservations,
} from "../../../shared/core/ledger.ts";

const pod = (name: string, resourceVersion = "7"): PodState => ({
  namespace: "shop",
  name,
  uid: `uid-${name}`,
  resourceVersion,
});
const reserved = (name: string, generation = 2): Reservation => ({ ...pod(name), generation, revision: "old" });
const subject = { uid: "set", generation: 2, revision: "new" };
const ledger = (...reservations: Reservation[]): Ledger => ({ uid: "set", generation: 2, reservations });

describe("the ledger as a ConfigMap", () => {
  it("comes back as it was written", () => {
    const written = formatLedger(ledger(reserved("a"), reserved("b", 1)));
    expect(written).toEqual({
      sidecarSetUID: "set",
      generation: "2",
      reservations: "shop/a uid-a 7 2 old\nshop/b uid-b 7 1 old\n",
    });
    expect(parseLedger(written)).toEqual(ledger(reserved("a"), reserved("b", 1)));
    expect(parseLedger(formatLedger(EMPTY_LEDGER))).toEqual(EMPTY_LEDGER);
    const many = { ...reserved("web-0", 123), resourceVersion: "4567", revision: "" };
    const late = { uid: "set", generation: 123, reservations: [many] };
    expect(parseLedger(formatLedger(late))).toEqual(late);
  });

  it("may lack the list of reservations", () => {
    expect(parseLedger({ sidecarSetUID: "set", generation: "2" })).toEqual(ledger());
  });

  it.each([
    { name: "no data", data: undefined },
    { name: "no generation", data: { sidecarSetUID: "set", reservations: "" } },
    { name: "a generation that is no number", data: { sidecarSetUID: "set", generation: "x", reservations: "" } },
    { name: "no SidecarSet", data: { generation: "2", reservations: "" } },
    { name: "a generation below 0", data: { sidecarSetUID: "set", generation: "-1", reservations: "" } },
    { name: "a generation and more", data: { sidecarSetUID: "set", generation: "2a", reservations: "" } },
    { name: "a line with more", data: { sidecarSetUID: "set", generation: "2", reservations: "shop/a u 7 2 old x" } },
    {
      name: "a line that begins wrong",
      data: { sidecarSetUID: "set", generation: "2", reservations: "/shop/a u 7 2 o" },
    },
    { name: "half a line", data: { sidecarSetUID: "set", generation: "2", reservations: "shop/a uid-a 7" } },
  ])("is not read as empty when it is broken: $name", ({ data }) => {
    expect(parseLedger(data)).toBeUndefined();
  });

  it("fits its name and its size", () => {
    expect(ledgerName("proxy")).toBe("sidecarset-ledger-proxy");
    const longest = "x".repeat(235);
    expect(ledgerName(longest)).toBe(`sidecarset-ledger-${longest}`);
    const long = "x".repeat(253);
    expect(ledgerName(long)).toHaveLength(253);
    expect(ledgerName(long)).not.toBe(ledgerName(`${long.slice(0, -1)}y`));
    const wanted = Array.from({ length: 5_000 }, (_, index) => ({
      namespace: "n".repeat(63),
      name: "p".repeat(253),
      uid: `00000000-0000-0000-0000-0000000${index}`,
      resourceVersion: "12345678901234567890",
    }));
    const { ledger: full, granted } = withReservations([], wanted, {
      ...subject,
      generation: 999_999_999_999_999,
      revision: "r".repeat(64),
    });
    expect(granted.size).toBe(MAX_RESERVATIONS);
    expect(JSON.stringify(formatLedger(full)).length).toBeLessThan(1024 * 1024 - 100_000);
  });
});

describe("rule 4: what is freed", () => {
  it.each([
    { name: "seen at a later resourceVersion: freed", seen: [["uid-a", "8"]], kept: 0 },
    { name: "seen at a later one of more digits: freed", seen: [["uid-a", "10"]], kept: 0 },
    { name: "seen at an older one, by a replica that lags behind: kept", seen: [["uid-a", "6"]], kept: 1 },
    { name: "gone: freed", seen: [["uid-a", null]], kept: 0 },
    { name: "seen at the reserved resourceVersion: kept", seen: [["uid-a", "7"]], kept: 1 },
    { name: "not looked for: kept", seen: [], kept: 1 },
  ] as const)("$name", ({ seen, kept }) => {
    const result = reconcileLedger(ledger(reserved("a")), new Map(seen), subject);
    expect(result?.kept).toHaveLength(kept);
    expect(result?.freed).toHaveLength(1 - kept);
  });

  it("a ledger that names a newer generation says: begin again", () => {
    expect(reconcileLedger({ ...ledger(), generation: 3 }, new Map(), subject)).toBeUndefined();
  });

  it("a ledger of an older SidecarSet with the same name is taken over, as older than any generation", () => {
    const older = { uid: "former", generation: 9, reservations: [reserved("a", 9)] };
    expect(reconcileLedger(older, new Map(), subject)?.kept).toEqual([{ ...reserved("a"), generation: 0 }]);
  });
});

describe("rules 2, 3, 5: what is reserved", () => {
  it("grants what is wanted in order, as far as there is room", () => {
    const plan = withReservations([reserved("a")], [pod("a"), pod("b"), pod("c")], subject, 2);
    expect([...plan.granted]).toEqual(["uid-a", "uid-b"]);
    expect(plan.fenced).toEqual([]);
    expect(plan.ledger).toEqual(
      ledger({ ...reserved("a"), revision: "new" }, { ...pod("b"), generation: 2, revision: "new" }),
    );
  });

  it("keeps what is not wanted any more, to be fenced", () => {
    const plan = withReservations([reserved("a", 1)], [], subject);
    expect(plan).toEqual({ ledger: ledger(reserved("a", 1)), granted: new Set(), fenced: [reserved("a", 1)] });
  });

  it("reserves nothing new while one is to be fenced: both patches could land", () => {
    const { granted, fenced } = withReservations([reserved("a"), reserved("b")], [pod("b"), pod("c")], subject);
    expect([...granted]).toEqual(["uid-b"]);
    expect(fenced).toEqual([reserved("a")]);
  });

  it("a pod wanted again under a newer generation stays reserved under the older one", () => {
    const { ledger: next } = withReservations([reserved("a", 1)], [pod("a")], subject);
    expect(next.reservations).toEqual([{ ...reserved("a", 1), revision: "new" }]);
    expect(isGenerationObservable(next, subject)).toBe(false);
  });
});

describe("rule 5: observedGeneration", () => {
  it.each([
    { name: "nothing reserved", ledger: ledger(), expected: true },
    { name: "reserved under this generation", ledger: ledger(reserved("a", 2)), expected: true },
    { name: "reserved under an older one", ledger: ledger(reserved("a", 2), reserved("b", 1)), expected: false },
    { name: "the ledger names another generation", ledger: { ...ledger(), generation: 1 }, expected: false },
    { name: "the ledger names another SidecarSet", ledger: { ...ledger(), uid: "former" }, expected: false },
    { name: "nothing was ever written", ledger: EMPTY_LEDGER, expected: false },
  ])("$name: $expected", ({ ledger: stored, expected }) => {
    expect(isGenerationObservable(stored, subject)).toBe(expected);
  });

  it("a ledger is written only when it changes", () => {
    expect(isSameLedger(ledger(reserved("a")), ledger(reserved("a")))).toBe(true);
    expect(isSameLedger(ledger(reserved("a")), ledger(reserved("a", 1)))).toBe(false);
    expect(isSameLedger(EMPTY_LEDGER, ledger())).toBe(false);
  });
});
