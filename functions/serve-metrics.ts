/** /metrics, on a port of its own: it asks nobody who he is, so it is for the cluster's own network. */
import { CONTENT_TYPE, createMetrics, type Metrics } from "../shared/metrics/prometheus.ts";
import { type Answerer, type HttpRequest, textAnswer } from "../shared/webhook/http.ts";
import { serveHttps, type WebhookServer } from "../shared/webhook/https-server.ts";

export interface MeteredServer {
  readonly metrics: Metrics;
  /** The same answers, counted. */
  readonly metered: (app: Answerer) => Answerer;
  readonly server: WebhookServer;
}

/** @throws ServerError when the port cannot be had */
export async function serveMetrics(port: number, host: string | undefined): Promise<MeteredServer> {
  const metrics = createMetrics();
  const app: Answerer = async ({ method, path }) => {
    if ((method === "GET" || method === "HEAD") && path === "/metrics")
      return { status: 200, headers: { "content-type": CONTENT_TYPE }, body: metrics.text() };
    return textAnswer(404, "there is /metrics here, and nothing else");
  };
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

/** The last part of the path. Strangers can ask for anything, so what is not there, or not for them, has one name. */
function webhookOf({ path }: HttpRequest, status: number): string {
  return status === 401 || status === 404 ? "none" : (path.split("/").at(-1) ?? "");
}
