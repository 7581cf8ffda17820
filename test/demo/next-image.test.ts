import { describe, expect, it } from "vitest";
import { nextImage } from "../../infra/demo/next-image.ts";

describe("the next image", () => {
  it.each([
    ["a version", "fluent/fluent-bit:4.1.0", "fluent/fluent-bit:4.1.1"],
    ["a nine that carries over", "a:1.9", "a:1.10"],
    ["a number beyond 2^53", "a:9007199254740993", "a:9007199254740994"],
    ["a word", "a:stable", "a:stable-next"],
    ["no tag", "a/b", "a/b:next"],
    ["a registry with a port and no tag", "registry:5000/a/b", "registry:5000/a/b:next"],
    ["a registry with a port and a tag", "registry:5000/a:v1", "registry:5000/a:v2"],
    ["a digest alone", "a@sha256:00", "a:next"],
    ["a tag and a digest", "a:v7@sha256:00", "a:v8"],
  ])("after %s", (_title, image, next) => {
    expect(nextImage(image)).toBe(next);
  });
});
