/** Tests status, reason and message of answers without a decision. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { Admission } from "../../shared/core/admission/admission.ts";
import { createLog } from "../../shared/log.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import { admissionResponse } from "../../shared/webhook/review/response.ts";
import { readAdmissionReview } from "../../shared/webhook/review/review.ts";
import { carried, textAnswer, within } from "../../shared/webhook/server/http.ts";
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

test("a patch that no front door can carry is not printed to its end, so that large pods do not fill the memory", () => {
  let printed = 0;
  const text = "s".repeat(1024 * 1024);
  const sidecar = () => ({
    toJSON: () => {
      printed++;
      return { text };
    },
  });
  const resource = { group: "", version: "v1", resource: "pods" };
  const asked = { uid: "u", operation: "CREATE", resource, object: { list: [] } } as unknown as AdmissionRequest;
  const answer = (sidecars: number) => {
    printed = 0;
    const object = { list: Array.from({ length: sidecars }, sidecar) };
    return admissionResponse(asked, { kind: "allowed", object } as unknown as Admission);
  };
  expect([answer(4).patch?.length, printed]).toEqual([expect.any(Number), 4]);
  expect(() => answer(20)).toThrow("larger than the front door of the webhook can carry back");
  expect(printed).toBe(5);
});

test("serve does not send an answer of more than 4 MiB, so that many of them do not fill the memory", async () => {
  const log = createLog("error", () => undefined);
  const object = { metadata: { name: "p" }, spec: { text: "s".repeat(2 * 1024 * 1024) } };
  const admissions = {
    "/small": () => ({ kind: "allowed", object: { ...object, metadata: { name: "q" } } }) as unknown as Admission,
    "/large": () =>
      ({
        kind: "allowed",
        object: { ...object, spec: { a: object.spec.text, b: object.spec.text } },
      }) as unknown as Admission,
  };
  const large = await serveHttps(webhookApp({ log, isKnown: () => true, admissions }), { host: "127.0.0.1", port: 0 });
  onTestFinished(() => large.close());
  const resource = { group: "", version: "v1", resource: "pods" };
  const request = { uid: "u", operation: "CREATE", resource, object: { metadata: { name: "p" }, spec: {} } };
  const body = JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
  const codeOf = async (path: string) => {
    const init = { method: "POST", body, headers: { "content-type": "application/json" } };
    const answer = await fetch(`http://127.0.0.1:${large.port}${path}`, init);
    return [answer.status, (await answer.text()).length < 4 * 1024 * 1024];
  };
  expect([await codeOf("/small"), await codeOf("/large")]).toEqual([
    [200, true],
    [500, true],
  ]);
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
