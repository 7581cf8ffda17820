import { array, assert, boolean, constantFrom, nat, property, record, string, tuple } from "fast-check";
import { expect, test } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { PodTable, TextRows } from "../../shared/controller/pod-store/pod-table.ts";
import { SharedParts } from "../../shared/controller/pod-store/shared-parts.ts";
import { listedPod } from "../support/objects.ts";

const podOf = (name: string, image = "agent:1"): Pod =>
  listedPod(
    {
      name,
      namespace: "shop",
      uid: `uid of ${name}`,
      resourceVersion: "1",
      creationTimestamp: "2026-01-01T00:00:00Z",
      labels: { app: "web" },
      annotations: { a: "b" },
    },
    { nodeName: "node-1", containers: [{ name: "agent", image }] },
    { phase: "Running", conditions: [], containerStatuses: [{ name: "agent", ready: true, restartCount: 0 }] },
  );

/** Returns a function that puts each pod into one table, and returns the pod as the table has it. */
function recording(): (pod: Pod) => Pod | undefined {
  const table = new PodTable();
  return (pod) => table.at(table.add(pod));
}

test("pods read from a table equal the added pods and share their equal parts", () => {
  const recorded = recording();
  const [one, other] = [recorded(podOf("one")), recorded(podOf("other"))];
  expect([one, other]).toStrictEqual([podOf("one"), podOf("other")]);
  expect(other?.spec).toBe(one?.spec);
  expect(other?.status).toBe(one?.status);
  expect(other?.metadata?.labels).toBe(one?.metadata?.labels);
  expect(other?.metadata?.annotations).toBe(one?.metadata?.annotations);
});

test("a pod outside of a table shares its equal parts with the pods in the table", () => {
  const table = new PodTable();
  const recorded = table.at(table.add(podOf("one")));
  const shared = table.share(podOf("other"));
  expect(shared).toStrictEqual(podOf("other"));
  expect(shared.metadata?.labels).toBe(recorded?.metadata?.labels);
  expect(shared.metadata?.annotations).toBe(recorded?.metadata?.annotations);
  expect(shared.spec).toBe(recorded?.spec);
});

test.each(["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels", "annotations"] as const)(
  "a pod without %s is read from a table unchanged, also after it gets this field",
  (member) => {
    const { [member]: _, ...metadata } = podOf("one").metadata ?? {};
    const table = new PodTable();
    const row = table.add({ ...podOf("one"), metadata });
    expect(table.at(row)).toStrictEqual({ ...podOf("one"), metadata });
    table.replace(row, podOf("one"));
    expect(table.at(row)).toStrictEqual(podOf("one"));
  },
);

test("a table returns no pod for a dropped row or a row that never existed", () => {
  const table = new PodTable();
  const row = table.add(podOf("one"));
  table.drop(row);
  for (const absent of [row, row + 1, row + 2])
    expect([table.at(absent), table.record(absent)]).toEqual([undefined, undefined]);
  expect(table.rowOf("uid of one")).toBeUndefined();
});

test("a row is gone after another pod with the same uid was added", () => {
  const table = new PodTable();
  const [first, second] = [table.add(podOf("one")), table.add(podOf("one", "agent:2"))];
  expect([table.isGone(first), table.at(first)]).toEqual([true, undefined]);
  expect(table.rowOf("uid of one")).toBe(second);
});

test.each<[string, (table: PodTable, row: number) => unknown]>([
  ["adding a pod", (table) => table.add(podOf("other"))],
  ["replacing a pod", (table, row) => table.replace(row, podOf("one", "agent:2"))],
  ["dropping a pod", (table, row) => table.drop(row)],
])("%s increases the table's number of writes", (_, write) => {
  const table = new PodTable();
  const row = table.add(podOf("one"));
  const before = table.writes;
  write(table, row);
  expect(table.writes).toBeGreaterThan(before);
});

test("pods that differ in their spec still share their status", () => {
  const recorded = recording();
  const [one, other] = [recorded(podOf("one")), recorded(podOf("other", "agent:2"))];
  expect(other).toStrictEqual(podOf("other", "agent:2"));
  expect(other?.spec).not.toBe(one?.spec);
  expect(other?.status).toBe(one?.status);
});

test.each<[string, Pod, Pod]>([
  [
    "a number and the same text",
    { spec: { containers: [], a: 1 } } as unknown as Pod,
    { spec: { containers: [], a: "1" } } as unknown as Pod,
  ],
  [
    "a list and an object",
    { spec: { containers: [], a: ["x"] } } as unknown as Pod,
    { spec: { containers: [], a: { 0: "x" } } } as unknown as Pod,
  ],
  [
    "null and an empty object",
    { spec: { containers: [], a: null } } as unknown as Pod,
    { spec: { containers: [], a: {} } } as unknown as Pod,
  ],
  [
    "an empty list and an empty object",
    { spec: { containers: [], a: [] } } as unknown as Pod,
    { spec: { containers: [], a: {} } } as unknown as Pod,
  ],
  [
    "one key that looks like two keys",
    { spec: { containers: [], a: { "b:1,c": 1 } } } as unknown as Pod,
    { spec: { containers: [], a: { b: 1, c: 1 } } } as unknown as Pod,
  ],
])("a table does not confuse %s", (_, one, other) => {
  const recorded = recording();
  expect([recorded(one), recorded(other)]).toStrictEqual([
    { metadata: {}, ...one },
    { metadata: {}, ...other },
  ]);
});

test("a table of 100 pods finds each pod and its record by uid", () => {
  const pods = Array.from({ length: 100 }, (_, nth): Pod => {
    const pod = podOf(`pod-${nth}`);
    const { labels, ...metadata } = pod.metadata ?? {};
    const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: `set-${nth}`, uid: `uid of set-${nth}` };
    const owned = nth % 3 === 0 ? { ownerReferences: [owner] } : {};
    return { ...pod, metadata: { ...metadata, ...owned, ...(nth % 10 === 0 ? {} : { labels }) } } as Pod;
  });
  const table = new PodTable();
  for (const pod of pods) table.add(pod);
  const rows = pods.map(({ metadata }) => table.rowOf(metadata?.uid ?? "") ?? -1);
  expect(rows.map((row) => table.at(row))).toStrictEqual(pods);
  const read = (pod: Pod | undefined) => {
    const { name, uid, resourceVersion, labels, ownerReferences = [] } = pod?.metadata ?? {};
    return { name, uid, resourceVersion, labels, ownerReferences };
  };
  expect(rows.map((row) => read(table.record(row)))).toEqual(pods.map(read));
  expect(rows.map((row) => table.versionOf(row))).toEqual(pods.map(() => "1"));
});

test("the record of a pod throws after its table changed, and a table without rows replaces no row", () => {
  const table = new PodTable();
  expect(() => table.replace(0, podOf("one"))).toThrow("there is no row 0");
  const record = table.record(table.add(podOf("one")));
  expect(record?.metadata?.name).toBe("one");
  table.add(podOf("other"));
  expect(() => record?.metadata?.name).toThrow("the record of a pod was kept until the table changed");
});

test("a table keeps metadata that other pods do not have", () => {
  const pod = { metadata: { name: "p", deletionTimestamp: "2026-01-01T00:00:00Z" }, spec: { containers: [] } };
  expect(recording()(pod)).toStrictEqual(pod);
});

test("a table stays correct with 70,000 pods whose parts are too different to be shared", () => {
  const recorded = recording();
  for (let index = 0; index < 70_000; index++) {
    const pod = podOf(`p${index}`, `agent:${index}`);
    const kept = recorded(pod);
    if (index % 10_000 === 0) expect(kept).toStrictEqual(pod);
  }
});

const anyPod = record({
  uid: nat({ max: 300 }).map((number) => `uid-${number}`),
  name: string({ minLength: 1, maxLength: 80, unit: "grapheme-ascii" }),
  resourceVersion: nat().map(String),
  image: constantFrom("agent:1", "agent:2"),
  isOwned: boolean(),
  isGoing: boolean(),
}).map(({ uid, name, resourceVersion, image, isOwned, isGoing }): Pod => {
  const { metadata, ...rest } = podOf(name, image);
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "o", controller: true };
  const own = { ...metadata, uid, resourceVersion };
  const owned = isOwned ? { ...own, ownerReferences: [owner] } : own;
  return { ...rest, metadata: isGoing ? { ...owned, deletionTimestamp: "2026-01-02T00:00:00Z" } : owned };
});

type Step = readonly [pod: Pod, step: "add" | "replace" | "drop"];

const anySteps = array(tuple(anyPod, constantFrom("add" as const, "replace" as const, "drop" as const)), {
  minLength: 100,
  maxLength: 400,
});

function take(table: PodTable, [pod, step]: Step): void {
  const row = table.rowOf(pod.metadata?.uid ?? "");
  if (step === "add") table.add(pod);
  else if (row !== undefined) step === "drop" ? table.drop(row) : table.replace(row, pod);
}

/** Returns the expected contents of the table, by uid. */
function takenByMap(steps: readonly Step[]): ReadonlyMap<string, Pod> {
  const wanted = new Map<string, Pod>();
  for (const [pod, step] of steps) {
    const uid = pod.metadata?.uid ?? "";
    if (step === "drop") wanted.delete(uid);
    else if (step === "add" || wanted.has(uid)) wanted.set(uid, pod);
  }
  return wanted;
}

test("a table holds the same pods as a Map by uid", () => {
  let looked = 0;
  assert(
    property(anySteps, (steps) => {
      const table = new PodTable();
      for (const step of steps) take(table, step);
      const wanted = takenByMap(steps);
      for (const [uid, pod] of wanted) {
        const row = table.rowOf(uid) ?? -1;
        expect(table.at(row)).toStrictEqual(pod);
        expect(table.record(row)).toMatchObject(pod);
        expect(table.versionOf(row)).toBe(pod.metadata?.resourceVersion);
        looked++;
      }
      const rows = Array.from({ length: table.length }, (_, row) => table.at(row));
      expect(rows.filter((pod) => pod !== undefined)).toHaveLength(wanted.size);
    }),
    { numRuns: 100 },
  );
  expect(looked).toBeGreaterThan(1_000);
});

test("texts of every length stay unchanged, also after they are replaced", () => {
  const rows = new TextRows();
  const texts = Array.from({ length: 3_000 }, (_, index) => `${index}:${"\u00fc".repeat((index * 37) % 300)}`);
  const positions = texts.map((text) => rows.add(text));
  expect(positions.map((position) => rows.at(position))).toEqual(texts);
  const same = texts.map((text) => text.replaceAll("\u00fc", "\u00f6"));
  expect(positions.map((position, index) => rows.replace(position, same[index] ?? ""))).toEqual(positions);
  expect(positions.map((position) => rows.at(position))).toEqual(same);
  const longer = same.map((text) => `${text}!`);
  const moved = positions.map((position, index) => rows.replace(position, longer[index] ?? ""));
  expect(moved.map((position) => rows.at(position))).toEqual(longer);
});

test("a text replaces a text of the same length in its place, and a longer text gets a new place", () => {
  const rows = new TextRows();
  const first = rows.add("abc");
  expect(rows.replace(first, "xyz")).toBe(first);
  expect(rows.at(first)).toBe("xyz");
  const second = rows.replace(first, "wxyz");
  expect(second).not.toBe(first);
  expect(rows.at(second)).toBe("wxyz");
});

test("texts beyond one chunk stay unchanged, and a missing place or a text over 65535 bytes is an error", () => {
  const rows = new TextRows();
  const texts = Array.from({ length: 12 }, (_, index) => String.fromCharCode(97 + index).repeat(60_000));
  const positions = texts.map((text) => rows.add(text));
  expect(positions.map((position) => rows.at(position))).toEqual(texts);
  expect(() => rows.at(1e9)).toThrow(new RangeError("there is no text at 1000000000"));
  const tooLong = new RangeError("a text of 65536 bytes is longer than 65535");
  expect(() => rows.add("x".repeat(65_536))).toThrow(tooLong);
});

test("the place of a part that no pod uses is reused", () => {
  const table = new PodTable();
  const rows = Array.from({ length: 10 }, (_, index) => table.add(podOf(`p${index}`, "agent:0")));
  table.settle();
  const parts = new SharedParts();
  for (let turn = 1; turn < 1_000; turn++) {
    for (const [index, row] of rows.entries()) table.replace(row, podOf(`p${index}`, `agent:${turn}-${index}`));
    const place = parts.take(`value ${turn}`);
    expect(place).toBe(0);
    expect(parts.at(place)).toBe(`value ${turn}`);
    parts.release(place);
    if (turn === 500) parts.forget();
  }
  expect(rows.map((row) => table.at(row))).toStrictEqual(
    rows.map((_, index) => podOf(`p${index}`, `agent:999-${index}`)),
  );
});

test("a part that is used twice stays until both users release it", () => {
  const parts = new SharedParts();
  const [one, other] = [parts.take({ a: [1] }), parts.take({ a: [1] })];
  expect(other).toBe(one);
  parts.release(one);
  expect(parts.at(other)).toEqual({ a: [1] });
  parts.release(other);
  expect(parts.take("another")).toBe(one);
  expect(parts.take({ a: [1] })).not.toBe(one);
});

test("a pod with a name that is too long is refused, and the table keeps its other pods", () => {
  const table = new PodTable();
  const row = table.add(podOf("x"));
  expect(() =>
    table.add({ ...podOf("x".repeat(70_000)), metadata: { ...podOf("x").metadata, name: "x".repeat(70_000) } }),
  ).toThrow(RangeError);
  expect(table.length).toBe(1);
  expect(table.rowOf("uid of x")).toBe(row);
});

test("a table with more pods than one chunk holds returns each of them", () => {
  const table = new PodTable();
  const { metadata, ...same } = podOf("same");
  const names = Array.from({ length: 5_000 }, (_, index) => `p${index}`);
  const rows = names.map((name) => table.add({ ...same, metadata: { ...metadata, name, uid: `uid of ${name}` } }));
  expect(rows.map((row) => table.identityOf(row).name)).toEqual(names);
  // Checks the first and last row of the first chunk, and of the used part of the second one.
  for (const row of [0, 4_095, 4_096, 4_999]) expect(table.at(row)).toStrictEqual(podOf(`p${row}`));
  expect(table.rowOf("uid of p4999")).toBe(4_999);
});

test("replacing a row that never existed is an error", () => {
  const table = new PodTable();
  table.add(podOf("x"));
  expect(() => table.replace(1_000_000, podOf("x"))).toThrow("there is no row 1000000");
});

test("a record that is read after the table changed is an error", () => {
  const table = new PodTable();
  const record = table.record(table.add(podOf("x")));
  expect(record?.metadata).toMatchObject({ name: "x", ownerReferences: [] });
  table.add(podOf("other"));
  for (const member of ["name", "uid", "resourceVersion"] as const)
    expect(() => record?.metadata?.[member]).toThrow("the record of a pod was kept until the table changed");
});

test("parts are shared until there are too many different parts", () => {
  const parts = new SharedParts();
  const first = parts.share({ a: "b" });
  expect(parts.share({ a: "b" })).toBe(first);
  for (let number = 0; number < 50_000; number++) parts.share(number);
  const later = parts.share({ a: "b" });
  expect(later).toEqual(first);
  expect(later).not.toBe(first);
});
