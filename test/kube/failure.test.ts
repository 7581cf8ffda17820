/** Tests that a failed request to an API server becomes one sentence with the place and the remedy. */
import { describe, expect, it } from "vitest";
import { KubeError } from "../../shared/kube/error.ts";
import { connectionFailure, refusal, timeoutFailure, unreadableAnswer } from "../../shared/kube/failure.ts";

const SERVER = "https://api.example:6443";
const attempt = (isSent = true) => ({ method: "GET", url: new URL(`${SERVER}/api/v1/pods?limit=5`), isSent });
const errorOf = (code: string) => Object.assign(new Error("as Node says it"), { code });

describe("connectionFailure:", () => {
  it.each([
    ["ECONNREFUSED", "ConnectionRefused", `nothing listens on ${SERVER}: check the server address`],
    ["ENOTFOUND", "NameNotFound", `the host name of ${SERVER} cannot be resolved`],
    ["EAI_AGAIN", "NameNotFound", `the host name of ${SERVER} cannot be resolved`],
    ["EHOSTUNREACH", "Unreachable", `${SERVER} cannot be reached: check routes`],
    ["ENETUNREACH", "Unreachable", `${SERVER} cannot be reached: check routes`],
    ["ETIMEDOUT", "Unreachable", `${SERVER} cannot be reached: check routes`],
    ["EPROTO", "NotTLS", `${SERVER} does not speak TLS as expected`],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "NotTLS", `${SERVER} does not speak TLS as expected`],
    ["HPE_INVALID_CONSTANT", "NotHTTP", `${SERVER} does not speak HTTP`],
    ["CERT_HAS_EXPIRED", "CertificateNotTrusted", `the certificate of ${SERVER} has expired: renew it`],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "CertificateNotTrusted", "is not for this host name"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "CertificateNotTrusted", "not signed by the certificate authority"],
    ["SELF_SIGNED_CERT_IN_CHAIN", "CertificateNotTrusted", "not signed by the certificate authority"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "CertificateNotTrusted", "not signed by the certificate authority"],
    ["UNABLE_TO_GET_ISSUER_CERT", "CertificateNotTrusted", "not signed by the certificate authority"],
    ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "CertificateNotTrusted", "not signed by the certificate authority"],
    ["CERT_SIGNATURE_FAILURE", "CertificateNotTrusted", "not signed by the certificate authority"],
    ["CERT_UNTRUSTED", "CertificateNotTrusted", "not signed by the certificate authority"],
    ["ERR_SSL_TLSV1_ALERT_BAD_CERTIFICATE", "TLS", `TLS with ${SERVER} failed (ERR_SSL_TLSV1_ALERT_BAD_CERTIFICATE)`],
    ["ERR_TLS_HANDSHAKE_TIMEOUT", "TLS", `TLS with ${SERVER} failed`],
    ["ERR_OSSL_PEM_NO_START_LINE", "TLS", `TLS with ${SERVER} failed`],
    ["ECONNRESET", "ConnectionReset", `${SERVER} closed the connection before it had answered`],
    ["EPIPE", "ConnectionReset", `${SERVER} closed the connection before it had answered`],
    ["EOTHER", "ConnectionFailed", `no answer from ${SERVER}: as Node says it`],
    ["EOTHER_ERR_SSL", "ConnectionFailed", `no answer from ${SERVER}: as Node says it`],
  ])("connectionFailure turns %s into the reason %s", (code, reason, sentence) => {
    const cause = errorOf(code);
    for (const one of [cause, new AggregateError([cause, errorOf("EPIPE")])]) {
      const error = connectionFailure(one, attempt());
      expect(error).toMatchObject({ code: 0, reason, isOutcomeKnown: false, cause: one });
      if (one === cause) expect(error.message).toContain(`GET /api/v1/pods: `);
      if (one === cause) expect(error.message).toContain(sentence);
    }
  });

  it.each([
    ["an Error without a code", new Error("hm"), "hm"],
    ["a string", "hm", "hm"],
    ["an object that is not an Error", { code: "EPIPE" }, "[object Object]"],
    ["an AggregateError without errors", new AggregateError([], "hm"), "hm"],
  ])("connectionFailure quotes %s", (_, cause, text) => {
    const error = connectionFailure(cause, attempt());
    expect([error.reason, error.message]).toEqual([
      "ConnectionFailed",
      `GET /api/v1/pods: no answer from ${SERVER}: ${text}`,
    ]);
  });

  it("a request that was not sent has a known outcome", () => {
    expect(connectionFailure(errorOf("EPIPE"), attempt(false)).isOutcomeKnown).toBe(true);
  });

  it("connectionFailure returns a KubeError unchanged", () => {
    const told = new KubeError("told", { code: 0, reason: "Timeout" });
    expect(connectionFailure(told, attempt())).toBe(told);
  });
});

it.each([
  [true, `GET /api/v1/pods: ${SERVER} did not answer within 50 ms`],
  [false, `GET /api/v1/pods: ${SERVER} did not accept a connection within 50 ms`],
])("timeoutFailure has an unknown outcome only when the request was sent (sent: %s)", (isSent, message) => {
  const error = timeoutFailure(attempt(isSent), 50);
  expect(error).toMatchObject({ code: 0, reason: "Timeout", isOutcomeKnown: !isSent, message });
});

it("an answer that cannot be read leaves the outcome of the request unknown", () => {
  const cause = new Error("cut");
  expect(unreadableAnswer(attempt(), 201, "ends in the middle", cause)).toMatchObject({
    code: 201,
    reason: "UnreadableAnswer",
    isOutcomeKnown: false,
    message: `GET /api/v1/pods: the answer of ${SERVER} ends in the middle`,
    cause,
  });
});

describe("refusal:", () => {
  const statusOf = (more: object) => JSON.stringify({ kind: "Status", ...more });

  it.each([
    [400, "BadRequest"],
    [401, "Unauthorized"],
    [403, "Forbidden"],
    [409, "Conflict"],
    [410, "Expired"],
    [413, "RequestEntityTooLarge"],
    [422, "Invalid"],
    [429, "TooManyRequests"],
    [500, "InternalError"],
    [503, "ServiceUnavailable"],
    [504, "Timeout"],
    [418, "Unknown"],
  ])("a refusal with code %i and without a Status has the reason %s", (code, reason) => {
    const error = refusal(attempt(), code, "no", undefined);
    expect(error).toMatchObject({ code, reason, retryAfterSeconds: undefined, isOutcomeKnown: code < 500 });
    expect(error.cause).toBe(`GET ${SERVER}/api/v1/pods?limit=5 answered ${code}`);
  });

  it.each([401, 404, 503])(
    "a denial of a webhook with code %i keeps the webhook's message, and its outcome is known",
    (code) => {
      const message = 'admission webhook "w.shop" denied the request: no';
      const error = refusal(attempt(), code, statusOf({ message, code }), undefined);
      expect(error).toMatchObject({ message, code, isOutcomeKnown: true });
    },
  );

  const at = (path: string) => ({ method: "GET", url: new URL(`${SERVER}${path}`), isSent: true });
  const PLAIN = "404 page not found\n";

  it.each([
    "/apis/apps.kruise.io/v1beta1",
    "/apis/apps.kruise.io/v1beta1/sidecarsets?limit=5",
    "/apis/apps.kruise.io/v1beta1/namespaces/shop/statefulsets",
    "/k8s/clusters/c-1/apis/apps.kruise.io/v1beta1/sidecarsets",
  ])("a 404 for a group that is not served names the path %s", (path) => {
    expect(refusal(at(path), 404, PLAIN, undefined)).toMatchObject({
      code: 404,
      reason: "NotFound",
      message: `${SERVER} does not know ${path.split("?")[0]}: is the custom resource definition installed?`,
    });
  });

  // A wrong NotFound would release a reservation or empty a ledger.
  it.each([
    "/api/v1/pods",
    "/api/v1/namespaces/shop/pods/web-0",
    "/api/v1/namespaces/shop/pods/web-0/resize",
    "/apis/apps/v1/namespaces/kruise-system/controllerrevisions/r-1",
    "/apis/coordination.k8s.io/v1/namespaces/kruise-system/leases/l",
    "/apis/apps.kruise.io/v1beta1/sidecarsets/log-agent",
    "/apis/apps.kruise.io/v1beta1/sidecarsets/log-agent/status",
    "/apis/apps.kruise.io/v1beta1/namespaces/shop/statefulsets/db",
    "/k8s/clusters/c-1/api/v1/namespaces/shop/pods/web-0",
  ])("a 404 page of a Go proxy for %s does not mean NotFound", (path) => {
    const error = refusal(at(path), 404, PLAIN, undefined);
    expect(error).toMatchObject({ code: 502, isOutcomeKnown: false });
    expect(error.message).toContain("proxy or load balancer");
  });

  it("a 404 in a Status comes from the API server, even with the text of a Go proxy", () => {
    const status = statusOf({ code: 404, message: "404 page not found" });
    expect(refusal(attempt(), 404, status, undefined).message).toContain("does not know /api/v1/pods");
    const quoted = "no 404 page not found";
    expect(refusal(attempt(), 404, statusOf({ code: 404, message: quoted }), undefined).message).toBe(quoted);
    expect(refusal(attempt(), 403, "404 page not found", undefined).message).toBe("404 page not found");
  });

  it("a refusal takes code and reason from its Status rather than from the HTTP code", () => {
    const status = { kind: "Status", code: 409, reason: "Conflict", message: "changed" };
    const error = refusal(attempt(), 500, JSON.stringify(status), undefined);
    expect(error).toMatchObject({ code: 409, reason: "Conflict", message: "changed", cause: status });
  });

  it.each([
    ["null", "null"],
    ["a string", '"Status"'],
    ["a list", "[]"],
    ["an object of another kind", '{"kind":"Pod"}'],
    ["an object without a kind", '{"message":"odd"}'],
    ["an object whose kind is in lower case", '{"kind":"status","message":"odd"}'],
  ])("a refusal whose body is %s has no Status and shows the body", (_, body) => {
    expect(refusal(attempt(), 409, body, undefined)).toMatchObject({ reason: "Conflict", message: body });
  });

  it("a refusal says that the body is empty, cuts a long body and prints it on one line", () => {
    const said = (body: string) => refusal(attempt(), 403, body, undefined).message;
    expect(said("")).toBe(`GET /api/v1/pods: ${SERVER} answered 403 without a reason`);
    expect(said(" a\n \t b ")).toBe("a b");
    expect(said("x".repeat(200))).toBe("x".repeat(200));
    expect(said("x".repeat(201))).toBe(`${"x".repeat(200)}…`);
  });

  it("a 404 of a proxy quotes the body", () => {
    const said = (body: string) => refusal(attempt(), 404, body, undefined);
    expect(said("<html> lost </html>")).toMatchObject({ code: 502, reason: "UnreadableAnswer" });
    expect(said("<html> lost </html>").message).toMatch(/ definition missing\? <html> lost <\/html>$/);
    expect(said("").message).toMatch(/ definition missing\? nothing$/);
  });

  it.each([
    ["5", 5],
    ["123456", 123_456],
    ["1234567", undefined],
    ["Wed, 21 Oct 2026 07:28:00 GMT", undefined],
    ["5 s", undefined],
    ["in 5", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("a refusal with the Retry-After header %s has %s retryAfterSeconds", (header, seconds) => {
    expect(refusal(attempt(), 429, "slow down", header).retryAfterSeconds).toBe(seconds);
  });

  it("a refusal quotes 20 causes", () => {
    const causes = Array.from({ length: 30 }, () => ({ reason: "a", message: "b" }));
    expect(refusal(attempt(), 403, statusOf({ details: { causes } }), undefined).causes).toHaveLength(20);
  });

  it.each(["", "x".repeat(300), '\\"\u00e9 '.repeat(50), "[".repeat(300)])(
    "a denial that is cut anywhere keeps the webhook's message and its known outcome: %o",
    (text) => {
      const message = `admission webhook "a.b" denied the request: ${text}`;
      const head = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure" };
      const body = JSON.stringify({ ...head, message, reason: "x", code: 503 });
      const begun = body.indexOf("request: ") + "request: ".length;
      for (let end = begun; end < body.length; end++) {
        const { message: said, isOutcomeKnown } = refusal(attempt(), 503, body.slice(0, end), undefined);
        expect([isOutcomeKnown, message.startsWith(said)]).toEqual([true, true]);
      }
    },
  );

  it.each([
    { message: 5, code: "x", reason: {}, details: 7 },
    { message: ["a"], code: 1.5, reason: null, details: { causes: {}, retryAfterSeconds: "soon" } },
  ])("a Status with members of wrong types is read without them: %o", (members) => {
    const error = refusal(attempt(), 409, JSON.stringify({ kind: "Status", ...members }), undefined);
    expect(error).toMatchObject({ code: 409, reason: "Conflict", causes: [] });
    expect(error.retryAfterSeconds).toBeUndefined();
  });

  it("a refusal prefers the retryAfterSeconds of its Status to the Retry-After header", () => {
    const status = statusOf({ code: 429, details: { retryAfterSeconds: 7 } });
    expect(refusal(attempt(), 429, status, "5").retryAfterSeconds).toBe(7);
    expect(refusal(attempt(), 429, statusOf({ code: 429, details: {} }), "5").retryAfterSeconds).toBe(5);
  });
});
