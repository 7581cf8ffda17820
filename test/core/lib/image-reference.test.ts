import { describe, expect, test } from "vitest";
import { parseImageReference } from "../../../shared/go/image-reference.ts";

const HEX = "a9286defaba7b3a519d585ba0e37d0b2cbee74ebfe590960b0b1d6a5e97d1e1d";

describe("parseImageReference", () => {
  test.each([
    ["a bare name is read as the repository", "busybox", { repository: "busybox" }],
    ["a tag is not part of the repository", "busybox:1.36", { repository: "busybox", tag: "1.36" }],
    ["a sha256 digest is read", `busybox@sha256:${HEX}`, { repository: "busybox", digest: `sha256:${HEX}` }],
    [
      "a tag and a digest are both read",
      `reg.io:5000/a/b:v1@sha256:${HEX}`,
      { repository: "reg.io:5000/a/b", tag: "v1", digest: `sha256:${HEX}` },
    ],
    ["upper case is allowed in the host", "Reg.IO/a", { repository: "Reg.IO/a" }],
    ["an IPv6 address is allowed as the host", "[::1]:5000/a", { repository: "[::1]:5000/a" }],
    ["separators are allowed inside a component of the name", "a--b/c__d.e", { repository: "a--b/c__d.e" }],
    ["a port without a path is read as a tag", "reg:5000", { repository: "reg", tag: "5000" }],
    ["dashes are allowed in the host", "a--b.c-d/x", { repository: "a--b.c-d/x" }],
    ["a name may have several components", "a/b.c/d_e/f", { repository: "a/b.c/d_e/f" }],
    ["a tag of 128 characters is accepted", `a:${"t".repeat(128)}`, { repository: "a", tag: "t".repeat(128) }],
    ["a tag of 129 characters is refused", `a:${"t".repeat(129)}`, undefined],
    ["a tag may begin with an underscore", "a:_", { repository: "a", tag: "_" }],
    ["a tag may not begin with a point", "a:.", undefined],
    [
      "a sha384 digest is read",
      `a@sha384:${HEX}${HEX.slice(32)}`,
      { repository: "a", digest: `sha384:${HEX}${HEX.slice(32)}` },
    ],
    ["a sha512 digest is read", `a@sha512:${HEX}${HEX}`, { repository: "a", digest: `sha512:${HEX}${HEX}` }],
    ["a digest that is too long is refused", `a@sha256:${HEX}0`, undefined],
    ["a digest with a letter before sha256 is refused", `a@xsha256:${HEX}`, undefined],
    ["two digests are refused", `a@sha256:${HEX}@sha256:${HEX}`, undefined],
    ["a name of 64 hex digits is refused, because it looks like an image ID", HEX, undefined],
    ["a name of 65 hex digits is accepted", `${HEX}a`, { repository: `${HEX}a` }],
    ["a name of 255 characters is accepted", "a".repeat(255), { repository: "a".repeat(255) }],
    ["a name with three underscores is refused", "a___b", undefined],
    ["a name with two points is refused", "a..b", undefined],
    ["a name that ends in a dash is refused", "a-", undefined],
    ["a name that begins with a dash is refused", "-a", undefined],
    ["a host that ends in a dash is refused", "a-.b/c", undefined],
    ["an IPv6 host with other letters is refused", "[::g]/a", undefined],
    ["a space before the reference is refused", " a", undefined],
    ["a space after the reference is refused", "a ", undefined],
    ["upper case in the name is refused", "Busybox", undefined],
    ["an empty reference is refused", "", undefined],
    ["a short digest is refused", "busybox@sha256:abc", undefined],
    ["an unknown algorithm is refused", `busybox@md5:${HEX}`, undefined],
    ["upper case in a digest is refused", `busybox@sha256:${HEX.toUpperCase()}`, undefined],
    ["a name of more than 255 characters is refused", "a".repeat(256), undefined],
    ["a reference with a scheme is refused", "docker://busybox", undefined],
  ])("%s", (_, image, expected) => {
    expect(parseImageReference(image)).toStrictEqual(expected);
  });

  test("parseImageReference refuses long invalid texts in less than a second of CPU time", () => {
    const before = process.threadCpuUsage();
    for (const text of ["a-".repeat(50_000), "a/".repeat(50_000), "-".repeat(100_000), `${"a".repeat(500)}!`]) {
      expect(parseImageReference(text)).toBeUndefined();
    }
    expect(process.threadCpuUsage(before).user).toBeLessThan(1_000_000);
  });
});
