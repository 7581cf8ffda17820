import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { awsJson } from "../../shared/aws/signed-request.ts";

/** The result of awsJson for an answer of this status and text. */
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

test("awsJson returns an empty object for an empty answer with status 200", async () => {
  expect(await answered(200, "")).toEqual({});
});

test.each([
  ["an answer with status 400 and no text", 400, "", /^sqs in eu-central-1 answered 400$/],
  ["an answer that is not JSON", 200, "<html>", /^sqs in eu-central-1 answered 200$/],
  [
    "a denied action",
    400,
    '{"__type":"AccessDeniedException","Message":"User: arn:x is not authorized to perform: sqs:DeleteMessage on resource: y"}',
    /^sqs in eu-central-1 answered 400 AccessDeniedException \(sqs:DeleteMessage is not allowed\)$/,
  ],
  ["an answer that is JSON but not an object", 200, "1", /^sqs in eu-central-1 answered 200$/],
])("awsJson fails for %s", async (_, status, text, message) => {
  await expect(answered(status, text)).rejects.toThrow(message);
});
