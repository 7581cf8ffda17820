import { expect, it } from "vitest";
import { createHistory } from "../storage/store.ts";

const WRITE = {
  verb: "create",
  userAgent: "test",
  group: "",
  resource: "pods",
  subresource: "",
  namespace: "shop",
  resourceVersion: "1",
  isRemoved: false,
  object: { apiVersion: "v1", kind: "Pod", metadata: {} },
  previous: undefined,
} as const;

it.each([
  [undefined, 9, 9],
  [2, 2, 4],
  [0, 0, 0],
])("a history with limit %s keeps the latest writes, %d to %d of 9", (limit, least, most) => {
  const { write, writes } = createHistory(() => 0, limit);
  for (let index = 1; index <= 9; index++) write({ ...WRITE, name: `pod-${index}` });
  expect(writes().length).toBeGreaterThanOrEqual(least);
  expect(writes().length).toBeLessThanOrEqual(most);
  expect(writes().at(-1)?.name).toBe(most === 0 ? undefined : "pod-9");
});
