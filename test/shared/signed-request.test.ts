import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { awsJson } from "../../shared/aws/signed-request.ts";

/** What a service's answer of that status and text becomes. */
async function answered(status: number, text: string): Promise<unknown> {
  const server = createServer((_, response) => response.writeHead(status).end(text)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const credentials = { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "not-a-secret-of-anybody" };
  const request = { service: "sqs", region: "eu-central-1", target: "AmazonSQS.DeleteMessage", body: {} };
  try {
    return await awsJson(request, { credentials, endpoint });
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

test("a service that has nothing to say answers with nothing, as ElasticMQ does to a deletion", async () => {
  expect(await answered(200, "")).toEqual({});
});

test.each([
  ["an error without a text", 400, "", /^sqs in eu-central-1 answered 400$/],
  ["a text that is no JSON", 200, "<html>", /^sqs in eu-central-1 answered 200$/],
  [
    "a refusal, of which only the action is repeated",
    400,
    '{"__type":"AccessDeniedException","Message":"User: arn:x is not authorized to perform: sqs:DeleteMessage on resource: y"}',
    /^sqs in eu-central-1 answered 400 AccessDeniedException \(sqs:DeleteMessage is not allowed\)$/,
  ],
  ["JSON that is no object", 200, "1", /^sqs in eu-central-1 answered 200$/],
])("%s is an error", async (_, status, text, message) => {
  await expect(answered(status, text)).rejects.toThrow(message);
});
