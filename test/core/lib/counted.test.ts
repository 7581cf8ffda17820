import { expect, it } from "vitest";
import { counted } from "../../../shared/go/counted.ts";

it.each([
  [0, "0 pods are down"],
  [1, "1 pod is down"],
  [2, "2 pods are down"],
  [21, "21 pods are down"],
])("the function counted uses the noun and the verb that fit the count %i", (count, text) => {
  expect(counted(count, "pod is down", "pods are down")).toBe(text);
  expect(counted(count, "pod")).toBe(text.replace(/ (is|are) down/, ""));
});
