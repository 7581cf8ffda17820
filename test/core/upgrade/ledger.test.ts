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
  takenOver,
  withReservations,
} from "../../../shared/core/ledger.ts";
import { keptRefusals, refusalText } from "../../../shared/core/refused-pods.ts";

const pod = (name: string, resourceVersion = "7"): PodState => ({
  namespace: "shop",
  name,
  uid: `uid-${name}`,
  resourceVersion,
});
const reserved = (name: string, generation = 2): Reservation => ({ ...pod(name), generation, revision: "old" });
const subject = { uid: "set", generation: 2, revision: "new" };
const ledger = (...reservations: Reservation[]): Ledger => ({ uid: "set", generation: 2, reservations });

describe("formatLedger and parseLedger", () => {
  it("a ledger is the same after it is written to a ConfigMap and read again", () => {
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

  it("marks of shared reservations and refused pods are the same after they are written and read again", () => {
    const refused = [
      {
        namespace: "shop",
        name: "a",
        uid: "uid-a",
        times: 3,
        until: "2026-01-02T03:04:05Z",
        message: "it is too long",
      },
    ];
    const marked = { ...ledger({ ...reserved("a"), isShared: true }, reserved("b")), refused };
    const written = formatLedger(marked);
    expect(written).toMatchObject({
      reservations: "shop/a uid-a 7 2 old\nshop/b uid-b 7 2 old\n",
      shared: "uid-a\n",
      refused: "shop/a uid-a 3 2026-01-02T03:04:05Z it is too long\n",
    });
    expect(parseLedger(written)).toEqual(marked);
  });

  it("a line about a refused pod that cannot be read is left out, because it only costs one more try", () => {
    const data = { sidecarSetUID: "set", generation: "2", reservations: "", refused: "what is this\n" };
    expect(parseLedger(data)).toEqual(ledger());
  });

  it("a ledger may lack the list of reservations", () => {
    expect(parseLedger({ sidecarSetUID: "set", generation: "2" })).toEqual(ledger());
  });

  it.each([
    { name: "no data", data: undefined },
    { name: "no generation", data: { sidecarSetUID: "set", reservations: "" } },
    { name: "a generation that is not a number", data: { sidecarSetUID: "set", generation: "x", reservations: "" } },
    { name: "no UID of the SidecarSet", data: { generation: "2", reservations: "" } },
    { name: "a negative generation", data: { sidecarSetUID: "set", generation: "-1", reservations: "" } },
    {
      name: "a generation that ends in a letter",
      data: { sidecarSetUID: "set", generation: "2a", reservations: "" },
    },
    {
      name: "a reservation with one word too many",
      data: { sidecarSetUID: "set", generation: "2", reservations: "shop/a u 7 2 old x" },
    },
    {
      name: "a reservation without a namespace",
      data: { sidecarSetUID: "set", generation: "2", reservations: "/shop/a u 7 2 o" },
    },
    { name: "half a reservation", data: { sidecarSetUID: "set", generation: "2", reservations: "shop/a uid-a 7" } },
  ])("parseLedger refuses a ledger with $name", ({ data }) => {
    expect(parseLedger(data)).toBeUndefined();
  });

  it("the name and the size of a ledger stay within the limits of Kubernetes", () => {
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
    const message = refusalText("ü".repeat(300));
    const refused = wanted.map((one) => ({ ...one, times: 999_999, until: "2026-01-02T03:04:05Z", message }));
    const reservations = full.reservations.map((one) => ({ ...one, isShared: true as const }));
    const fullest = formatLedger({ ...full, reservations, refused: keptRefusals(refused) });
    expect(Buffer.byteLength(JSON.stringify(fullest))).toBeLessThan(1024 * 1024);
  });
});

describe("reconcileLedger (rule 4)", () => {
  it.each([
    { name: "is freed at a later resourceVersion", seen: [["uid-a", "8"]], kept: 0 },
    {
      name: "is freed at a longer resourceVersion",
      seen: [["uid-a", "10"]],
      kept: 0,
    },
    {
      name: "is kept at an older resourceVersion",
      seen: [["uid-a", "6"]],
      kept: 1,
    },
    { name: "is freed when its pod is gone", seen: [["uid-a", null]], kept: 0 },
    { name: "is kept at the same resourceVersion", seen: [["uid-a", "7"]], kept: 1 },
    { name: "is kept when its pod was not looked up", seen: [], kept: 1 },
  ] as const)("a reservation $name", ({ seen, kept }) => {
    const result = reconcileLedger(ledger(reserved("a")), new Map(seen), subject);
    expect(result?.kept).toHaveLength(kept);
    expect(result?.freed).toHaveLength(1 - kept);
  });

  it("reconcileLedger returns nothing when the ledger names a newer generation", () => {
    expect(reconcileLedger({ ...ledger(), generation: 3 }, new Map(), subject)).toBeUndefined();
  });

  it("reservations of an earlier SidecarSet with the same name are kept with the generation 0", () => {
    const older = { uid: "former", generation: 9, reservations: [reserved("a", 9)] };
    expect(reconcileLedger(older, new Map(), subject)?.kept).toEqual([{ ...reserved("a"), generation: 0 }]);
  });
});

describe("reservations of pods that refuse writes", () => {
  const isRefused = () => true;

  it("a reservation is freed when its own pass knows that every patch was refused", () => {
    expect(reconcileLedger(ledger(reserved("a")), new Map([["uid-a", "7"]]), subject, isRefused)?.kept).toEqual([]);
  });

  it("a shared reservation is kept although every patch of one pass was refused", () => {
    const shared = ledger({ ...reserved("a"), isShared: true });
    expect(reconcileLedger(shared, new Map([["uid-a", "7"]]), subject, isRefused)?.kept).toHaveLength(1);
  });

  it("takenOver marks kept reservations that are patched, but no own, fenced or new ones", () => {
    const kept = [reserved("own"), reserved("other"), reserved("fenced")];
    const plan = withReservations(kept, [pod("own"), pod("other"), pod("new")], subject);
    const { ledger: next } = takenOver(plan, kept, ({ name }) => name === "own");
    expect(next.reservations.filter(({ isShared }) => isShared).map(({ name }) => name)).toEqual(["other"]);
  });
});

describe("withReservations (rules 2, 3 and 5)", () => {
  it("while a pod must be fenced, a new pod is reserved only if the decision counts the fenced pod", () => {
    const plan = (counted: readonly string[]) =>
      withReservations([reserved("a"), reserved("b")], [pod("c")], subject, { counted: new Set(counted) });
    expect([...plan(["uid-a"]).granted]).toEqual([]);
    expect([...plan(["uid-a", "uid-b"]).granted]).toEqual(["uid-c"]);
    expect(plan(["uid-a", "uid-b"]).fenced.map(({ name }) => name)).toEqual(["a", "b"]);
  });

  it("wanted pods are granted in order while there is room", () => {
    const plan = withReservations([reserved("a")], [pod("a"), pod("b"), pod("c")], subject, { limit: 2 });
    expect([...plan.granted]).toEqual(["uid-a", "uid-b"]);
    expect(plan.fenced).toEqual([]);
    expect(plan.ledger).toEqual(
      ledger({ ...reserved("a"), revision: "new" }, { ...pod("b"), generation: 2, revision: "new" }),
    );
  });

  it("a reserved pod that is no longer wanted stays reserved and is fenced", () => {
    const plan = withReservations([reserved("a", 1)], [], subject);
    expect(plan).toEqual({ ledger: ledger(reserved("a", 1)), granted: new Set(), fenced: [reserved("a", 1)] });
  });

  it("no new pod is reserved while a reserved pod has to be fenced, because both patches could land", () => {
    const { granted, fenced } = withReservations([reserved("a"), reserved("b")], [pod("b"), pod("c")], subject);
    expect([...granted]).toEqual(["uid-b"]);
    expect(fenced).toEqual([reserved("a")]);
  });

  it("a pod that is wanted again under a newer generation stays reserved under the older one", () => {
    const { ledger: next } = withReservations([reserved("a", 1)], [pod("a")], subject);
    expect(next.reservations).toEqual([{ ...reserved("a", 1), revision: "new" }]);
    expect(isGenerationObservable(next, subject)).toBe(false);
  });
});

describe("observedGeneration (rule 5)", () => {
  it.each([
    { name: "nothing is reserved", ledger: ledger(), expected: true },
    { name: "a reservation has this generation", ledger: ledger(reserved("a", 2)), expected: true },
    {
      name: "a reservation has an older generation",
      ledger: ledger(reserved("a", 2), reserved("b", 1)),
      expected: false,
    },
    { name: "the ledger names another generation", ledger: { ...ledger(), generation: 1 }, expected: false },
    { name: "the ledger names another SidecarSet", ledger: { ...ledger(), uid: "former" }, expected: false },
    { name: "no ledger was ever written", ledger: EMPTY_LEDGER, expected: false },
  ])("isGenerationObservable returns $expected when $name", ({ ledger: stored, expected }) => {
    expect(isGenerationObservable(stored, subject)).toBe(expected);
  });

  it("isSameLedger compares the SidecarSet, the generation and the reservations", () => {
    expect(isSameLedger(ledger(reserved("a")), ledger(reserved("a")))).toBe(true);
    expect(isSameLedger(ledger(reserved("a")), ledger(reserved("a", 1)))).toBe(false);
    expect(isSameLedger(EMPTY_LEDGER, ledger())).toBe(false);
  });
});
