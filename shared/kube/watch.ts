/** Reads the API server's stream of watch events: one JSON object a line. */
import type { KubernetesObject } from "../api/kubernetes.ts";
import { errorOfStatus, unreadableAnswer } from "./failure.ts";
import type { WatchEvent, WatchOptions } from "./port.ts";
import { type IncomingAnswer, MOST_OF_OBJECT } from "./transport.ts";

/**
 * Ends when the server ends the stream, when the connection breaks and when `signal` aborts: to go on, watch again from
 * the last resourceVersion seen. Throws KubeError for an ERROR event (410: list again) and for a watch that is refused.
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

/** Whole lines only: what a broken connection leaves behind is no event. */
async function* lines(answer: IncomingAnswer): AsyncGenerator<string> {
  answer.body.setEncoding("utf8");
  let rest = "";
  try {
    for await (const chunk of answer.body) {
      const parts = (rest + chunk).split("\n");
      rest = parts.pop() ?? "";
      yield* parts;
      // No object is so large: the stream ends as one that breaks.
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
