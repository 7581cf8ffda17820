/** Tests the texts of KubeErrors, and which KubeErrors are temporary. */
import { describe, expect, it } from "vitest";
import { about, isKubeError, isPassing, KubeError } from "../../shared/kube/error.ts";
import { errorOfStatus } from "../../shared/kube/failure.ts";

const REFUSED = { code: 429, reason: "TooManyRequests", retryAfterSeconds: 3 };

describe("KubeError:", () => {
  it.each([
    [0, false],
    [399, false],
    [400, true],
    [499, true],
    [500, false],
  ])("a KubeError with code %i has isOutcomeKnown %s", (code, isOutcomeKnown) => {
    expect(new KubeError("x", { code, reason: "Unknown" })).toMatchObject({ name: "KubeError", code, isOutcomeKnown });
  });

  it("a KubeError keeps a given isOutcomeKnown", () => {
    expect(new KubeError("x", { code: 0, reason: "NoCredentials", isOutcomeKnown: true }).isOutcomeKnown).toBe(true);
    expect(new KubeError("x", { code: 404, reason: "Unknown", isOutcomeKnown: false }).isOutcomeKnown).toBe(false);
  });

  it("a KubeError hides the secret path of a webhook URL in its message", () => {
    const message = `failed calling https://a/s/${"x".repeat(43)}/pods`;
    expect(new KubeError(message, { code: 500, reason: "InternalError" }).message).not.toContain("xxx");
  });

  it("about adds the subject to the message and keeps the other fields", () => {
    const cause = new KubeError("slow down", REFUSED);
    const error = about("pod shop/a", cause);
    expect(error).toMatchObject({ ...REFUSED, message: "pod shop/a: slow down", isOutcomeKnown: true, cause });
    const open = about("a", new KubeError("x", { code: 404, reason: "NotFound", isOutcomeKnown: false }));
    expect(open).toMatchObject({ isOutcomeKnown: false, retryAfterSeconds: undefined });
  });

  it("a KubeError keeps the causes of a Status and tolerates malformed causes", () => {
    const causes = [{ reason: "DisruptionBudget", message: "web needs 2 healthy pods" }, {}, null] as never;
    const error = about("pod shop/a", errorOfStatus({ code: 429, details: { causes } }, 429));
    const none = { reason: "", message: "" };
    expect(error.causes).toEqual([{ reason: "DisruptionBudget", message: "web needs 2 healthy pods" }, none, none]);
    expect(errorOfStatus({ details: { causes: "x" as never } }, 500).causes).toEqual([]);
  });

  it("errorOfStatus fills a KubeError from a Status and uses defaults for missing fields", () => {
    const status = { code: 429, reason: "TooManyRequests", message: "slow down", details: { retryAfterSeconds: 3 } };
    expect(errorOfStatus(status, 500)).toMatchObject({ ...REFUSED, message: "slow down" });
    const bare = errorOfStatus({}, 500);
    expect(bare).toMatchObject({ code: 500, reason: "Unknown", message: "the API server answered 500" });
    expect(bare.retryAfterSeconds).toBeUndefined();
  });

  it("isKubeError compares an error with the given codes", () => {
    const error = new KubeError("x", { code: 404, reason: "NotFound" });
    expect([isKubeError(error), isKubeError(error, 404), isKubeError(error, 409, 404)]).toEqual([true, true, true]);
    expect([isKubeError(error, 409), isKubeError(new Error("x")), isKubeError({ code: 404 }, 404)]).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe("isPassing:", () => {
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
  ])("isPassing for a KubeError with code %i and reason %s is %s", (code, reason, isExpected) => {
    expect(isPassing(new KubeError("x", { code, reason }))).toBe(isExpected);
  });

  it("isPassing is false for a value that is not a KubeError", () => {
    expect(isPassing(Object.assign(new Error("x"), { code: 503 }))).toBe(false);
    expect(isPassing(undefined)).toBe(false);
  });
});
