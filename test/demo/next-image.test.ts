import { describe, expect, it } from "vitest";
import { nextImage } from "../../infra/demo/rollout.ts";

describe("nextImage:", () => {
  it.each([
    ["an image with a version", "fluent/fluent-bit:4.1.0", "fluent/fluent-bit:4.1.1"],
    ["a version that ends in nine", "a:1.9", "a:1.10"],
    ["a version number beyond 2^53", "a:9007199254740993", "a:9007199254740994"],
    ["a tag that is a word", "a:stable", "a:stable-next"],
    ["an image without a tag", "a/b", "a/b:next"],
    ["an image without a tag on a registry with a port", "registry:5000/a/b", "registry:5000/a/b:next"],
    ["an image with a tag on a registry with a port", "registry:5000/a:v1", "registry:5000/a:v2"],
    ["an image with only a digest", "a@sha256:00", "a:next"],
    ["an image with a tag and a digest", "a:v7@sha256:00", "a:v8"],
  ])("nextImage returns a new image for %s", (_title, image, next) => {
    expect(nextImage(image)).toBe(next);
  });
});
