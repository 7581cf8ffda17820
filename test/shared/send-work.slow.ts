import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { sendWork } from "../../shared/aws/send-work.ts";
import { tickWork } from "../../shared/core/rollout/queue/work.ts";

interface Entry {
  readonly Id: string;
  readonly MessageBody: string;
}

type Answer = (entries: readonly Entry[], request: number) => object | undefined;

/**
 * Returns the messages of each request to a queue with these answers. An answer without fields has status 200 and no
 * text.
 */
async function sentTo(answer: Answer, sets: readonly string[]) {
  const requests: (readonly string[])[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const { Entries } = JSON.parse((await incoming.toArray()).join("")) as { readonly Entries: readonly Entry[] };
    requests.push(Entries.map(({ MessageBody }) => (JSON.parse(MessageBody) as { sidecarSet: string }).sidecarSet));
    const said = answer(Entries, requests.length);
    outgoing.end(said && JSON.stringify(said));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const credentials = { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "not-a-secret-of-anybody" };
  const works = sets.map((set) => tickWork(set, 0));
  const failure = await sendWork({ url: `${endpoint}/q.fifo`, region: "eu-central-1" }, works, {
    credentials,
    endpoint,
  })
    .then(() => undefined)
    .catch(String);
  server.close();
  server.closeAllConnections();
  return { requests, failure };
}

const all = (entries: readonly Entry[]) => ({ Successful: entries.map(({ Id }) => ({ Id })) });
const but = (entries: readonly Entry[], id: string, SenderFault: boolean) => ({
  ...all(entries.filter(({ Id }) => Id !== id)),
  Failed: [{ Id: id, Code: SenderFault ? "InvalidParameterValue" : "InternalError", SenderFault }],
});

test("sendWork sends only the messages again that the queue failed to store", async () => {
  const first: Answer = (entries, request) => (request === 1 ? but(entries, "1", false) : all(entries));
  expect(await sentTo(first, ["a", "b", "c"])).toEqual({ requests: [["a", "b", "c"], ["b"]], failure: undefined });
});

test("sendWork fails after three attempts", async () => {
  const { requests, failure } = await sentTo((entries) => but(entries, "1", false), ["a", "b"]);
  expect(requests).toEqual([["a", "b"], ["b"], ["b"]]);
  expect(failure).toMatch(/did not take 1 of 2 messages: InternalError$/);
});

test("sendWork does not send an invalid message again", async () => {
  const { requests, failure } = await sentTo((entries) => but(entries, "0", true), ["a", "b"]);
  expect(requests).toEqual([["a", "b"]]);
  expect(failure).toMatch(/did not take 1 of 2 messages: InvalidParameterValue$/);
});

test.each<[string, Answer]>([
  ["an empty answer", () => undefined],
  ["an answer that names no message", () => ({})],
])("sendWork sends a message three times and fails for %s", async (_, answer) => {
  const { requests, failure } = await sentTo(answer, ["a"]);
  expect(requests).toEqual([["a"], ["a"], ["a"]]);
  expect(failure).toMatch(/did not take 1 of 1 messages: its answer does not name them$/);
});

test("sendWork sends each message once, with at most ten messages in a request", async () => {
  const sets = Array.from({ length: 205 }, (_, index) => `set-${index}`);
  const { requests, failure } = await sentTo(all, sets);
  expect([requests.length, failure, requests.flat().toSorted()]).toEqual([21, undefined, sets.toSorted()]);
  expect(requests.every(({ length }) => length <= 10)).toBe(true);
});

test("sendWork ends only when no request is running, also after a failure", async () => {
  const ends: string[] = [];
  let answerLate = (): void => undefined;
  const server = createServer(async (incoming, outgoing) => {
    const first = (await incoming.toArray()).join("").includes('set-0\\"');
    outgoing.on("finish", () => ends.push(first ? "refused" : "stored"));
    if (!first) answerLate = () => outgoing.end('{"Successful":[{"Id":"0"}]}');
    else outgoing.writeHead(403).end('{"__type":"AccessDenied"}', () => setTimeout(() => answerLate(), 100));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const works = Array.from({ length: 11 }, (_, index) => tickWork(`set-${index}`, 0));
  const sending = sendWork({ url: `${endpoint}/q.fifo`, region: "eu-central-1" }, works, {
    credentials: { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "not-a-secret-of-anybody" },
    endpoint,
  });
  await expect(sending).rejects.toThrow("answered 403 AccessDenied");
  expect(ends).toEqual(["refused", "stored"]);
  server.close();
  server.closeAllConnections();
});
