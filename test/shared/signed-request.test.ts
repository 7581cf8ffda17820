import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { type AwsRequest, awsJson, serviceHost } from "../../shared/aws/signed-request.ts";

/** Returns the result of awsJson for an answer with this status and text. */
function answered(status: number, text: string): Promise<unknown> {
  return answeredBy((_, response) => response.writeHead(status).end(text));
}

async function answeredBy(listener: RequestListener, more: Partial<AwsRequest> = {}): Promise<unknown> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const credentials = { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "not-a-secret-of-anybody" };
  const request = { service: "sqs", region: "eu-central-1", target: "AmazonSQS.DeleteMessage", body: {}, ...more };
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

/** Answers that AWS' own SDKs call busy, for the services that we use. */
const BUSY = [
  "KMS.ThrottlingException",
  "KmsThrottled",
  "RequestThrottled",
  "RequestThrottledException",
  "ThrottledException",
  "Throttling",
  "ThrottlingException",
  "TooManyRequestsException",
];

test.each<readonly [string, number, Readonly<Record<string, string>>, string]>([
  ...BUSY.map((code) => [`400 ${code}`, 400, { "x-amzn-errortype": code }, "{}"] as const),
  ["429 without a code", 429, {}, ""],
  ["500", 500, {}, ""],
  ["a code of throttling in the text", 400, {}, '{"__type":"com.amazon#ThrottlingException"}'],
  [
    "a code of throttling in a header, with an address behind it",
    400,
    { "x-amzn-errortype": "TooManyRequestsException:http://internal.amazon.com/coral/" },
    "{}",
  ],
])("awsJson asks again after %s", async (_, status, headers, text) => {
  let requests = 0;
  const answer = await answeredBy((__, response) => {
    if (++requests === 1) response.writeHead(status, headers).end(text);
    else response.end('{"a":1}');
  });
  expect([requests, answer]).toEqual([2, { a: 1 }]);
});

test("awsJson asks no more than once after a refusal, and names its code", async () => {
  let requests = 0;
  const asking = answeredBy((_, response) => {
    requests++;
    response.writeHead(403, { "x-amzn-errortype": "ExpiredTokenException:http://a" }).end("{}");
  });
  await expect(asking).rejects.toThrow(/^sqs in eu-central-1 answered 403 ExpiredTokenException$/);
  expect(requests).toBe(1);
});

test("awsJson waits as long for an answer as the request says", async () => {
  const asking = answeredBy(() => undefined, { timeoutMs: 20 });
  await expect(asking).rejects.toThrow("sqs in eu-central-1 cannot be asked: no answer within 20 ms");
});

test.each([
  ["eu-central-1", "sqs.eu-central-1.amazonaws.com"],
  ["cn-north-1", "sqs.cn-north-1.amazonaws.com.cn"],
  ["cn-northwest-1", "sqs.cn-northwest-1.amazonaws.com.cn"],
])("the service SQS of the region %s is at %s", (region, host) => {
  expect(serviceHost("sqs", region)).toBe(host);
});
