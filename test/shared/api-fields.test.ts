/** Tests that the product knows every field of a pod template in Kubernetes 1.37. */
import { expect, it } from "vitest";
import { fieldsOfVersion, lackingFields, unnamedFields } from "./api-fields.ts";

it("the Go tables have every field of a pod template of Kubernetes 1.37", async () => {
  const { looked, lacking } = lackingFields(await fieldsOfVersion("1.37"));
  expect(looked).toBeGreaterThan(1_000);
  expect(lacking).toEqual([]);
});

it("every field that Kubernetes 1.29 to 1.37 added to containers and volumes is in the lists of fields that older API servers lack", async () => {
  const { looked, unnamed } = await unnamedFields(await fieldsOfVersion("1.37"));
  expect(looked).toBeGreaterThan(90);
  expect(unnamed).toEqual([]);
});
