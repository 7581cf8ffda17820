/** Tests long messages of webhooks and proxies that refuse a call. */
import { afterEach, expect, it, vi } from "vitest";
import { connectCluster } from "../../shared/kube/client.ts";
import { PODS } from "../../shared/kube/port.ts";
import { PATIENT } from "../support/patient.ts";
import { closeServers, failureOf, serve } from "./servers.ts";

afterEach(closeServers);

const DENIED = 'admission webhook "a.b" denied the request: ';
const head = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":${JSON.stringify(DENIED).slice(0, -1)}`;
const CAUSE = '{"reason":"a","message":"b"},';

it.each([
  ["words of a webhook", head, "m".repeat(10_000), 4_097],
  ["causes", `${head}","details":{"causes":[`, CAUSE.repeat(400), DENIED.trim().length],
  ["text of a proxy", "", "m".repeat(10_000), 201],
])(
  "only the beginning of an endless answer with %s is read, and the connection is closed",
  async (...[, begin, more, length]) => {
    let sent = 0;
    let isClosed = false;
    const server = await serve((_, response) => {
      response.on("close", () => {
        isClosed = true;
      });
      response.writeHead(503, { "Content-Type": "application/json" });
      response.write(begin);
      const send = () => {
        sent += more.length;
        if (!isClosed) response.write(more, () => setImmediate(send));
      };
      send();
    });
    const patch = { type: "merge", body: {} } as const;
    const error = await failureOf(connectCluster({ server }).patch(PODS, { namespace: "shop", name: "a" }, patch));
    expect(error.message).toHaveLength(length);
    expect(error).toMatchObject({ code: 503, isOutcomeKnown: begin !== "" });
    expect(sent).toBeLessThan(20_000_000);
  },
);

it.each([
  ["of one object", {}, "", /is longer than 67108864 bytes/],
  ["of a list that is read item by item", { keep: () => "kept" }, '{"metadata":{},"items":[{"a":"', /is not JSON/],
  ["of a list without items that is read item by item", { keep: () => "kept" }, '{"a":"', /is not JSON/],
])("an answer %s that has no end is an error, and the connection is closed", async (...[, options, begin, words]) => {
  let isClosed = false;
  const server = await serve((_, response) => {
    response.write(begin);
    const piece = "x".repeat(4_194_304);
    const send = () => {
      while (!response.destroyed && response.write(piece));
      if (!response.destroyed) response.once("drain", send);
    };
    response.once("close", () => {
      isClosed = true;
    });
    send();
  });
  const error = await failureOf(connectCluster({ server }).list(PODS, options));
  expect(error).toMatchObject({ reason: "UnreadableAnswer", message: expect.stringMatching(words) });
  await vi.waitFor(() => expect(isClosed).toBe(true), PATIENT);
});
