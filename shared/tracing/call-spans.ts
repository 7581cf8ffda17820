/** A span of each HTTP call that is a part of another span. Node reports them: the code that makes the calls knows nothing of spans. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientRequest, IncomingMessage } from "node:http";
import { type Attributes, isSpanContextValid, type Span, SpanKind } from "@opentelemetry/api";
import { contextOf, endSpan, harmless, type Scope } from "./scope.ts";

interface ClientCall {
  readonly request: ClientRequest;
  readonly response?: IncomingMessage;
  readonly error?: Error;
}

/** Where API servers have their objects, whatever stands before it. */
const OBJECTS =
  /\/(?:api\/v1|apis\/[^/?]+\/[^/?]+)(?:\/namespaces\/([^/?]+)(?=\/))?\/([^/?]+)(?:\/([^/?]+))?(?:\/([^/?]+))?(\?.*)?$/;

/** @returns stops it */
export function traceCalls({ tracer, current }: Scope): () => void {
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

/** Only what is said of Kubernetes' objects: other paths, and every query, may hold secrets. */
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

/** So that an API server that traces goes on with ours. */
function traceparentOf(span: Span): string {
  const context = span.spanContext();
  if (!isSpanContextValid(context)) throw new Error("no trace to go on with");
  return `00-${context.traceId}-${context.spanId}-${context.traceFlags.toString(16).padStart(2, "0")}`;
}
