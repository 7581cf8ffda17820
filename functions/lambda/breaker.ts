/** Keeps a cluster whose API server does not answer from holding a function's environments for all the time that each request has. */
import { NOT_CARRIED } from "../../shared/webhook/server/http.ts";
import type { HttpResult } from "./body.ts";
import type { HttpHandler } from "./handler.ts";

/** What fails sooner holds nothing up: a refused connection, a certificate or a token that is not taken. */
const SLOW_MS = 1_000;
/** One may be chance. */
const IN_A_ROW = 2;
export const OPEN_MS = 10_000;

interface Open {
  readonly answer: HttpResult;
  readonly since: Moment;
}

interface Moment {
  readonly wall: number;
  readonly steady: number;
}

/** After failures that took long, for ten seconds the answer is 503 at once; then one request tries again. `say`: what the log says of it. */
export function breaking(handler: HttpHandler, say: (message: string) => void): HttpHandler {
  let failures = 0;
  let open: Open | undefined;
  const judge = (result: HttpResult, tookMs: number) => {
    const { statusCode = 200 } = result;
    // A tenant's pod of which the answer is too large says nothing about the cluster.
    if (result.body?.includes(NOT_CARRIED)) return;
    failures = statusCode >= 500 && tookMs > SLOW_MS ? failures + 1 : 0;
    if (failures === IN_A_ROW) say("the cluster does not answer: for ten seconds its requests are answered with 503");
    open = failures < IN_A_ROW ? undefined : { answer: refusal(result), since: moment() };
  };
  return async (event) => {
    const before = open;
    if (before !== undefined && sinceMs(before.since) < OPEN_MS) return before.answer;
    if (before !== undefined) open = { ...before, since: moment() };
    const begun = moment();
    const result = await handler(event);
    // A stranger proves nothing, neither that the cluster answers nor that it does not: the next one tries.
    if (isRefused(result)) open = before;
    else judge(result, sinceMs(begun));
    return result;
  };
}

const moment = (): Moment => ({ wall: Date.now(), steady: performance.now() });

/** By whichever clock says more: one may stand still while the process is frozen. */
function sinceMs({ wall, steady }: Moment): number {
  return Math.max(Date.now() - wall, performance.now() - steady);
}

function isRefused({ statusCode = 200 }: HttpResult): boolean {
  return statusCode >= 400 && statusCode < 500;
}

function refusal(result: HttpResult): HttpResult {
  const message = "the cluster did not answer the requests before this one; it is asked again within ten seconds";
  const status = {
    apiVersion: "v1",
    kind: "Status",
    status: "Failure",
    code: 503,
    reason: "ServiceUnavailable",
    message,
  };
  return { ...result, statusCode: 503, body: JSON.stringify(status) };
}
