/** Finds the HTTP request in what Lambda was called with. */
import type { HttpEvent, RestEvent } from "./handler.ts";

/** A default stage is no part of the path. */
const DEFAULT_STAGE = "$default";

/**
 * The event with the path as the caller wrote it behind a named stage, and with one form of its headers: API Gateway sends
 * both with payload format 1.0, and the one with several values has everything. Undefined: no HTTP request.
 */
export function httpEvent(event: unknown): HttpEvent | undefined {
  if (typeof event !== "object" || event === null) return undefined;
  const { rawPath, path, httpMethod, requestContext } = event as Partial<Record<string, unknown>>;
  if (typeof requestContext !== "object" || requestContext === null) return undefined;
  const { stage, http } = requestContext as { readonly stage?: unknown; readonly http?: unknown };
  if (typeof rawPath === "string" && typeof http === "object" && http !== null)
    return { ...event, rawPath: behindStage(rawPath, stage) } as HttpEvent;
  if (typeof path !== "string" || typeof httpMethod !== "string") return undefined;
  if ("elb" in requestContext) return event as HttpEvent;
  return oneForm({ ...event, path: behindStage(path, stage) } as RestEvent);
}

function behindStage(path: string, stage: unknown): string {
  if (typeof stage !== "string" || stage === DEFAULT_STAGE || !path.startsWith(`/${stage}/`)) return path;
  return path.slice(stage.length + 1);
}

function oneForm({ headers, queryStringParameters, ...event }: RestEvent): RestEvent {
  return {
    ...event,
    ...(event.multiValueHeaders ? {} : { headers }),
    ...(event.multiValueQueryStringParameters ? {} : { queryStringParameters }),
  } as RestEvent;
}
