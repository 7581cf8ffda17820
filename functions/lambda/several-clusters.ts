/** A function for the API servers of several clusters, which share nothing. */
import { logWith } from "../../shared/cluster-log.ts";
import type { Log } from "../../shared/log.ts";
import { clusterEnvironment } from "../../shared/settings/cluster-table.ts";
import { ofCluster, splitClusterPath } from "../../shared/webhook/server/cluster-path.ts";
import type { HttpEvent, HttpHandler, Serve } from "./body.ts";
import { processClusters } from "./each-cluster.ts";

/** Settings that read no secret and accept no caller. */
const NOBODY = { AUTHENTICATION: "secret-path", PATH_DIGESTS: `/=${"A".repeat(43)}` };
/** Milliseconds before unusable settings are read again. */
const RETRY_MS = 10_000;

interface Served {
  readonly handler: HttpHandler;
  /** end of the validity, a time of `performance.now()`; absent: it stays valid */
  readonly until?: number;
}

/** A handler for each cluster. Each keeps its own connections, views, secrets and error states. */
export function severalClusters(serve: Serve, log: Log): HttpHandler {
  const table = processClusters();
  const stranger = serve(NOBODY, log, () => () => false);
  const failing = (error: unknown, name?: string) =>
    serve(NOBODY, name === undefined ? log : logWith(log, { cluster: name }), () => () => Promise.reject(error));
  const served = new Map<string, Served>();

  const create = async (name: string): Promise<Served> => {
    try {
      const { clusters, env } = await table();
      if (!clusters.has(name)) return { handler: stranger };
      const own = clusterEnvironment(clusters, name, { env, use: "webhooks" });
      return { handler: serve(own, logWith(log, { cluster: name }), ofCluster(name)) };
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
