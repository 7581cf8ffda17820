/** Tests that every field of a pod template is known, as Kubernetes 1.37 has them. */
import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { lackingFields } from "./api-fields.ts";

it("the Go tables have every field of a pod template of Kubernetes 1.37", async () => {
  const { looked, lacking } = lackingFields(await readFile(new URL("api-fields/1.37.txt", import.meta.url), "utf8"));
  expect(looked).toBeGreaterThan(1_000);
  expect(lacking).toEqual([]);
});
