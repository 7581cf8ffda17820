import { expect, test } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { partSharing } from "../../shared/controller/shared-parts.ts";

const podOf = (name: string, image = "agent:1"): Pod => ({
  metadata: {
    name,
    namespace: "shop",
    uid: `uid of ${name}`,
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:00:00Z",
    labels: { app: "web" },
    annotations: { a: "b" },
  },
  spec: { nodeName: "node-1", containers: [{ name: "agent", image }] },
  status: { phase: "Running", conditions: [], containerStatuses: [{ name: "agent", ready: true, restartCount: 0 }] },
});

test("records are equal to what they were made from, and share what is equal in them", () => {
  const share = partSharing();
  const [one, other] = [share(podOf("one")), share(podOf("other"))];
  expect([one, other]).toStrictEqual([podOf("one"), podOf("other")]);
  expect(other.spec).toBe(one.spec);
  expect(other.status).toBe(one.status);
  expect(other.metadata?.labels).toBe(one.metadata?.labels);
  expect(other.metadata?.annotations).toBe(one.metadata?.annotations);
});

test("what differs in one place shares the others", () => {
  const share = partSharing();
  const [one, other] = [share(podOf("one")), share(podOf("other", "agent:2"))];
  expect(other).toStrictEqual(podOf("other", "agent:2"));
  expect(other.spec).not.toBe(one.spec);
  expect(other.status).toBe(one.status);
});

test.each<[string, Pod, Pod]>([
  [
    "a number and its text",
    { spec: { containers: [], a: 1 } } as unknown as Pod,
    { spec: { containers: [], a: "1" } } as unknown as Pod,
  ],
  [
    "a list and an object",
    { spec: { containers: [], a: ["x"] } } as unknown as Pod,
    { spec: { containers: [], a: { 0: "x" } } } as unknown as Pod,
  ],
  [
    "nothing and an empty object",
    { spec: { containers: [], a: null } } as unknown as Pod,
    { spec: { containers: [], a: {} } } as unknown as Pod,
  ],
  [
    "no list and no object",
    { spec: { containers: [], a: [] } } as unknown as Pod,
    { spec: { containers: [], a: {} } } as unknown as Pod,
  ],
  [
    "a key that looks like two",
    { spec: { containers: [], a: { "b:1,c": 1 } } } as unknown as Pod,
    { spec: { containers: [], a: { b: 1, c: 1 } } } as unknown as Pod,
  ],
])("%s stay apart", (_, one, other) => {
  const share = partSharing();
  expect([share(one), share(other)]).toStrictEqual([
    { metadata: {}, ...one },
    { metadata: {}, ...other },
  ]);
});

test("metadata that others do not have is kept", () => {
  const pod = { metadata: { name: "p", deletionTimestamp: "2026-01-01T00:00:00Z" }, spec: { containers: [] } };
  expect(partSharing()(pod)).toStrictEqual(pod);
});

test("nothing goes wrong when too much is different to be remembered", () => {
  const share = partSharing();
  for (let index = 0; index < 70_000; index++) {
    const pod = podOf(`p${index}`, `agent:${index}`);
    const record = share(pod);
    if (index % 10_000 === 0) expect(record).toStrictEqual(pod);
  }
});
