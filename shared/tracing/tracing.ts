/**
 * Spans of what a process does, sent to a collector by OTLP over HTTP. Whatever becomes of them, what is traced goes on:
 * nothing waits for a collector but `flush`, no longer than it is told to, and nothing here throws or rejects.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Span } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { DoingValues } from "../doings.ts";
import type { Log } from "../log.ts";
import { rateLimited } from "../log.ts";
import type { TraceSettings } from "../settings/trace-settings.ts";
import { traceCalls } from "./call-spans.ts";
import { traceDoings } from "./doing-spans.ts";
import { requestTracer, type TraceRequest } from "./request-spans.ts";
import { attributesOf } from "./scope.ts";

export interface TracingOptions {
  readonly log: Log;
  /** of the process; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come before them */
  readonly resource?: DoingValues;
  /** true: what is known of an answer is noted before it is on its way, since the process may stand still then */
  readonly isFrozenAfterwards?: boolean;
}

export interface Tracing {
  readonly traceRequest: TraceRequest;
  /** Sends what is there. False: that has not come through within so many milliseconds. */
  readonly flush: (withinMs: number) => Promise<boolean>;
  /** The same, and no more spans are made. */
  readonly close: (withinMs: number) => Promise<boolean>;
}

/** Its library tries again after 800 ms at the earliest; where a process stands still meanwhile, it gives up before. */
const TRY_ONCE = { timeoutMillis: 750 };
/** One that did not answer, or refused, is not waited for again so soon. */
const DOWN_MS = 30_000;
const MAX_TEXT = 1_000;
const NAME = "sidecarset-serverless";

export function startTracing({ share, isParentIgnored }: TraceSettings, options: TracingOptions): Tracing {
  const { log, resource = {}, isFrozenAfterwards = false } = options;
  const current = new AsyncLocalStorage<Span | undefined>();
  let downAt = Number.NEGATIVE_INFINITY;
  const say = rateLimited<unknown>((batches, error) => log.warn("spans could not be sent", { batches, error }));
  const sent = (error: Error | undefined) => {
    downAt = error === undefined ? Number.NEGATIVE_INFINITY : Date.now();
    if (error !== undefined) say(error);
  };
  const exporter = new OTLPTraceExporter(isFrozenAfterwards ? TRY_ONCE : {});
  const own = new TraceIdRatioBasedSampler(share);
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes(attributesOf({ "service.name": NAME, ...resource })))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: isParentIgnored ? own : new ParentBasedSampler({ root: own }),
    spanLimits: { attributeValueLengthLimit: MAX_TEXT },
    spanProcessors: [new BatchSpanProcessor({ exporter: apart(exporter, current, sent) })],
  });
  const scope = { tracer: provider.getTracer(NAME), current };
  const stops = [traceDoings(scope), traceCalls(scope)];
  const flush = async (withinMs: number) => {
    if (Date.now() - downAt < DOWN_MS) return false;
    const isSent = await inTime(
      current.run(undefined, () => provider.forceFlush()),
      withinMs,
    );
    if (!isSent) downAt = Date.now();
    return isSent;
  };
  return {
    traceRequest: requestTracer(scope, isFrozenAfterwards ? (work) => work() : setImmediate),
    flush,
    close: (withinMs) => {
      for (const stop of stops) stop();
      return flush(withinMs);
    },
  };
}

/** The exporter, whose own calls are part of nothing, and which says what became of them. */
function apart(
  exporter: SpanExporter,
  current: AsyncLocalStorage<Span | undefined>,
  sent: (error: Error | undefined) => void,
): SpanExporter {
  return {
    export: (spans, done) =>
      current.run(undefined, () =>
        exporter.export(spans, (result) => {
          sent(result.error);
          done(result);
        }),
      ),
    shutdown: () => exporter.shutdown(),
  };
}

function inTime(work: Promise<unknown>, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(false), Math.max(0, withinMs));
    const end = (isDone: boolean) => {
      clearTimeout(late);
      resolve(isDone);
    };
    work.then(
      () => end(true),
      () => end(false),
    );
  });
}
