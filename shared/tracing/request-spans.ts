/** A span of each request to a webhook: what was asked, what was answered, and how long that took. */
import { isSpanContextValid, type Span, SpanKind, trace } from "@opentelemetry/api";
import type { AdmissionReview } from "../api/admission.ts";
import { ANNOUNCE_SIDECARSET_PATH, INJECTED_LIST_ANNOTATION } from "../api/names.ts";
import type { DoingValues, Ending } from "../doings.ts";
import { pointerStep } from "../go/json/json-pointer.ts";
import type { JsonPatchOperation } from "../kube/port.ts";
import { splitPath } from "../webhook/server/authenticate.ts";
import * as PATHS from "../webhook/server/paths.ts";
import { READY_PATH } from "../webhook/server/ready-path.ts";
import { attributesOf, contextOf, endSpan, harmless, type Scope } from "./scope.ts";

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

/** The same as `answer()`. `values`: what else is known of the request. */
export type TraceRequest = <T>(
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

/** `later`: does it once the answer is on its way, where there is such a time. */
export function requestTracer({ tracer, current }: Scope, later: (work: () => void) => void): TraceRequest {
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
        // A stranger's is never sent: nobody fills a collector from outside.
        if (answer.status !== 401) endSpan(own, endingOf(answer), endedAt);
      }),
    );
    return answered;
  };
}

const TRACEPARENT = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/;

/** Source: W3C Trace Context. What is none is as if it were not there. */
function parentOf(traceparent: string | undefined) {
  const [, traceId = "", spanId = "", flags = ""] = TRACEPARENT.exec(traceparent ?? "") ?? [];
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  return contextOf(isSpanContextValid(context) ? trace.wrapSpanContext(context) : undefined);
}

/** Longer answers, such as conversions of many objects, are not read again for a span. */
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

/** Names of the SidecarSets whose sidecars a patch of a pod brings; undefined: it is none of a pod, or has none. */
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
