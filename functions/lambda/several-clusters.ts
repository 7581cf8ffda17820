/** A function that answers the API servers of several clusters, each as if it were alone. */
import { clusterLog } from "../../shared/cluster-log.ts";
import type { Log } from "../../shared/log.ts";
import { clusterEnvironment } from "../../shared/settings/cluster-table.ts";
import { ofCluster, splitClusterPath } from "../../shared/webhook/server/cluster-path.ts";
import { NOT_CARRIED } from "../../shared/webhook/server/http.ts";
import type { HttpEvent, HttpHandler, HttpResult, Serve } from "./body.ts";
import { processClusters } from "./process-clusters.ts";

/** With these no secret is read, and none is known. */
const NOBODY = { AUTHENTICATION: "secret-path", PATH_DIGESTS: `/=${"A".repeat(43)}` };
/** What could not be used is looked at again after this long. */
const RETRY_MS = 10_000;

interface Served {
  readonly handler: HttpHandler;
  /** of `performance.now()`; absent: for good */
  readonly until?: number;
}

/** Connections, views, secrets and trouble of a cluster are its own: it is served by a handler of its own. */
export function severalClusters(serve: Serve, log: Log): HttpHandler {
  const table = processClusters();
  const stranger = serve(NOBODY, log, () => () => false);
  const failing = (error: unknown, name?: string) =>
    serve(NOBODY, name === undefined ? log : clusterLog(log, name), () => () => Promise.reject(error));
  const served = new Map<string, Served>();

  const create = async (name: string): Promise<Served> => {
    try {
      const { clusters, env } = await table();
      if (!clusters.has(name)) return { handler: stranger };
      const own = clusterEnvironment(clusters, name, { env, use: "webhooks" });
      const ownLog = clusterLog(log, name);
      return { handler: breaking(serve(own, ownLog, ofCluster(name)), (message) => ownLog.warn(message)) };
    } catch (error) {
      return { handler: failing(error, name), until: performance.now() + RETRY_MS };
    }
  };
  const handlerOf = async (name: string): Promise<HttpHandler> => {
    const known = served.get(name);
    if (known !== undefined && performance.now() < (known.until ?? Number.POSITIVE_INFINITY)) return known.handler;
    const made = await create(name);
    if (made.handler !== stranger) served.set(name, made);
    return made.handler;
  };
  table().catch((error: unknown) => log.error("the table of clusters cannot be used", { error }));
  return async (event) => {
    const split = splitClusterPath("rawPath" in event ? event.rawPath : event.path);
    if (split === undefined) return stranger(event);
    return (await handlerOf(split.cluster))(at(event, split.path));
  };
}

function at(event: HttpEvent, path: string): HttpEvent {
  return "rawPath" in event ? { ...event, rawPath: path } : { ...event, path };
}

// Keeps a cluster whose API server does not answer from holding a function's environments for all the time that each request has.

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

/** The longer time of two clocks: one may stand still while the process is frozen. */
function sinceMs({ wall, steady }: Moment): number {
  return Math.max(Date.now() - wall, performance.now() - steady);
}

function isRefused({ statusCode = 200, body }: HttpResult): boolean {
  // A tenant's pod of which the answer is too large says nothing about the cluster.
  if (statusCode >= 500 && body?.includes(NOT_CARRIED)) return true;
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
