import { setTimeout as sleep } from "node:timers/promises";
import fastJsonPatch from "fast-json-patch";
import { describe, expect, test } from "vitest";
import type { AdmissionRequest, AdmissionReview, ConversionReview } from "../../shared/api/admission.ts";
import { invalid, required } from "../../shared/go/field-error.ts";
import { createLog } from "../../shared/log.ts";
import { answerConversions } from "../../shared/webhook/handlers/sidecarset-conversion.ts";
import { type Admit, webhookApp } from "../../shared/webhook/review/app.ts";

const lines: string[] = [];
const log = createLog("info", (line) => lines.push(line));

const admissions: Record<string, Admit> = {
  "/allow": () => ({ kind: "allowed" }),
  "/same": (request) => ({ kind: "allowed", object: structuredClone(request.object ?? {}) }),
  "/label": ({ object }) => ({
    kind: "allowed",
    object: { ...object, metadata: { ...object?.metadata, labels: { a: "b" } } },
    warnings: ["a warning"],
  }),
  "/deny": () => ({
    kind: "denied",
    code: 422,
    reason: "Invalid",
    message: "no good",
    errors: [required("spec.selector", "no selector"), invalid("spec.containers[0].name", "A", "must be lower case")],
  }),
  "/throw": () => {
    throw new Error("out of order");
  },
  "/reject": () => Promise.reject(new Error("out of order")),
  "/hang": () => new Promise(() => undefined),
};
let readiness: () => Promise<unknown> = () => Promise.resolve();
const answer = webhookApp({
  log,
  isKnown: async () => true,
  admissions,
  conversions: {
    "/convert": answerConversions(({ objects }) => {
      if (objects.length === 0) throw new Error("nothing to convert");
      return objects.map((object) => ({ ...object, apiVersion: "apps.kruise.io/v1beta1" }));
    }),
  },
  checkReady: () => readiness(),
});

const request: AdmissionRequest = {
  uid: "uid-1",
  kind: { group: "apps.kruise.io", version: "v1beta1", kind: "SidecarSet" },
  resource: { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" },
  operation: "CREATE",
  name: "logs",
  object: { apiVersion: "v1", kind: "X", metadata: { name: "logs" } },
};
const review = (more: object = {}) => ({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request,
  ...more,
});

/** The app behind fetch's types. */
const app = {
  request: async (url: string, init: RequestInit = {}) => {
    const { method, headers, body } = new Request(`https://x${url}`, { ...init, body: null });
    const [path = "", query = ""] = url.split("?");
    const text = typeof init.body === "string" ? init.body : "";
    const readBody = async (maxBytes: number) => (Buffer.byteLength(text) > maxBytes ? undefined : text);
    const { status, ...rest } = await answer({ method, path, query, headers: Object.fromEntries(headers), readBody });
    expect(body).toBeNull();
    return new Response(rest.body, { status, headers: rest.headers });
  },
};

function post(path: string, body: unknown, headers: Record<string, string> = { "content-type": "application/json" }) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return app.request(path, { method: "POST", headers, body: text });
}

async function answered(path: string, body: unknown = review()) {
  const response = await post(path, body);
  expect(response.status).toBe(200);
  const answer = (await response.json()) as AdmissionReview;
  expect(answer.kind).toBe("AdmissionReview");
  if (answer.response === undefined) throw new Error("no response");
  return { ...answer, response: answer.response };
}

describe("an admission:", () => {
  test.each(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])(
    "an admission in %s is answered in that version and with its uid",
    async (apiVersion) => {
      const answer = await answered("/allow", review({ apiVersion }));
      expect(answer).toEqual({ apiVersion, kind: "AdmissionReview", response: { uid: "uid-1", allowed: true } });
    },
  );

  test("an unchanged object gets no patch", async () => {
    expect((await answered("/same")).response).toEqual({ uid: "uid-1", allowed: true });
  });

  test("a changed object gets a base64 patch that leads to it, and the warnings", async () => {
    const { response } = await answered("/label");
    const patch = JSON.parse(Buffer.from(response.patch ?? "", "base64").toString());
    expect(patch).toEqual([{ op: "add", path: "/metadata/labels", value: { a: "b" } }]);
    expect(fastJsonPatch.applyPatch(structuredClone(request.object), patch).newDocument).toEqual({
      ...request.object,
      metadata: { name: "logs", labels: { a: "b" } },
    });
    expect(response).toMatchObject({ allowed: true, patchType: "JSONPatch", warnings: ["a warning"] });
  });

  test("an integer beyond 2^53 elsewhere in the object is not in the patch", async () => {
    const body = JSON.stringify(review()).replace('"kind":"X"', '"kind":"X","big":9007199254740993');
    const { response } = await answered("/label", body);
    expect(Buffer.from(response.patch ?? "", "base64").toString()).not.toContain("900719925474099");
  });

  test("a denial has a Status with the field errors as causes", async () => {
    expect((await answered("/deny")).response).toEqual({
      uid: "uid-1",
      allowed: false,
      status: {
        status: "Failure",
        code: 422,
        reason: "Invalid",
        message: "no good",
        details: {
          name: "logs",
          group: "apps.kruise.io",
          kind: "SidecarSet",
          causes: [
            { reason: "FieldValueRequired", message: "Required value: no selector", field: "spec.selector" },
            {
              reason: "FieldValueInvalid",
              message: 'Invalid value: "A": must be lower case',
              field: "spec.containers[0].name",
            },
          ],
        },
      },
    });
  });

  test.each(["/throw", "/reject"])(
    "an error of the decision at %s gets status 500, so that failurePolicy decides",
    async (path) => {
      const response = await post(path, review());
      expect(response.status).toBe(500);
      expect(await response.json()).toEqual({
        apiVersion: "v1",
        kind: "Status",
        status: "Failure",
        code: 500,
        reason: "InternalError",
        message: "out of order",
      });
    },
  );

  test("a decision that never ends fails before the API server's timeout", async () => {
    const response = await post("/hang?timeout=1s", review());
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ kind: "Status", message: "there is no decision after 900 ms" });
  });

  test("each admission is one line in the log", async () => {
    lines.length = 0;
    await answered("/deny");
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { level: "info", message: "admission", path: "/deny", uid: "uid-1", name: "logs", allowed: false, code: 422 },
    ]);
  });
});

describe("refused requests:", () => {
  const json = { "content-type": "application/json" };
  const without = (field: string) => review({ request: { ...request, [field]: undefined } });
  test.each<[string, number, unknown, Record<string, string>, string]>([
    [
      "another content type",
      415,
      review(),
      { "content-type": "text/plain" },
      "the content type is text/plain, expected application/json",
    ],
    ["no body", 400, "", json, "the request has no body, expected a review in JSON"],
    ["a body that is not JSON", 400, "{", json, "the body is not JSON"],
    ["deeply nested brackets", 400, "[".repeat(100_000), json, "the body is not JSON"],
    ["null as its body", 400, "null", json, "the body is not a JSON object, expected a review"],
    ["a JSON array as its body", 400, "[]", json, "the body is not a JSON object, expected a review"],
    [
      "an unknown kind of review",
      400,
      review({ kind: "TokenReview" }),
      json,
      'kind "TokenReview", expected a AdmissionReview',
    ],
    ["no kind", 400, review({ kind: undefined }), json, "expected a AdmissionReview"],
    [
      "an unknown version of the review",
      400,
      review({ apiVersion: "admission.k8s.io/v2" }),
      json,
      'apiVersion "admission.k8s.io/v2"',
    ],
    ["no request in the review", 400, review({ request: undefined }), json, "the AdmissionReview has no request"],
    ["a string as the review's request", 400, review({ request: "x" }), json, "the AdmissionReview has no request"],
    ["no uid", 400, without("uid"), json, "the AdmissionReview has no request.uid"],
    ["an empty uid", 400, review({ request: { ...request, uid: "" } }), json, "the AdmissionReview has no request.uid"],
    ["no operation", 400, without("operation"), json, "the review has no request.operation"],
    ["no resource", 400, without("resource"), json, "the AdmissionReview has no request.resource"],
    [
      "a body over 20 MiB",
      413,
      " ".repeat(20 * 1024 * 1024 + 1),
      json,
      "the body is too large, the limit is 20971520 bytes",
    ],
    [
      "a body over 20 MiB and its content length",
      413,
      " ".repeat(20 * 1024 * 1024 + 1),
      { ...json, "content-length": `${20 * 1024 * 1024 + 1}` },
      "the body is too large, the limit is 20971520 bytes",
    ],
  ])("a request with %s gets status %i", async (...[, code, body, headers, message]) => {
    const response = await post("/allow", body, headers);
    expect(response.status).toBe(code);
    const status = (await response.json()) as { message: string };
    expect(status).toMatchObject({ kind: "Status", status: "Failure", code });
    expect(status.message).toContain(message);
  });

  test("a request without a content type gets status 415", async () => {
    const response = await app.request("/allow", { method: "POST", body: new Uint8Array([123, 125]) });
    expect(response.status).toBe(415);
  });

  test.each(["application/json; charset=utf-8", "Application/JSON"])(
    "the content type %s counts as JSON",
    async (type) => {
      expect((await post("/allow", review(), { "content-type": type })).status).toBe(200);
    },
  );

  test.each(["GET", "PUT", "DELETE", "PATCH"])("a %s request gets status 405", async (method) => {
    const response = await app.request("/allow", { method });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe("POST");
  });

  test("a request for an unknown path gets status 404", async () => {
    expect((await post("/elsewhere", review())).status).toBe(404);
  });
});

describe("a conversion:", () => {
  const conversion = (objects: unknown) => ({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "ConversionReview",
    request: { uid: "uid-2", desiredAPIVersion: "apps.kruise.io/v1beta1", objects },
  });

  test("a conversion is answered with the converted objects", async () => {
    const response = await post(
      "/convert",
      conversion([{ apiVersion: "apps.kruise.io/v1alpha1", kind: "SidecarSet" }]),
    );
    expect(await response.json()).toEqual({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "ConversionReview",
      response: {
        uid: "uid-2",
        convertedObjects: [{ apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet" }],
        result: { status: "Success" },
      },
    });
  });

  test("a failed conversion has its uid and the reason", async () => {
    const response = await post("/convert", conversion([]));
    expect(((await response.json()) as ConversionReview).response).toEqual({
      uid: "uid-2",
      convertedObjects: [],
      result: { status: "Failure", message: "nothing to convert" },
    });
  });

  test.each([
    ["an AdmissionReview", review()],
    ["a conversion without a list of objects", conversion(undefined)],
    ["a conversion of objects that are numbers", conversion([1])],
  ])("the conversion webhook answers %s with status 400", async (_, body) => {
    expect((await post("/convert", body)).status).toBe(400);
  });
});

describe("health:", () => {
  test("/healthz gets status 200", async () => {
    expect((await app.request("/healthz")).status).toBe(200);
  });

  test("/readyz gets the result of the readiness check", async () => {
    expect((await app.request("/readyz")).status).toBe(200);
    readiness = () => Promise.reject(new Error("nobody listens"));
    // A timer may fire slightly early.
    await sleep(1_050);
    const response = await app.request("/readyz");
    expect([response.status, await response.text()]).toEqual([503, "nobody listens"]);
  });
});
