/** Reads the API server's stream of watch events: one JSON object a line. */
import type { KubernetesObject } from "../api/kubernetes.ts";
import { listQuery, pathOf, queryOf } from "./calls.ts";
import { errorOfStatus, refusal, unreadableAnswer } from "./failure.ts";
import type { Resource, WatchEvent, WatchOptions } from "./port.ts";
import { type ClusterAccess, type IncomingAnswer, MOST_OF_OBJECT, readBody, type Transport } from "./transport.ts";

/**
 * Ends when the server ends the stream, the connection breaks, or `signal` aborts: to continue, watch again from the
 * last resourceVersion. Throws KubeError for an ERROR event (410: list again) and for a refused watch.
 */
export async function* watchEvents<T extends KubernetesObject>(
  open: () => Promise<IncomingAnswer>,
  { signal, onOpen }: Pick<WatchOptions, "signal" | "onOpen"> = {},
): AsyncGenerator<WatchEvent<T>> {
  if (signal?.aborted) return;
  const answer = await openUnlessAborted(open, signal);
  if (!answer) return;
  onOpen?.();
  for await (const line of lines(answer)) {
    if (signal?.aborted) return;
    const event = parseEvent<T>(line, answer);
    if (event) yield event;
  }
}

async function openUnlessAborted(open: () => Promise<IncomingAnswer>, signal: AbortSignal | undefined) {
  try {
    return await open();
  } catch (error) {
    if (signal?.aborted) return undefined;
    throw error;
  }
}

/** Whole lines only: the rest after a broken connection is no event. */
async function* lines(answer: IncomingAnswer): AsyncGenerator<string> {
  answer.body.setEncoding("utf8");
  let rest = "";
  try {
    for await (const chunk of answer.body) {
      const parts = (rest + chunk).split("\n");
      rest = parts.pop() ?? "";
      yield* parts;
      // No object is this large: the stream ends like a broken one.
      if (rest.length > MOST_OF_OBJECT) return;
    }
  } catch {
    // A watch that breaks and a watch that ends mean the same to its reader.
  }
}

function parseEvent<T>(line: string, answer: IncomingAnswer): WatchEvent<T> | undefined {
  if (line.trim() === "") return undefined;
  let event: Partial<Record<"type" | "object", unknown>> | null;
  try {
    event = JSON.parse(line);
  } catch (cause) {
    throw unreadableAnswer(answer.attempt, answer.code, "has a watch event that is not JSON", cause);
  }
  if (event?.type === "ERROR") throw errorOfStatus(event.object, 500);
  if (typeof event?.type !== "string" || typeof event.object !== "object" || event.object === null)
    throw unreadableAnswer(answer.attempt, answer.code, "has a watch event without a type and an object");
  return event as WatchEvent<T>;
}

interface Way {
  readonly access: ClusterAccess;
  readonly transport: Transport;
  /** beyond the watch's own time */
  readonly timeoutMs: number;
}

/** The answer whose body is the stream; reported to the observer as it begins. */
export async function openWatch(
  { access, transport, timeoutMs }: Way,
  resource: Resource,
  options: WatchOptions,
): Promise<IncomingAnswer> {
  const query = {
    ...listQuery(options),
    watch: "true",
    allowWatchBookmarks: "true",
    timeoutSeconds: String(options.timeoutSeconds),
  };
  const begin = performance.now();
  let code = 0;
  try {
    const answer = await transport({
      method: "GET",
      path: pathOf(resource, options) + queryOf(query),
      timeoutMs: options.timeoutSeconds * 1000 + timeoutMs,
      ...(options.signal ? { signal: options.signal } : {}),
    });
    code = answer.code;
    if (code >= 300) throw refusal(answer.attempt, code, await readBody(answer).catch(() => ""), answer.retryAfter);
    return answer;
  } finally {
    const ms = Math.round(performance.now() - begin);
    access.onRequest?.({ verb: "WATCH", resource: resource.plural, code, ms, bytes: 0 });
  }
}
