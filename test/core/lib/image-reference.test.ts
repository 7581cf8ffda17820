import { describe, expect, test } from "vitest";
import { parseImageReference } from "../../../shared/core/lib/image-reference.ts";

const HEX = "a9286defaba7b3a519d585ba0e37d0b2cbee74ebfe590960b0b1d6a5e97d1e1d";

describe("parseImageReference", () => {
  test.each([
    ["a bare name", "busybox", { repository: "busybox" }],
    ["a tag is no part of the repository", "busybox:1.36", { repository: "busybox", tag: "1.36" }],
    ["a digest", `busybox@sha256:${HEX}`, { repository: "busybox", digest: `sha256:${HEX}` }],
    [
      "a digest beside a tag",
      `reg.io:5000/a/b:v1@sha256:${HEX}`,
      { repository: "reg.io:5000/a/b", tag: "v1", digest: `sha256:${HEX}` },
    ],
    ["upper case in the host", "Reg.IO/a", { repository: "Reg.IO/a" }],
    ["an IPv6 host", "[::1]:5000/a", { repository: "[::1]:5000/a" }],
    ["separators inside a component", "a--b/c__d.e", { repository: "a--b/c__d.e" }],
    ["upper case in the name is refused", "Busybox", undefined],
    ["nothing is refused", "", undefined],
    ["a short digest is refused", "busybox@sha256:abc", undefined],
    ["an unknown algorithm is refused", `busybox@md5:${HEX}`, undefined],
    ["upper case in a digest is refused", `busybox@sha256:${HEX.toUpperCase()}`, undefined],
    ["a name of more than 255 characters is refused", "a".repeat(256), undefined],
    ["a scheme is refused", "docker://busybox", undefined],
  ])("%s", (_, image, expected) => {
    expect(parseImageReference(image)).toEqual(expected);
  });

  test("long texts do not take long", () => {
    const start = process.hrtime.bigint();
    for (const text of ["a-".repeat(50_000), "a/".repeat(50_000), "-".repeat(100_000), `${"a".repeat(500)}!`]) {
      expect(parseImageReference(text)).toBeUndefined();
    }
    expect(Number(process.hrtime.bigint() - start) / 1e6).toBeLessThan(200);
  });
});
