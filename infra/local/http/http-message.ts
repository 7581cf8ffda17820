/** Requests as the handlers see them, and the handlers' answers. */

import type { IncomingMessage } from "node:http";
import { parse as parseYaml } from "yaml";
import type { User } from "../storage/api.ts";
import type { JsonObject } from "../storage/json.ts";
import type { WatchEvent, WatchSession, WatchSink } from "../storage/read.ts";
import { badRequest, StatusError, tooLarge, unsupportedMediaType } from "../storage/status-error.ts";
import { fromProtobuf, PROTOBUF } from "./decode.ts";

export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly parameters: URLSearchParams;
  readonly accept: string;
  readonly mediaType: string;
  readonly userAgent: string;
  readonly body: Buffer;
  /** absent: an unknown user */
  readonly user?: User | undefined;
}

export interface ObjectAnswer {
  readonly code: number;
  readonly body: JsonObject | string;
  readonly contentType?: string;
  readonly warnings?: readonly string[];
}

export interface WatchAnswer {
  /** Begins the watch; events are JSON lines. */
  begin(sink: WatchSink): WatchSession;
  encode(event: WatchEvent): JsonObject;
}

export type Answer = ObjectAnswer | WatchAnswer;

/** Answers in place of the API server, or asks it. */
export type Front = (request: ApiRequest, ask: (request: ApiRequest) => Promise<Answer>) => Promise<Answer>;

const MOST_BYTES = 3 * 1024 * 1024;

export function readBody(incoming: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    incoming.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= MOST_BYTES) chunks.push(chunk);
    });
    incoming.on("end", () => {
      if (bytes <= MOST_BYTES) resolve(Buffer.concat(chunks));
      else reject(tooLarge(`Request entity too large: limit is ${MOST_BYTES}`));
    });
    incoming.on("error", reject);
  });
}

const JSON_TYPES = ["application/json", "application/yaml"];

/** The body of a create, an update or a delete. Throws 400 and 415. */
export function parsedBody(request: ApiRequest): unknown {
  const type = request.mediaType === "" ? "application/json" : request.mediaType;
  const decoded = type === PROTOBUF ? fromProtobuf(request.body) : undefined;
  if (decoded !== undefined) return decoded;
  if (!JSON_TYPES.includes(type)) throw unsupportedMediaType(JSON_TYPES);
  return parsedText(request.body.toString("utf8"), type === "application/yaml");
}

/** The body of a patch, of any media type. */
export function parsedPatch(request: ApiRequest): unknown {
  try {
    return JSON.parse(request.body.toString("utf8"));
  } catch (error) {
    throw badRequest(`error decoding patch: ${error instanceof Error ? error.message : error}`);
  }
}

function parsedText(text: string, isYaml: boolean): unknown {
  try {
    return isYaml ? parseYaml(text) : JSON.parse(text);
  } catch (error) {
    throw badRequest(`couldn't get version/kind; json parse error: ${error instanceof Error ? error.message : error}`);
  }
}

/** A client's answer after an exception. */
export function errorAnswer(error: unknown): ObjectAnswer {
  if (error instanceof StatusError) return { code: error.code, body: { ...error.body } };
  const message = `Internal error occurred: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  return errorAnswer(new StatusError({ code: 500, reason: "InternalError", message }));
}
