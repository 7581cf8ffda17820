/**
 * Handlers with traces: the same answers and reports, with spans. Their file is beside the function's bundle, so a
 * function without traces does not load it.
 */
import type { ALBEvent, APIGatewayProxyStructuredResultV2, Context } from "aws-lambda";
import { withDoing } from "../../shared/doings.ts";
import { createLog } from "../../shared/log.ts";
import { readLogLevel, readProcessNames, readTracing } from "../../shared/settings/config.ts";
import type { TraceSettings } from "../../shared/settings/trace-settings.ts";
import type { Tracing } from "../../shared/tracing/tracing.ts";
import type { GatewayEvent, HttpEvent } from "./body.ts";

type Invoked = Pick<Context, "getRemainingTimeInMillis" | "awsRequestId">;
type TracedRequest = Parameters<Tracing["traceRequest"]>[0];
type TracedAnswer = ReturnType<Parameters<Tracing["traceRequest"]>[2]>;
type Inner = (event: unknown, context: Invoked) => Promise<unknown>;

/** The longest wait for a trace collector, within a part of the time left to answer. */
const FLUSH_MS = 300;
const PART_OF_LEFT = 1 / 4;

/** Adds traces. It never throws: unusable variables are an error in the log, and there are no traces. */
export function traced(inner: Inner): Inner {
  const starting = start();
  if (starting === undefined) return inner;
  return async (event, context) => {
    const beganAt = performance.now();
    const tracing = await starting;
    if (tracing === undefined) return inner(event, context);
    try {
      return await invoke(inner, tracing, event, context);
    } finally {
      // Lambda freezes an environment between its answer and the next event.
      await tracing.flush(Math.min(FLUSH_MS, PART_OF_LEFT * leftMs(event, context, performance.now() - beganAt)));
    }
  };
}

function start(): Promise<Tracing | undefined> | undefined {
  const log = createLog(readLogLevel());
  const failed = (error: unknown) => {
    log.error("there are no traces", { error });
    return undefined;
  };
  let settings: TraceSettings | undefined;
  try {
    settings = readTracing();
  } catch (error) {
    return failed(error);
  }
  if (settings === undefined) return undefined;
  const wanted = settings;
  const resource = readProcessNames();
  return import("../../shared/tracing/tracing.ts")
    .then(({ startTracing }) => startTracing(wanted, { log, resource, isFrozenAfterwards: true }))
    .catch(failed);
}

function invoke(inner: Inner, { traceRequest }: Tracing, event: unknown, context: Invoked): Promise<unknown> {
  const values = { "faas.invocation_id": context.awsRequestId };
  const answer = () => inner(event, context);
  return isHttp(event)
    ? traceRequest(requestOf(event), answer, answerOf, values)
    : withDoing("invocation", values, answer);
}

function isHttp(event: unknown): event is HttpEvent {
  return typeof event === "object" && event !== null && ("rawPath" in event || "httpMethod" in event);
}

function requestOf(event: HttpEvent): TracedRequest {
  const traceparent = headerOf(event, "traceparent");
  return "rawPath" in event
    ? { method: event.requestContext.http.method, path: event.rawPath, traceparent }
    : { method: event.httpMethod, path: event.path, traceparent };
}

/** The value of a header. Load balancers send either form, with names in any case. */
function headerOf(event: HttpEvent, wanted: string): string | undefined {
  const { multiValueHeaders } = event as Partial<ALBEvent>;
  const all = [...Object.entries(event.headers ?? {}), ...Object.entries(multiValueHeaders ?? {})];
  const [, value] = all.find(([name]) => name.toLowerCase() === wanted) ?? [];
  return Array.isArray(value) ? value[0] : value;
}

function answerOf(answered: unknown): TracedAnswer {
  const { statusCode = 200, body = "" } = answered as APIGatewayProxyStructuredResultV2;
  return { status: statusCode, body };
}

/** Milliseconds until Lambda ends the invocation, or until the API server's timeout, which is in its URL. */
function leftMs(event: unknown, context: Invoked, tookMs: number): number {
  const left = context.getRemainingTimeInMillis();
  if (!isHttp(event)) return left;
  const { rawQueryString } = event as Partial<GatewayEvent>;
  const { queryStringParameters, multiValueQueryStringParameters } = event as Partial<ALBEvent>;
  const timeout =
    queryStringParameters?.["timeout"] ??
    multiValueQueryStringParameters?.["timeout"]?.[0] ??
    /(?:^|&)timeout=([^&]*)/.exec(rawQueryString ?? "")?.[1];
  const seconds = Number(/^(\d{1,2})s$/.exec(timeout ?? "")?.[1]);
  return Number.isNaN(seconds) ? left : Math.min(left, seconds * 1000 - tookMs);
}
