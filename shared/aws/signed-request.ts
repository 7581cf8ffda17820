/** One signed request to an AWS service, without an SDK, whose import costs more than the call. */
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { hideSecret } from "../log.ts";
import type { AwsAccess, AwsCredentials } from "./access.ts";

export interface AwsRequest {
  /** service name in signatures and addresses: ssm, secretsmanager, eks, sqs */
  readonly service: string;
  readonly region: string;
  /** method; absent: POST with a body, else GET */
  readonly method?: string;
  /** path with the query; absent: / */
  readonly path?: string;
  /** X-Amz-Target of services with AWS's JSON protocol */
  readonly target?: string;
  /** version of the JSON protocol; absent: 1.1 */
  readonly jsonVersion?: "1.0" | "1.1";
  readonly body?: object;
  /** milliseconds to wait for the answer; absent: 4 seconds */
  readonly timeoutMs?: number;
}

/** The error if an AWS service refused or did not answer. Its message has no part of the request or the answer. */
export class AwsError extends Error {
  override readonly name = "AwsError";
  /** code, such as AccessDeniedException; empty if there was no answer */
  readonly code: string;
  /** HTTP status; 0 if there was no answer */
  readonly status: number;

  constructor(
    message: string,
    { code = "", status = 0, cause }: { code?: string; status?: number; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.code = code;
    this.status = status;
  }
}

const TIMEOUT_MS = 4_000;
const MAX_ATTEMPTS = 3;
const RETRY_MS = 100;

/** The JSON answer of the service. If the service is busy, the request is repeated twice. @throws AwsError */
export async function awsJson<T>(request: AwsRequest, access: AwsAccess): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await once<T>(request, access);
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isBusy(error)) throw error;
      await sleep(RETRY_MS * 2 ** attempt);
    }
  }
}

/** The path with its query, which contains a signature. */
export async function signQuery(
  request: {
    readonly service: string;
    readonly region: string;
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
  },
  credentials: AwsCredentials,
): Promise<string> {
  const { service, region } = request;
  const aws4 = await signer(credentials);
  const signed = aws4.sign(
    { ...request, headers: { ...request.headers }, host: serviceHost(service, region), signQuery: true },
    credentials,
  );
  return signed.path ?? "";
}

/** AWS's own name of a regional service. */
export function serviceHost(service: string, region: string): string {
  return `${service}.${region}.${region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com"}`;
}

function isBusy(error: unknown): boolean {
  return (
    error instanceof AwsError &&
    (error.status >= 500 || error.status === 429 || /Throttl|TooManyRequests/.test(error.code))
  );
}

async function once<T>(request: AwsRequest, access: AwsAccess): Promise<T> {
  const { service, region } = request;
  const { status, text, errorType } = await send(request, access);
  const answer = parse(text);
  if (status >= 200 && status < 300 && answer !== undefined) return answer as T;
  const code = /[A-Za-z]+$/.exec(errorType ?? String(answer?.["__type"] ?? ""))?.[0] ?? "";
  const [, denied] = /not authorized to perform: ([a-z0-9-]+:[A-Za-z]+)/.exec(text) ?? [];
  const said = [
    status,
    ...(code === "" ? [] : [code]),
    ...(denied === undefined ? [] : [`(${denied} is not allowed)`]),
  ];
  throw new AwsError(`${service} in ${region} answered ${said.join(" ")}`, { code, status });
}

/** The answer as JSON. Services may answer with an empty body. */
function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  if (text === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Loads the signer, and hides the credentials in all output from now on. */
async function signer({ secretAccessKey, sessionToken }: AwsCredentials) {
  hideSecret(secretAccessKey);
  if (sessionToken !== undefined) hideSecret(sessionToken);
  return (await import("aws4")).default;
}

interface Answer {
  readonly status: number;
  /** type of the error, in a header of services without a target header */
  readonly errorType: string | undefined;
  readonly text: string;
}

async function send(request: AwsRequest, { credentials, endpoint }: AwsAccess): Promise<Answer> {
  const { service, region, target, path = "/", jsonVersion = "1.1" } = request;
  const url = new URL(endpoint ?? `https://${serviceHost(service, region)}`);
  const body = request.body === undefined ? undefined : JSON.stringify(request.body);
  const headers = {
    ...(body === undefined
      ? {}
      : { "Content-Type": target ? `application/x-amz-json-${jsonVersion}` : "application/json" }),
    ...(target === undefined ? {} : { "X-Amz-Target": target }),
  };
  const method = request.method ?? (body === undefined ? "GET" : "POST");
  const aws4 = await signer(credentials);
  const content = body === undefined ? {} : { body };
  const signed = aws4.sign({ service, region, method, host: url.host, path, headers, ...content }, credentials);
  const { request: start } = url.protocol === "http:" ? await import("node:http") : await import("node:https");
  return new Promise((resolve, reject) => {
    const fail = (cause: Error) =>
      reject(new AwsError(`${service} in ${region} cannot be asked: ${cause.message}`, { cause }));
    const where = { host: url.hostname, port: url.port, method, path, timeout: request.timeoutMs ?? TIMEOUT_MS };
    const outgoing = start({ ...where, headers: { ...signed.headers } }, (incoming: IncomingMessage) => {
      const { statusCode: status = 0, headers } = incoming;
      const errorType = headers["x-amzn-errortype"]?.toString().split(":")[0];
      readText(incoming).then((text) => resolve({ status, text, errorType }), fail);
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer within ${where.timeout} ms`)));
    outgoing.on("error", fail);
    outgoing.end(body);
  });
}

async function readText(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
