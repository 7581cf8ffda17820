/** One signed request to an AWS service: without an SDK, whose import costs more than the call. */
import type { IncomingMessage } from "node:http";
import { hideSecret } from "../log.ts";
import type { AwsAccess } from "./access.ts";

export interface AwsRequest {
  /** the name in signatures: ssm, secretsmanager, eks, sqs */
  readonly service: string;
  readonly region: string;
  /** absent: POST with a body, else GET */
  readonly method?: string;
  /** with the query; absent: / */
  readonly path?: string;
  /** X-Amz-Target of services that speak AWS' JSON protocol */
  readonly target?: string;
  readonly body?: object;
}

/** An AWS service refused, or could not be asked. The message names neither what was sent nor what came back. */
export class AwsError extends Error {
  override readonly name = "AwsError";
  /** such as AccessDeniedException; empty when there was no answer */
  readonly code: string;

  constructor(message: string, code = "", cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

const TIMEOUT_MS = 4_000;

/** The JSON that the service answers with. @throws AwsError */
export async function awsJson<T>(request: AwsRequest, access: AwsAccess): Promise<T> {
  const { service, region } = request;
  const { status, text } = await send(request, access);
  const answer = parse(text);
  if (status >= 200 && status < 300 && answer !== undefined) return answer as T;
  const code = /[A-Za-z]+$/.exec(String(answer?.["__type"] ?? answer?.["code"] ?? ""))?.[0] ?? "";
  throw new AwsError(`${service} in ${region} answered ${status}${code === "" ? "" : ` ${code}`}`, code);
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function send(request: AwsRequest, { credentials, endpoint }: AwsAccess): Promise<Answer> {
  const { service, region, target, path = "/" } = request;
  const url = new URL(endpoint ?? `https://${service}.${region}.${domainOf(region)}`);
  const body = request.body === undefined ? undefined : JSON.stringify(request.body);
  const { default: aws4 } = await import("aws4");
  hideSecret(credentials.secretAccessKey);
  if (credentials.sessionToken !== undefined) hideSecret(credentials.sessionToken);
  const signed = aws4.sign(
    {
      service,
      region,
      method: request.method ?? (body === undefined ? "GET" : "POST"),
      host: url.host,
      path,
      headers: {
        ...(body === undefined ? {} : { "Content-Type": "application/x-amz-json-1.1" }),
        ...(target === undefined ? {} : { "X-Amz-Target": target }),
      },
      ...(body === undefined ? {} : { body }),
    },
    credentials,
  );
  const { request: start } = await import(url.protocol === "http:" ? "node:http" : "node:https");
  return new Promise((resolve, reject) => {
    const fail = (cause: Error) =>
      reject(new AwsError(`${service} in ${region} cannot be asked: ${cause.message}`, "", cause));
    const outgoing = start(
      { host: url.hostname, port: url.port, method: signed.method, path, headers: signed.headers, timeout: TIMEOUT_MS },
      (incoming: IncomingMessage) =>
        readText(incoming).then((text) => resolve({ status: incoming.statusCode ?? 0, text }), fail),
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    outgoing.on("error", fail);
    outgoing.end(body);
  });
}

function domainOf(region: string): string {
  return region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}

async function readText(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
