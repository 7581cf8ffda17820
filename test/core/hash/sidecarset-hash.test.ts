import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SidecarContainer, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import {
  hashInput,
  sidecarSetHash,
  sidecarSetHashWithoutImage,
} from "../../../shared/core/sidecarset/hash/sidecarset-hash.ts";
import { safeEncode } from "../../../shared/go/safe-text.ts";
import { decodeGo } from "../../../shared/go/types/decode-go.ts";
import { SIDECAR_SET_SPEC } from "../../../shared/go/types/sidecarset.ts";

function typed(spec: unknown): SidecarSetSpec {
  const decoded = decodeGo(SIDECAR_SET_SPEC, spec);
  if (decoded.kind === "DecodeError") throw new Error(decoded.message);
  return decoded.value;
}

const NATIVE: SidecarContainer = { name: "native", image: "n:1", restartPolicy: "Always" };
const PLAIN: SidecarContainer = { name: "plain", image: "p:1" };
const SIDECAR: SidecarContainer = { name: "c", image: "c:1" };

describe("hashInput:", () => {
  it("the hash input leaves out init containers if none is a native sidecar", () => {
    expect(hashInput({ containers: [SIDECAR], initContainers: [PLAIN] })).toBe(hashInput({ containers: [SIDECAR] }));
  });

  it("the hash input has every init container if one is a native sidecar", () => {
    expect(hashInput({ initContainers: [PLAIN, NATIVE] })).toBe(
      '{"containers":null,"initContainers":[{"name":"plain","image":"p:1"},{"name":"native","image":"n:1","restartPolicy":"Always"}]}',
    );
  });
});

describe("the hashes of a SidecarSet:", () => {
  it("a change of images changes the hash, but not the hash without images", () => {
    const before = { containers: [SIDECAR], initContainers: [NATIVE, PLAIN] };
    const after = { containers: [{ ...SIDECAR, image: "c:2" }], initContainers: [NATIVE, { ...PLAIN, image: "p:2" }] };
    expect(sidecarSetHashWithoutImage(after)).toBe(sidecarSetHashWithoutImage(before));
    expect(sidecarSetHash(after)).not.toBe(sidecarSetHash(before));
  });

  it("a change of hotUpgradeEmptyImage changes the hash without images", () => {
    const slot = (image: string): SidecarContainer => ({
      ...SIDECAR,
      upgradeStrategy: { hotUpgradeEmptyImage: image },
    });
    expect(sidecarSetHashWithoutImage({ containers: [slot("e:1")] })).not.toBe(
      sidecarSetHashWithoutImage({ containers: [slot("e:2")] }),
    );
  });

  const member = fc.constantFrom("args", "command", "image", "stdin", "tty", "workingDir", "restartPolicy", "unknown");
  const VALUES = {
    args: ["<a>"],
    command: ["sh"],
    image: "c:2",
    stdin: true,
    tty: false,
    workingDir: "/",
    restartPolicy: "Always",
    unknown: 1,
  };

  it("the order of keys and unknown keys do not change the hashes", () => {
    fc.assert(
      fc.property(fc.uniqueArray(member), (names) => {
        const container = (keys: readonly (keyof typeof VALUES)[]): object => ({
          name: "c",
          ...Object.fromEntries(keys.map((key) => [key, VALUES[key]])),
        });
        const one = typed({ containers: [container(names)], initContainers: [container(names)] });
        const reversed = container([...names].reverse().filter((name) => name !== "unknown"));
        const other = typed({ initContainers: [reversed], containers: [reversed] });
        expect(sidecarSetHash(other)).toBe(sidecarSetHash(one));
        expect(sidecarSetHashWithoutImage(other)).toBe(sidecarSetHashWithoutImage(one));
      }),
      { numRuns: 2000 },
    );
  });
});

describe("safeEncode:", () => {
  it("safeEncode encodes the hexadecimal digits like OpenKruise", () => {
    expect(safeEncode("0123456789abcdef")).toBe("456789bcdfvwxz24");
  });
});
