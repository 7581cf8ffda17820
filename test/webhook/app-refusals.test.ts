/** Tests the answers of webhookApp to its callers, and its log. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLog } from "../../shared/log.ts";
import { answerConversions } from "../../shared/webhook/handlers/sidecarset-conversion.ts";
import { type WebhookOptions, webhookApp } from "../../shared/webhook/review/app.ts";
import type { HttpRequest } from "../../shared/webhook/server/http.ts";

let lines: string[];
beforeEach(() => {
  lines = [];
});
afterEach(() => {
  vi.useRealTimers();
});

function open(options: Partial<WebhookOptions> = {}) {
  return webhookApp({
    log: createLog("info", (line) => lines.push(line)),
    isKnown: () => true,
    admissions: {
      "/allow": () => ({ kind: "allowed" }),
      "/deny": () => ({ kind: "denied", code: 422, reason: "Invalid", message: "no good" }),
      "/throw": () => {
        throw new Error("out of order");
      },
      "/hang": () => new Promise(() => undefined),
      "/change": ({ object }) => ({
        kind: "allowed",
        object: { ...object, metadata: { name: "a", labels: { a: "b" } }, kind: "Y" },
      }),
    },
    conversions: { "/convert": answerConversions(({ objects }) => objects) },
    ...options,
  });
}

async function ask(app: ReturnType<typeof open>, request: Partial<HttpRequest> = {}) {
  const { status, headers, body } = await app({
    method: "GET",
    path: "/",
    query: "",
    headers: { "content-type": "application/json" },
    readBody: async () => "",
    ...request,
  });
  return { status, headers, body: body.startsWith("{") ? (JSON.parse(body) as object) : body };
}

const logged = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);

function review(more: object = {}) {
  const request = {
    uid: "uid-1",
    operation: "CREATE",
    resource: { group: "", version: "v1", resource: "pods" },
    namespace: "shop",
    name: "web",
    object: { kind: "X", metadata: { name: "a", annotations: { a: "b" } } },
    ...more,
  };
  const body = JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
  return { method: "POST", readBody: async () => body };
}

function conversion(...objects: readonly object[]) {
  const request = { uid: "uid-2", desiredAPIVersion: "apps.kruise.io/v1beta1", objects };
  const body = JSON.stringify({ apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview", request });
  return { method: "POST", path: "/convert", readBody: async () => body };
}

test.each([
  ["/allow", "admission"],
  ["/convert", "conversion"],
  ["/s/secret/convert", "conversion"],
  ["/elsewhere", "admission"],
])("a request for %s has to prove the right to the purpose %s", async (path, purpose) => {
  const asked: unknown[] = [];
  const app = open({ isKnown: (...[, , wanted]) => asked.push(wanted) > 0 });
  await ask(app, { path });
  expect(asked).toEqual([purpose]);
});

test("a stranger is refused with a message, and the log counts refused requests", async () => {
  const app = open({ isKnown: () => false });
  const { status, headers, body } = await ask(app, { path: "/allow", ...review() });
  expect([status, headers["connection"]]).toEqual([401, "close"]);
  expect(body).toMatchObject({ kind: "Status", code: 401, reason: "Unauthorized" });
  expect(body).toHaveProperty("message", expect.stringContaining("docs/authentication.md"));
  await ask(app, { path: "/allow", ...review() });
  const message = "request refused: the caller is not known";
  expect(logged()).toMatchObject([{ level: "warn", message, code: 401, requests: 1, refusedPath: "/allow" }]);
});

test.each([
  ["at the path of a webhook", "/s/old/allow", {}, "/allow"],
  ["at another path", "/elsewhere", {}, undefined],
  ["by our own probe", "/allow", { headers: { "user-agent": "sidecarset-check" } }, undefined],
  ["by GET", "/allow", { method: "GET" }, undefined],
])("the log of a refused request %s (%s) has a path only if an API server may have sent it", async (...given) => {
  const [, path, changed, refusedPath] = given;
  await ask(open({ isKnown: () => false }), { path, ...review(), ...changed });
  expect(logged()).toMatchObject([{ level: "warn", code: 401, requests: 1 }]);
  expect((logged()[0] as { readonly refusedPath?: string }).refusedPath).toBe(refusedPath);
});

test.each<[string, WebhookOptions["isKnown"]]>([
  ["rejects", () => Promise.reject(new Error("no secrets"))],
  [
    "throws",
    () => {
      throw new Error("no secrets");
    },
  ],
])("a caller gets 503 without a reason when isKnown %s, and the log has the reason", async (...[, is]) => {
  const { status, body } = await ask(open({ isKnown: is }), { path: "/allow", ...review() });
  expect(status).toBe(503);
  expect(body).toMatchObject({
    code: 503,
    reason: "ServiceUnavailable",
    message: "callers cannot be told from strangers now, the log says why",
  });
  expect(logged()).toMatchObject([
    {
      level: "error",
      message: "callers cannot be told from strangers",
      requests: 1,
      error: { message: "no secrets" },
    },
  ]);
});

test.each([
  ["GET", "/healthz", false, 200],
  ["HEAD", "/healthz", false, 200],
  ["POST", "/healthz", false, 401],
  ["GET", "/readyz", false, 401],
  ["GET", "/readyz", true, 200],
  ["HEAD", "/readyz", true, 200],
  ["POST", "/readyz", true, 401],
  ["GET", "/allow", true, 401],
])(
  "a stranger's %s of %s gets the right status when open readiness is %s: %i",
  async (method, path, isReadinessOpen, code) => {
    const { status, body } = await ask(open({ isKnown: () => false, isReadinessOpen }), { method, path });
    expect(status).toBe(code);
    if (code === 200) expect(body).toBe("ok");
  },
);

test.each([
  ["GET", "/s/secret/healthz", "ok"],
  ["HEAD", "/s/secret/healthz", "ok"],
  ["GET", "/readyz", "ok"],
  ["HEAD", "/s/secret/readyz", "ok"],
  ["POST", "/healthz", { code: 404, reason: "NotFound", message: "there is no webhook at /healthz" }],
  ["POST", "/readyz", { code: 404, reason: "NotFound", message: "there is no webhook at /readyz" }],
  ["GET", "/s/secret/other", { code: 404, reason: "NotFound", message: "there is no webhook at /other" }],
  ["PUT", "/allow", { code: 405, reason: "MethodNotAllowed", message: "PUT is not allowed at /allow, expected POST" }],
])("a known caller's %s of %s gets the right answer", async (method, path, expected) => {
  const { status, body } = await ask(open(), { method, path });
  expect(status).toBe(typeof expected === "string" ? 200 : expected.code);
  if (typeof expected === "string") expect(body).toBe(expected);
  else expect(body).toMatchObject(expected);
});

test("a known caller sees why the webhook is not ready, and a stranger does not", async () => {
  const checkReady = () => Promise.reject(new Error("nobody listens"));
  const probe = async (isKnown: boolean) => {
    const { status, body } = await ask(open({ isKnown: () => isKnown, isReadinessOpen: !isKnown, checkReady }), {
      path: "/readyz",
    });
    return [status, body];
  };
  expect(await probe(false)).toEqual([503, "not ready, the log says why"]);
  expect(await probe(true)).toEqual([503, "nobody listens"]);
});

test("a body that is too large is refused with its limit and logged", async () => {
  const { body } = await ask(open(), { method: "POST", path: "/s/secret/allow", readBody: async () => undefined });
  const message = "the body is too large, the limit is 20971520 bytes";
  expect(body).toMatchObject({ code: 413, reason: "RequestEntityTooLarge", message });
  expect(logged()).toMatchObject([
    { level: "warn", message: "request refused", path: "/allow", code: 413, error: message },
  ]);
});

test("a body that cannot be read is an internal error", async () => {
  const readBody = () => Promise.reject(new Error("the line is cut"));
  const { status, headers, body } = await ask(open(), { method: "POST", path: "/allow", readBody });
  expect([status, headers["connection"]]).toEqual([500, "close"]);
  expect(body).toMatchObject({ code: 500, reason: "InternalError", message: "the line is cut" });
  expect(logged()).toMatchObject([
    { level: "error", message: "request failed", path: "/allow", error: { message: "the line is cut" } },
  ]);
});

test("a failed decision is logged with the object that it was about", async () => {
  await ask(open(), { path: "/throw", ...review() });
  const about = { path: "/throw", uid: "uid-1", operation: "CREATE", resource: "pods", namespace: "shop", name: "web" };
  expect(logged()).toMatchObject([
    { level: "error", message: "request failed", ...about, error: { message: "out of order" } },
  ]);
});

test("a change is logged with the length of its patch and its duration", async () => {
  const began = performance.now();
  const { body } = await ask(open(), { path: "/change", ...review() });
  const tookMs = Math.ceil(performance.now() - began);
  const { patch } = (body as { readonly response: { readonly patch: string } }).response;
  expect(JSON.parse(Buffer.from(patch, "base64").toString())).toEqual([
    { op: "replace", path: "/kind", value: "Y" },
    { op: "remove", path: "/metadata/annotations" },
    { op: "add", path: "/metadata/labels", value: { a: "b" } },
  ]);
  const [line] = logged();
  expect(line).toMatchObject({ message: "admission", allowed: true, patchBytes: patch.length });
  expect(line?.["ms"]).toBeLessThanOrEqual(tookMs);
});

test.each([
  [true, true],
  [false, undefined],
  [undefined, undefined],
])("the log entry of a request with dryRun %s has dryRun %s", async (dryRun, said) => {
  await ask(open(), { path: "/deny", ...review({ dryRun }) });
  const [line] = logged();
  expect(line).toMatchObject({ allowed: false, code: 422, denial: "no good", patchBytes: 0 });
  expect(line?.["dryRun"]).toBe(said);
});

test("a denial without field errors has no details", async () => {
  const { body } = await ask(open(), { path: "/deny", ...review() });
  const status = { status: "Failure", code: 422, reason: "Invalid", message: "no good" };
  expect(body).toHaveProperty("response", { uid: "uid-1", allowed: false, status });
});

const many = { list: Array(20_001).fill(null) };

test("an object with too many values is refused before the decision", async () => {
  const { status, body } = await ask(open(), { path: "/throw", ...review({ object: many }) });
  expect(status).toBe(200);
  const message = "the object has more than 20000 values";
  const refused = { status: "Failure", code: 413, reason: "RequestEntityTooLarge", message };
  expect(body).toHaveProperty("response", { uid: "uid-1", allowed: false, status: refused });
});

test.each([
  ["8", "7200"],
  ["12", "10800"],
  ["30", "27000"],
  ["100", "9000"],
])("a request with a timeout of %s seconds fails after %s ms without a decision", async (...[seconds, ms]) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  let answered = "";
  const answering = ask(open(), { path: "/hang", query: `timeout=${seconds}s`, ...review() }).then(({ body }) => {
    answered = JSON.stringify(body);
  });
  await vi.advanceTimersByTimeAsync(Number(ms) - 1);
  expect(answered).toBe("");
  await vi.advanceTimersByTimeAsync(1);
  await answering;
  expect(answered).toContain(`there is no decision after ${ms} ms`);
});

test("a conversion is logged", async () => {
  await ask(open(), conversion({ kind: "SidecarSet" }, { kind: "SidecarSet" }));
  const about = { uid: "uid-2", desiredAPIVersion: "apps.kruise.io/v1beta1", objects: 2 };
  expect(logged()).toMatchObject([{ level: "info", message: "conversion", ...about }]);
});

test("one object with too many values fails the whole conversion", async () => {
  const { status, body } = await ask(open(), conversion({ kind: "SidecarSet" }, many));
  expect(status).toBe(200);
  const message = "the object has more than 20000 values";
  expect(body).toHaveProperty("response", {
    uid: "uid-2",
    convertedObjects: [],
    result: { status: "Failure", message },
  });
  expect(logged()).toMatchObject([{ level: "error", message: "request failed", path: "/convert", error: { message } }]);
});

test.each([
  [undefined, "is missing"],
  ["", "is missing"],
  ["text/plain", "is text/plain"],
])("the content type %j is refused because it %s", async (type, given) => {
  const { body } = await ask(open(), { path: "/allow", ...review(), headers: { "content-type": type } });
  const message = `the content type ${given}, expected application/json`;
  expect(body).toMatchObject({ code: 415, reason: "UnsupportedMediaType", message });
});

test("a content type may have spaces around it", async () => {
  const headers = { "content-type": " application/json ; charset=utf-8" };
  expect((await ask(open(), { path: "/allow", ...review(), headers })).status).toBe(200);
});
