/** Traces of a process that is no function of Lambda's, where OpenTelemetry's variables ask for them. */
import type { Log } from "../../shared/log.ts";
import { readTracing } from "../../shared/settings/config.ts";
import type { Tracing } from "../../shared/tracing/tracing.ts";
import type { Answerer } from "../../shared/webhook/server/http.ts";

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

// The last line of a process that ends by an uncaught error, without any secret.

/** Lines of a process that goes on are written this soon. */
const WRITTEN_MS = 50;
/** The longest wait for slow readers of the last lines. */
const MOST_MS = 1_000;

/**
 * Logs crashes: Node alone would print the bare error, and lose lines that a pipe has not taken yet. The exit code is
 * 1.
 */
export function logCrashes(log: Log): void {
  const end = () => process.exit(1);
  process.on("uncaughtException", (error) => {
    log.error("the process ends by an error that was not caught", { error });
    setTimeout(() => process.stdout.write("", end), WRITTEN_MS);
    setTimeout(end, MOST_MS);
  });
}

// Ends a process that has finished its work.

/** The time in which last lines are printed. */
const PRINTED_MS = 100;

/** Ends the process soon, also while calls run that nobody waits for: a silent API server keeps one for 30 seconds. */
export function endSoon(): void {
  setTimeout(() => process.exit(), PRINTED_MS).unref();
}
