import { describe, expect, it } from "vitest";
import { revisionHash } from "../../../shared/core/sidecarset/hash/sidecarset-hash.ts";

describe("revisionHash:", () => {
  it("the hash of an empty string is the FNV offset basis 2166136261", () =>
    expect(revisionHash("", undefined)).toBe("65bb57b6b5"));

  it("a collision count of 0 gives another hash than no collision count", () => {
    expect(revisionHash("{}", 0)).toBe(revisionHash("{}0", undefined));
    expect(revisionHash("{}", 0)).not.toBe(revisionHash("{}", undefined));
  });

  it("revisionHash hashes UTF-8 bytes, not characters", () =>
    expect(revisionHash("é", undefined)).not.toBe(revisionHash("\u00c3", undefined)));
});
