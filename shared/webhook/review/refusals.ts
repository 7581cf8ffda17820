/** Answers to unauthenticated callers, and to requests that are no review. Lambda's pod webhook loads it for them. */
import { type Log, rateLimited } from "../../log.ts";
import { type HttpAnswer, type HttpRequest, isRead, textAnswer } from "../server/http.ts";
import { READY_PATH } from "../server/ready-path.ts";
import type { Readiness } from "./readiness.ts";
import { refuse } from "./response.ts";

const UNAVAILABLE = "callers cannot be told from strangers now, the log says why";
/** How the names of our own probes begin, in their user agent. */
const PROBE = "sidecarset-";
const STRANGER = "the caller is not known here: docs/authentication.md says how to prove who you are";

/** An alarm counts the lines with the path of a webhook, where an API server may have asked. */
export function refusingStrangers(
  log: Log,
  reviews: ReadonlyMap<string, unknown>,
): (recognition: false | "cannot be told", request: HttpRequest) => HttpAnswer {
  // A flood of strangers hides no API server.
  const [sayStranger, sayRegistered] = [1, 2].map(() =>
    rateLimited<string | undefined>((requests, refusedPath) => {
      log.warn("request refused: the caller is not known", { code: 401, requests, refusedPath });
    }),
  );
  return (recognition, request) => {
    if (recognition !== false) return refuse(503, "ServiceUnavailable", UNAVAILABLE);
    if (reviews.has(request.path) && isFromApiServer(request)) sayRegistered?.(request.path);
    else sayStranger?.(undefined);
    return refuse(401, "Unauthorized", STRANGER);
  };
}

/** The project's own probes identify themselves, and prove nothing on purpose. */
export function isFromApiServer({ method, headers }: HttpRequest): boolean {
  return method === "POST" && !headers?.["user-agent"]?.startsWith(PROBE);
}

export function refuseMethod({ method, path }: HttpRequest): HttpAnswer {
  const answer = refuse(405, "MethodNotAllowed", `${method} is not allowed at ${path}, expected POST`);
  return { ...answer, headers: { ...answer.headers, allow: "POST" } };
}

/** Answers a known caller at a path that is no webhook's. */
export async function answerOther({ method, path }: HttpRequest, isReady: Readiness): Promise<HttpAnswer> {
  if (isRead(method) && path === "/healthz") return textAnswer(200, "ok");
  if (isRead(method) && path === READY_PATH) return isReady(false);
  return refuse(404, "NotFound", `there is no webhook at ${path}`);
}
