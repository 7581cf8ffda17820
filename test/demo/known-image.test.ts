import { expect, it } from "vitest";
import { nextImage } from "../../infra/demo/rollout.ts";
import { isKnownImage } from "../../infra/demo/stage.ts";

const MANIFESTS = ["fluent/fluent-bit:4.1.0", "nginx:1.29", "localhost:5000/own:main"];

it.each([
  ["fluent/fluent-bit:4.1.0", true],
  ["fluent/fluent-bit:4.2.17", true],
  ["fluent/fluent-bit:4.2", false],
  ["fluent/fluent-bit:no-such-tag", false],
  ["fluent/fluent-bit:latest", false],
  ["fluent/fluent-bit", false],
  ["nginx:2.0", true],
  ["nginx:typo", false],
  ["localhost:5000/own:main", true],
  ["localhost:5000/own:other", false],
  ["busybox", true],
  ["busybox:1.36", true],
  ["busybox:latest", true],
  ["busybox:oops", false],
  [`nginx@sha256:${"0".repeat(64)}`, true],
])("whether the demo can pull %s: %s", (image, isKnown) => {
  expect(isKnownImage(image, MANIFESTS)).toBe(isKnown);
});

it.each([...MANIFESTS, "own", "own:v9"])("the demo can pull the image that it rolls out after %s", (image) => {
  expect(isKnownImage(nextImage(image), [image])).toBe(true);
  expect(isKnownImage(nextImage(nextImage(image)), [image])).toBe(true);
});
