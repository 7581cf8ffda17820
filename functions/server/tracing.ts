/** Traces of a process that is no function of Lambda's, where OpenTelemetry's variables ask for them. */
import type { Log } from "../../shared/log.ts";
import { readTracing } from "../../shared/settings/config.ts";
import type { Tracing } from "../../shared/tracing/tracing.ts";
import type { Answerer } from "../../shared/webhook/server/http.ts";
import { endSoon } from "./crash.ts";

/** The time for the last spans before the process ends. */
const LAST_MS = 1_000;

/** The same as `work`, traced. @throws ConfigError before it begins, for variables that cannot be used */
export async function withTraces<T>(log: Log, work: (tracing?: Tracing) => Promise<T>): Promise<T> {
  const settings = readTracing();
  if (settings === undefined) return work();
  const { startTracing } = await import("../../shared/tracing/tracing.ts");
  const tracing = startTracing(settings, { log });
  try {
    return await work(tracing);
  } finally {
    // A collector that does not answer would keep the process for as long as its library tries.
    if (!(await tracing.close(LAST_MS))) endSoon();
  }
}

/** The same answers; each is a span. */
export function tracedApp(app: Answerer, { traceRequest }: Tracing): Answerer {
  return (request) => {
    const { method, path, headers } = request;
    const asked = { method, path, traceparent: headers["traceparent"] };
    return traceRequest(
      asked,
      () => app(request),
      (answer) => answer,
    );
  };
}
