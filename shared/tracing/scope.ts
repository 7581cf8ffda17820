/** What those share who make spans: which one is open, and that nothing of theirs fails what is traced. */
import type { AsyncLocalStorage } from "node:async_hooks";
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { DoingValues, Ending } from "../doings.ts";

export interface Scope {
  readonly tracer: Tracer;
  /** of which what is done now is a part; it goes along with what is awaited */
  readonly current: AsyncLocalStorage<Span | undefined>;
}

/** A span's context, for its children. */
export function contextOf(span: Span | undefined): Context {
  return span === undefined ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, span);
}

export function attributesOf(values: DoingValues): Attributes {
  return { ...values } as Attributes;
}

/** So many are told of one span. */
const MAX_PROBLEMS = 20;

export function endSpan(span: Span, { values = {}, problems = [], failure }: Ending, endedAt?: Date): void {
  span.setAttributes(attributesOf(values));
  for (const problem of problems.slice(0, MAX_PROBLEMS)) span.addEvent("problem", { "sidecarset.problem": problem });
  if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
  span.end(endedAt);
}

/** The listener of a channel, which would end the process by throwing. */
export function harmless<T extends readonly unknown[]>(work: (...given: T) => void): (...given: T) => void {
  return (...given) => {
    try {
      work(...given);
    } catch {
      // A span less.
    }
  };
}
