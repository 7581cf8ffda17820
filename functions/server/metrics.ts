/** /metrics, on a port of its own: it asks nobody who he is, so it is for the cluster's own network. */
import { Hono } from "hono";
import { ANNOUNCE_SIDECARSET_PATH } from "../../shared/api/names.ts";
import { CONTENT_TYPE, createMetrics, type Metrics } from "../../shared/metrics/prometheus.ts";
import { isFromApiServer } from "../../shared/webhook/review/app.ts";
import type { Answerer, HttpRequest } from "../../shared/webhook/server/http.ts";
import { serveHttps, type WebhookServer } from "../../shared/webhook/server/https-server.ts";
import * as PATHS from "../../shared/webhook/server/paths.ts";
import { READY_PATH } from "../../shared/webhook/server/ready-path.ts";
import { askPages } from "./pages.ts";

export interface MeteredServer {
  readonly metrics: Metrics;
  /** The same answers, counted. */
  readonly metered: (app: Answerer) => Answerer;
  readonly server: WebhookServer;
}

/**
 * `ofPasses`: their numbers, where another thread has them.
 * @throws ServerError when the port cannot be had
 */
export async function serveMetrics(
  port: number,
  host: string | undefined,
  ofPasses: () => Promise<string> = async () => "",
): Promise<MeteredServer> {
  const metrics = createMetrics();
  const pages = new Hono()
    .get("/metrics", async (context) =>
      context.body(metrics.text() + (await ofPasses()), 200, { "content-type": CONTENT_TYPE }),
    )
    .notFound((context) => context.text("there is /metrics here, and nothing else", 404));
  const app: Answerer = (request) => askPages(pages, request, request.path);
  const server = await serveHttps(app, { port, ...(host === undefined ? {} : { host }) });
  return { metrics, metered: (app) => counted(app, metrics), server };
}

function counted(app: Answerer, metrics: Metrics): Answerer {
  return async (request) => {
    const beganAt = performance.now();
    const answer = await app(request);
    metrics.addRequest(webhookOf(request, answer.status), answer.status, (performance.now() - beganAt) / 1000);
    return answer;
  };
}

const ASKED = [...Object.values(PATHS), ANNOUNCE_SIDECARSET_PATH, "/healthz", READY_PATH];
const NAMES: ReadonlySet<string> = new Set(ASKED.flatMap((path) => (typeof path === "string" ? lastOf(path) : [])));
const PAGE = /^(\/s\/[^/]+)?\/ui(\/|$)/;

function lastOf(path: string): string {
  return path.split("/").at(-1) ?? "";
}

/** Anyone can ask for anything, and pages have names of pods in their paths: what is no webhook of ours has one name. */
function webhookOf(request: HttpRequest, status: number): string {
  const { path } = request;
  // An alert counts callers that are refused at the path of a webhook, and none of our probes.
  if (status === 404 || (status === 401 && !isFromApiServer(request))) return "none";
  if (PAGE.test(path)) return "page";
  return NAMES.has(lastOf(path)) ? lastOf(path) : "none";
}
