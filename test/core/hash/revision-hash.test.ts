import { describe, expect, it } from "vitest";
import { revisionHash } from "../../../shared/core/sidecarset/hash/revision-hash.ts";

describe("revisionHash", () => {
  it("hashes nothing to FNV's offset basis, 2166136261", () => expect(revisionHash("", undefined)).toBe("65bb57b6b5"));

  it("tells a collision count of 0 from none", () => {
    expect(revisionHash("{}", 0)).toBe(revisionHash("{}0", undefined));
    expect(revisionHash("{}", 0)).not.toBe(revisionHash("{}", undefined));
  });

  it("hashes bytes, not characters", () =>
    expect(revisionHash("é", undefined)).not.toBe(revisionHash("\u00c3", undefined)));
});
