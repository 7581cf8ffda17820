/** Tells whether admissions work now, for probes. One answer serves all probes within a moment. */
import { type Log, rateLimited } from "../../log.ts";
import { type HttpAnswer, textAnswer, within } from "../server/http.ts";
import { publicMessage } from "./response.ts";

export interface ReadinessOptions {
  readonly log: Log;
  /** Rejects, or throws, while admissions do not work; known callers get its message. */
  readonly checkReady?: () => unknown;
}

/** `isStranger`: the caller is unauthenticated, and learns only yes or no. */
export type Readiness = (isStranger: boolean) => Promise<HttpAnswer>;

const TIMEOUT_MS = 5_000;
/** Milliseconds for which an answer is kept, because it may cost a call to the API server. */
const KEPT_MS = 1_000;

export function readiness({ log, checkReady }: ReadinessOptions): Readiness {
  const say = rateLimited<unknown>((requests, error) => log.warn("not ready", { requests, error }));
  /** The problem; undefined: none. */
  const ask = async (): Promise<unknown> => {
    try {
      await within(TIMEOUT_MS, async () => checkReady?.());
      return undefined;
    } catch (error) {
      return error ?? "not ready";
    }
  };
  let last: { readonly at: number; readonly problem: Promise<unknown> } | undefined;
  return async (isStranger) => {
    if (last === undefined || performance.now() - last.at >= KEPT_MS) last = { at: performance.now(), problem: ask() };
    const problem = await last.problem;
    if (problem === undefined) return textAnswer(200, "ok");
    say(problem);
    return textAnswer(503, isStranger ? "not ready, the log says why" : publicMessage(problem));
  };
}
