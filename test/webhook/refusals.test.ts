/** Status, reason and message of answers without a decision. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import { createLog } from "../../shared/log.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import { admissionResponse } from "../../shared/webhook/review/response.ts";
import { readAdmissionReview } from "../../shared/webhook/review/review.ts";
import { within } from "../../shared/webhook/server/deadline.ts";
import { carried, textAnswer } from "../../shared/webhook/server/http.ts";
import { serveHttps, type WebhookServer } from "../../shared/webhook/server/https-server.ts";

let server: WebhookServer;
beforeEach(async () => {
  const log = createLog("error", () => undefined);
  const app = webhookApp({ log, isKnown: () => true, admissions: { "/allow": () => ({ kind: "allowed" }) } });
  server = await serveHttps(app, { host: "127.0.0.1", port: 0 });
});
afterEach(() => server.close());

const ask = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${server.port}${path}`, init);

test.each([
  ["application/json", "{", 400, "BadRequest"],
  ["application/json", "", 400, "BadRequest"],
  ["application/json", "{}", 400, "BadRequest"],
  ["text/plain", "{}", 415, "UnsupportedMediaType"],
])(
  "a request with the content type %s and the body %j gets status %i and the reason %s",
  async (type, body, code, reason) => {
    const answer = await ask("/allow", { method: "POST", body, headers: { "content-type": type } });
    expect([answer.status, await answer.json()]).toMatchObject([code, { kind: "Status", code, reason }]);
  },
);

test("/healthz is answered with plain text", async () => {
  const answer = await ask("/healthz");
  expect([answer.headers.get("content-type"), await answer.text()]).toEqual(["text/plain; charset=utf-8", "ok"]);
});

test("a body that is not JSON is a ReviewError with the parser's error as its cause", () => {
  const cause = expect.any(SyntaxError);
  expect(() => readAdmissionReview("{")).toThrow(
    expect.objectContaining({ name: "ReviewError", code: 400, reason: "BadRequest", cause }),
  );
});

describe("carried:", () => {
  const asked = { method: "GET", path: "/", query: "", headers: {}, readBody: async () => "" };
  const answer = textAnswer(200, "grün");

  test("an answer that the front door cannot carry is an error with its size", () => {
    expect(() => carried({ ...asked, canCarry: (body) => body.length > 4 }, answer)).toThrow(
      "the answer of 5 bytes is larger than the front door of the webhook can carry back",
    );
  });

  test("an answer that the front door can carry is returned unchanged", () => {
    expect(carried({ ...asked, canCarry: (body) => body.length === 4 }, answer)).toBe(answer);
    expect(carried(asked, answer)).toBe(answer);
  });
});

test("an object to which more than 3 MiB would be added is denied, and the answer is short", () => {
  const object = { metadata: { name: "p" }, spec: { containers: [] } };
  const mounts = Array.from({ length: 6_000 }, (_, nth) => ({ name: "v", mountPath: `/${nth}/${"s".repeat(200)}` }));
  const review = (sidecars: number) =>
    admissionResponse({ uid: "u", operation: "CREATE", object } as unknown as AdmissionRequest, {
      kind: "allowed",
      object: {
        ...object,
        spec: { containers: Array.from({ length: sidecars }, (_, nth) => ({ name: `s${nth}`, volumeMounts: mounts })) },
      } as never,
    });
  expect(review(1)).toMatchObject({ allowed: true, patchType: "JSONPatch" });
  const denied = review(3);
  expect(denied).toMatchObject({ allowed: false, status: { code: 413, reason: "RequestEntityTooLarge" } });
  expect(JSON.stringify(denied).length).toBeLessThan(400);
});

describe("within:", () => {
  test("within fails with a DeadlineError when the time is over", async () => {
    await expect(within(1, () => sleep(60_000, undefined, { ref: false }))).rejects.toMatchObject({
      name: "DeadlineError",
      message: "there is no decision after 1 ms",
    });
  });

  test("within returns a result that comes in time", async () => {
    expect(await within(60_000, async () => "done")).toBe("done");
  });

  test("within leaves no timer after the result", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    await within(60_000, async () => "done");
    expect(vi.getTimerCount()).toBe(0);
  });
});
