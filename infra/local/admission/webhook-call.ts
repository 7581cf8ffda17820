/** A POST to a webhook over HTTPS that trusts only its caBundle; failures have the words of Go's client. */
import { request } from "node:https";
import { asText, isObject, type JsonObject } from "../storage/json.ts";

/** The answer is no use: connection, certificate, time, status or body. */
export class WebhookCallError extends Error {
  override readonly name = "WebhookCallError";
}

interface Answer {
  readonly code: number;
  readonly text: string;
}

function goText(error: Error & { code?: string }, url: URL): string {
  const address = `${url.hostname}:${url.port === "" ? 443 : url.port}`;
  if (error.code === "ECONNREFUSED") return `dial tcp ${address}: connect: connection refused`;
  if (error.code === "ENOTFOUND") return `dial tcp: lookup ${url.hostname}: no such host`;
  if (error.code === "ECONNRESET") return "EOF";
  if (/certificate|CERT|issuer/.test(`${error.code} ${error.message}`)) {
    return `tls: failed to verify certificate: x509: ${error.message}`;
  }
  return error.message;
}

function post(url: URL, certificate: string, body: string, timeoutMs: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const fail = (text: string): void => reject(new WebhookCallError(`Post "${url.href}": ${text}`));
    const outgoing = request(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, */*",
        "user-agent": "kube-apiserver-admission",
      },
      ...(certificate === "" ? {} : { ca: certificate }),
    });
    const timer = setTimeout(() => {
      fail("context deadline exceeded");
      outgoing.destroy();
    }, timeoutMs);
    outgoing.on("close", () => clearTimeout(timer));
    outgoing.on("error", (error) => fail(goText(error, url)));
    outgoing.on("response", (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", (error) => fail(goText(error, url)));
      incoming.on("end", () =>
        resolve({ code: incoming.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
      );
    });
    outgoing.end(body);
  });
}

const CODES: Readonly<Record<number, string>> = {
  400: "the server rejected our request for an unknown reason",
  401: "the server has asked for the client to provide credentials",
  403: "unknown",
  404: "the server could not find the requested resource",
  405: "the server does not allow this method on the requested resource",
  413: "Request entity too large: limit is 3145728",
  415: "the server was unable to respond with a content type that the client supports",
  429: "the server has received too many requests and has asked us to try again later",
};

function codeText(answer: Answer): string {
  if (answer.code >= 500)
    return `an error on the server (${JSON.stringify(answer.text)}) has prevented the request from succeeding`;
  return (
    CODES[answer.code] ?? `the server responded with the status code ${answer.code} but did not return more information`
  );
}

/** `clientConfig` as in webhook configurations and CRDs. Rejects with WebhookCallError. */
export async function callWebhook(clientConfig: JsonObject, body: unknown, timeoutMs: number): Promise<JsonObject> {
  const address = asText(clientConfig["url"]);
  if (address === "") throw new WebhookCallError("services cannot be reached from here: use clientConfig.url");
  const url = new URL(address);
  url.searchParams.set("timeout", `${timeoutMs / 1000}s`);
  const certificate = Buffer.from(asText(clientConfig["caBundle"]), "base64").toString("utf8");
  const answer = await post(url, certificate, JSON.stringify(body), timeoutMs);
  if (answer.code < 200 || answer.code > 206) throw new WebhookCallError(codeText(answer));
  let parsed: unknown;
  try {
    parsed = JSON.parse(answer.text);
  } catch (cause) {
    throw new WebhookCallError(`couldn't get version/kind; json parse error: ${String(cause)}`, { cause });
  }
  if (!isObject(parsed)) throw new WebhookCallError("couldn't get version/kind; json parse error: not an object");
  return parsed;
}
