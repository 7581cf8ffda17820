/**
 * Spans of a process's work, sent to a collector by OTLP over HTTP. Their failure never affects the work: only `flush`
 * waits for a collector, within its limit, and nothing here throws or rejects.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientRequest, IncomingMessage } from "node:http";
import {
  type Attributes,
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { AdmissionReview } from "../api/admission.ts";
import { ANNOUNCE_SIDECARSET_PATH, INJECTED_LIST_ANNOTATION } from "../api/names.ts";
import { DOINGS, type Doing, type DoingValues, type Ending } from "../doings.ts";
import { pointerStep } from "../go/json/json-text.ts";
import type { JsonPatchOperation } from "../kube/port.ts";
import { type Log, rateLimited } from "../log.ts";
import type { TraceSettings } from "../settings/trace-settings.ts";
import { splitPath } from "../webhook/server/authenticate.ts";
import * as PATHS from "../webhook/server/paths.ts";
import { READY_PATH } from "../webhook/server/ready-path.ts";

export interface TracingOptions {
  readonly log: Log;
  /** attributes of the process; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override them */
  readonly resource?: DoingValues;
  /** true: facts about an answer are noted before it is sent, because the process may freeze then */
  readonly isFrozenAfterwards?: boolean;
}

export interface Tracing {
  readonly traceRequest: TraceRequest;
  /** Sends the collected spans. False: they did not arrive within this time. */
  readonly flush: (withinMs: number) => Promise<boolean>;
  /** The same, and no more spans are made. */
  readonly close: (withinMs: number) => Promise<boolean>;
}

/**
 * The library retries after 800 ms at the earliest; this timeout ends before, because a process may be frozen between
 * the two.
 */
const TRY_ONCE = { timeoutMillis: 750 };
/** Pause after a collector did not answer, or refused. */
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

/** The exporter, whose own calls belong to no span, and which reports the result. */
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

/** A span of each HTTP call that is a part of another span. Node reports them: the code that makes the calls knows nothing of spans. */
interface ClientCall {
  readonly request: ClientRequest;
  readonly response?: IncomingMessage;
  readonly error?: Error;
}

/** The part of a path with an API server's objects, after any prefix. */
const OBJECTS =
  /\/(?:api\/v1|apis\/[^/?]+\/[^/?]+)(?:\/namespaces\/([^/?]+)(?=\/))?\/([^/?]+)(?:\/([^/?]+))?(?:\/([^/?]+))?(\?.*)?$/;

/** @returns stops it */
function traceCalls({ tracer, current }: Scope): () => void {
  const open = new WeakMap<ClientRequest, { readonly span: Span; readonly isWatch: boolean }>();
  const listeners = {
    "http.client.request.created": ({ request }: ClientCall) => {
      const parent = current.getStore();
      if (parent === undefined) return;
      const { name, attributes, isWatch, isApi } = describe(request);
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, contextOf(parent));
      open.set(request, { span, isWatch });
      if (isApi) request.setHeader("traceparent", traceparentOf(span));
    },
    "http.client.response.finish": ({ request, response }: ClientCall) => {
      const { span, isWatch } = open.get(request) ?? {};
      const code = response?.statusCode ?? 0;
      span?.setAttribute("http.response.status_code", code);
      const end = harmless(() => span && endSpan(span, code >= 400 ? { failure: `HTTP ${code}` } : {}));
      // A watch is answered at once, and goes on as long as somebody looks.
      if (isWatch) end();
      else response?.once("close", end);
    },
    "http.client.request.error": ({ request, error }: ClientCall) => {
      const span = open.get(request)?.span;
      if (span) endSpan(span, { failure: (error as NodeJS.ErrnoException | undefined)?.code ?? "no answer" });
    },
  };
  const harmlessOnes = Object.entries(listeners).map(
    ([name, listener]) => [name, harmless((message: unknown) => listener(message as ClientCall))] as const,
  );
  for (const [name, listener] of harmlessOnes) subscribe(name, listener);
  return () => {
    for (const [name, listener] of harmlessOnes) unsubscribe(name, listener);
  };
}

/** Describes only Kubernetes' objects: other paths, and every query, may hold secrets. */
function describe(request: ClientRequest) {
  const { method, path } = request;
  const host = String(request.getHeader("host") ?? request.host);
  const called: Attributes = { "http.request.method": method, "server.address": host.replace(/:\d+$/, "") };
  const objects = OBJECTS.exec(path);
  if (objects === null) return { name: method, attributes: called, isWatch: false, isApi: false };
  const [, namespace, plural = "", object, subresource, query = ""] = objects;
  const isWatch = /[?&]watch=(1|true)/.test(query);
  const attributes = {
    ...called,
    ...(namespace === undefined ? {} : { "k8s.namespace.name": namespace }),
    ...(object === undefined ? {} : { "sidecarset.kubernetes.object": object }),
  };
  const kind = `${plural}${subresource === undefined ? "" : `/${subresource}`}`;
  return { name: `${verbOf(method, object, isWatch)} ${kind}`, attributes, isWatch, isApi: true };
}

function verbOf(method: string, object: string | undefined, isWatch: boolean): string {
  if (method === "POST") return "CREATE";
  if (method !== "GET") return method;
  if (isWatch) return "WATCH";
  return object === undefined ? "LIST" : "GET";
}

/** The header by which an API server's own trace continues this one. */
function traceparentOf(span: Span): string {
  const context = span.spanContext();
  if (!isSpanContextValid(context)) throw new Error("no trace to go on with");
  return `00-${context.traceId}-${context.spanId}-${context.traceFlags.toString(16).padStart(2, "0")}`;
}

// One span for each report: passes, their SidecarSets, and the actions for each.

/** @returns stops it */
function traceDoings({ tracer, current }: Scope): () => void {
  const listener = harmless((message: unknown) => {
    const doing = message as Doing;
    const span = tracer.startSpan(
      doing.name,
      { attributes: attributesOf(doing.values) },
      contextOf(current.getStore()),
    );
    doing.within = (work) => current.run(span, work);
    doing.end = harmless((ending) => endSpan(span, ending));
  });
  DOINGS.subscribe(listener);
  return () => {
    DOINGS.unsubscribe(listener);
  };
}

/** A span for each request to a webhook: the question, the answer, and its duration. */
interface TracedRequest {
  readonly method: string;
  /** as sent; its secret goes nowhere */
  readonly path: string;
  /** as a caller that traces sends it */
  readonly traceparent: string | undefined;
}

interface TracedAnswer {
  readonly status: number;
  readonly body: string;
}

/** Returns the result of `answer()`. `values`: further facts about the request. */
type TraceRequest = <T>(
  request: TracedRequest,
  answer: () => Promise<T>,
  seen: (answered: T) => TracedAnswer,
  values?: DoingValues,
) => Promise<T>;

/** Probes come all day. */
const UNTRACED: ReadonlySet<string> = new Set(["/healthz", READY_PATH]);
const ROUTES: ReadonlySet<string> = new Set(
  [...Object.values(PATHS), ANNOUNCE_SIDECARSET_PATH].filter((path) => typeof path === "string"),
);

/** `later`: runs work after the answer is sent, if there is such a time. */
function requestTracer({ tracer, current }: Scope, later: (work: () => void) => void): TraceRequest {
  const begin = (request: TracedRequest, values: DoingValues): Span | undefined => {
    const { path } = splitPath(request.path);
    if (UNTRACED.has(path)) return undefined;
    const route = ROUTES.has(path) ? { "http.route": path } : {};
    const attributes = attributesOf({ "http.request.method": request.method, ...route, ...values });
    const name = ROUTES.has(path) ? `${request.method} ${path}` : request.method;
    return tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parentOf(request.traceparent));
  };
  return async (request, answer, seen, values = {}) => {
    let span: Span | undefined;
    harmless(() => {
      span = begin(request, values);
    })();
    const own = span;
    if (own === undefined) return answer();
    const answered = await current.run(own, answer);
    const endedAt = new Date();
    later(
      harmless(() => {
        const answer = seen(answered);
        // The span of an unknown caller is never sent: nobody can fill a collector from outside.
        if (answer.status !== 401) endSpan(own, endingOf(answer), endedAt);
      }),
    );
    return answered;
  };
}

const TRACEPARENT = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/;

/** Source: W3C Trace Context. An invalid header counts as absent. */
function parentOf(traceparent: string | undefined) {
  const [, traceId = "", spanId = "", flags = ""] = TRACEPARENT.exec(traceparent ?? "") ?? [];
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  return contextOf(isSpanContextValid(context) ? trace.wrapSpanContext(context) : undefined);
}

/** Longer answers, such as conversions of many objects, are not parsed for a span. */
const MAX_READ = 256 * 1024;

function endingOf({ status, body }: TracedAnswer): Ending {
  const values = { "http.response.status_code": status };
  if (status !== 200) return { values, failure: status >= 500 ? `HTTP ${status}` : undefined };
  const { response } =
    body.length > MAX_READ || !body.startsWith("{") ? {} : (JSON.parse(body) as Partial<AdmissionReview>);
  if (response?.allowed === undefined) return { values };
  const patch = Buffer.from(response.patch ?? "", "base64");
  return {
    values: {
      ...values,
      "sidecarset.admission.uid": response.uid,
      "sidecarset.admission.allowed": response.allowed,
      "sidecarset.admission.code": response.status?.code,
      "sidecarset.admission.patch_size": patch.length,
      "sidecarset.admission.sidecarsets": patch.length === 0 ? undefined : injectedIn(patch.toString()),
    },
  };
}

/** Names of the SidecarSets in the patch of a pod; undefined: the patch is not a pod's, or has none. */
function injectedIn(patch: string): readonly string[] | undefined {
  const at = `/metadata/annotations/${pointerStep(INJECTED_LIST_ANNOTATION)}`;
  for (const operation of JSON.parse(patch) as readonly JsonPatchOperation[]) {
    if (!("value" in operation)) continue;
    const { path, value } = operation as { readonly path: string; readonly value: unknown };
    const all = path === "/metadata/annotations" ? (value as Readonly<Record<string, unknown>>) : {};
    const list = path === at ? value : all[INJECTED_LIST_ANNOTATION];
    if (typeof list === "string") return list.split(",");
  }
  return undefined;
}

/** The common state of all makers of spans: the open span, and a guard against their failures. */
interface Scope {
  readonly tracer: Tracer;
  /** the parent span of the current work; it follows awaited calls */
  readonly current: AsyncLocalStorage<Span | undefined>;
}

/** A span's context, for its children. */
function contextOf(span: Span | undefined): Context {
  return span === undefined ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, span);
}

function attributesOf(values: DoingValues): Attributes {
  return { ...values } as Attributes;
}

/** Limit of problems that a span lists. */
const MAX_PROBLEMS = 20;

function endSpan(span: Span, { values = {}, problems = [], failure }: Ending, endedAt?: Date): void {
  span.setAttributes(attributesOf(values));
  for (const problem of problems.slice(0, MAX_PROBLEMS)) span.addEvent("problem", { "sidecarset.problem": problem });
  if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
  span.end(endedAt);
}

/** The listener of a channel, which would end the process by throwing. */
function harmless<T extends readonly unknown[]>(work: (...given: T) => void): (...given: T) => void {
  return (...given) => {
    try {
      work(...given);
    } catch {
      // A span less.
    }
  };
}
