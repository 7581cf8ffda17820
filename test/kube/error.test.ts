/** What a KubeError says of itself, and which of them may be over a little later. */
import { describe, expect, it } from "vitest";
import { about, isKubeError, isPassing, KubeError } from "../../shared/kube/error.ts";

const REFUSED = { code: 429, reason: "TooManyRequests", retryAfterSeconds: 3 };

describe("a KubeError", () => {
  it.each([
    [0, false],
    [399, false],
    [400, true],
    [499, true],
    [500, false],
  ])("with code %i says whether the request was carried out: %s", (code, isOutcomeKnown) => {
    expect(new KubeError("x", { code, reason: "Unknown" })).toMatchObject({ name: "KubeError", code, isOutcomeKnown });
  });

  it("knows better when it is told", () => {
    expect(new KubeError("x", { code: 0, reason: "NoCredentials", isOutcomeKnown: true }).isOutcomeKnown).toBe(true);
    expect(new KubeError("x", { code: 404, reason: "Unknown", isOutcomeKnown: false }).isOutcomeKnown).toBe(false);
  });

  it("hides the secret path of a webhook that its message quotes", () => {
    const message = `failed calling https://a/s/${"x".repeat(43)}/pods`;
    expect(new KubeError(message, { code: 500, reason: "InternalError" }).message).not.toContain("xxx");
  });

  it("says what it concerns, and is the same otherwise", () => {
    const cause = new KubeError("slow down", REFUSED);
    const error = about("pod shop/a", cause);
    expect(error).toMatchObject({ ...REFUSED, message: "pod shop/a: slow down", isOutcomeKnown: true, cause });
    const open = about("a", new KubeError("x", { code: 404, reason: "NotFound", isOutcomeKnown: false }));
    expect(open).toMatchObject({ isOutcomeKnown: false, retryAfterSeconds: undefined });
  });

  it("keeps the causes that a Status names, whatever else stands there", () => {
    const causes = [{ reason: "DisruptionBudget", message: "web needs 2 healthy pods" }, {}, null] as never;
    const error = about("pod shop/a", KubeError.fromStatus({ code: 429, details: { causes } }, 429));
    const none = { reason: "", message: "" };
    expect(error.causes).toEqual([{ reason: "DisruptionBudget", message: "web needs 2 healthy pods" }, none, none]);
    expect(KubeError.fromStatus({ details: { causes: "x" as never } }, 500).causes).toEqual([]);
  });

  it("is made of a Status, as far as that goes", () => {
    const status = { code: 429, reason: "TooManyRequests", message: "slow down", details: { retryAfterSeconds: 3 } };
    expect(KubeError.fromStatus(status, 500)).toMatchObject({ ...REFUSED, message: "slow down" });
    const bare = KubeError.fromStatus({}, 500);
    expect(bare).toMatchObject({ code: 500, reason: "Unknown", message: "the API server answered 500" });
    expect(bare.retryAfterSeconds).toBeUndefined();
  });

  it("is told by its codes", () => {
    const error = new KubeError("x", { code: 404, reason: "NotFound" });
    expect([isKubeError(error), isKubeError(error, 404), isKubeError(error, 409, 404)]).toEqual([true, true, true]);
    expect([isKubeError(error, 409), isKubeError(new Error("x")), isKubeError({ code: 404 }, 404)]).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe("it may go well a little later", () => {
  it.each([
    [429, "TooManyRequests", true],
    [499, "Unknown", false],
    [500, "InternalError", true],
    [503, "ServiceUnavailable", true],
    [409, "Conflict", false],
    [200, "UnreadableAnswer", true],
    [0, "ConnectionFailed", true],
    [0, "ConnectionRefused", true],
    [0, "ConnectionReset", true],
    [0, "StaleList", true],
    [0, "Timeout", true],
    [0, "Unreachable", true],
    [0, "NameNotFound", false],
    [0, "CertificateNotTrusted", false],
    [0, "NoCredentials", false],
  ])("%i %s: %s", (code, reason, isExpected) => {
    expect(isPassing(new KubeError("x", { code, reason }))).toBe(isExpected);
  });

  it("nothing but a KubeError", () => {
    expect(isPassing(Object.assign(new Error("x"), { code: 503 }))).toBe(false);
    expect(isPassing(undefined)).toBe(false);
  });
});
