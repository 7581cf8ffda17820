/** /metrics on a port of its own. It accepts every caller, so it is for the cluster's own network. */
import { Hono } from "hono";
import { ANNOUNCE_SIDECARSET_PATH } from "../../shared/api/names.ts";
import type { PassReport, SidecarSetReport } from "../../shared/controller/rollout/report.ts";
import { PASS_METRICS, prometheusName, SIDECARSET_METRICS } from "../../shared/metrics/catalogue.ts";
import { isFromApiServer } from "../../shared/webhook/review/refusals.ts";
import type { Answerer, HttpAnswer, HttpRequest } from "../../shared/webhook/server/http.ts";
import { serveHttps, type WebhookServer } from "../../shared/webhook/server/https-server.ts";
import * as PATHS from "../../shared/webhook/server/paths.ts";
import { READY_PATH } from "../../shared/webhook/server/ready-path.ts";
import type { ViewState } from "../../shared/webhook/view/cluster-view.ts";

export interface MeteredServer {
  readonly metrics: Metrics;
  /** returns the same answers, and counts them */
  readonly metered: (app: Answerer) => Answerer;
  readonly server: WebhookServer;
}

/**
 * `ofPasses`: metrics of passes in another thread. `ofView`: the present source of decisions on pods.
 * @throws ServerError if the port is not free
 */
export async function serveMetrics(
  port: number,
  host: string | undefined,
  ofPasses: () => Promise<string> = async () => "",
  ofView: () => ViewState | undefined = () => undefined,
): Promise<MeteredServer> {
  const metrics = createMetrics();
  const pages = new Hono()
    .get("/metrics", async (context) => {
      metrics.setView(ofView());
      return context.body(metrics.text() + (await ofPasses()), 200, { "content-type": CONTENT_TYPE });
    })
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

/** The webhook's name in metrics. Requests to unknown paths share one name, because anyone can request any path. */
function webhookOf(request: HttpRequest, status: number): string {
  const { path } = request;
  // An alert counts callers that a webhook's path refuses. Our own probes do not count.
  if (status === 404 || (status === 401 && !isFromApiServer(request))) return "none";
  if (PAGE.test(path)) return "page";
  return NAMES.has(lastOf(path)) ? lastOf(path) : "none";
}

/**
 * Metrics of a process that serves, as Prometheus reads them. Source: Prometheus, text-based exposition format 0.0.4.
 */
const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

const REQUESTS = "sidecarset_webhook_requests_total";
const DURATION = "sidecarset_webhook_request_duration_seconds";
const STATE = "sidecarset_state";
const VIEW = "sidecarset_webhook_view";
const LAST_PASS = "sidecarset_last_pass_timestamp_seconds";
/** Upper bounds of buckets, in seconds: admissions take milliseconds, and API servers wait ten seconds at most. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

type Labels = Readonly<Record<string, string>>;

interface Family {
  readonly help: string;
  readonly type: "gauge" | "counter" | "histogram";
  /** values of a metric, by its line without the value */
  readonly values: Map<string, number>;
}

export interface Metrics {
  /** Counts a pass after its end. `at`: epoch milliseconds. */
  readonly addPass: (report: PassReport, at: number) => void;
  /** Counts a request to a webhook after its answer. */
  readonly addRequest: (webhook: string, code: number, seconds: number) => void;
  /** sets the view's state; undefined: the process serves no webhook */
  readonly setView: (state: ViewState | undefined) => void;
  readonly text: () => string;
}

export function createMetrics(): Metrics {
  const families = new Map<string, Family>();
  const family = (name: string, type: Family["type"], help: string): Family => {
    const known = families.get(name) ?? { help, type, values: new Map() };
    families.set(name, known);
    return known;
  };
  const add = ({ values }: Family, line: string, value: number) => values.set(line, (values.get(line) ?? 0) + value);
  const requests = family(REQUESTS, "counter", "Requests to webhooks, by their HTTP status");
  const durations = family(DURATION, "histogram", "How long requests to webhooks took");
  const states = family(
    STATE,
    "gauge",
    "1 for the state that the condition Ready names (Updating, Blocked, Ready, …), and its cause: what holds the rollout, or PodsFail",
  );
  const views = family(
    VIEW,
    "gauge",
    "1 for how pods are decided on: where SidecarSets come from, and how the API server answers",
  );
  /** Labels of each SidecarSet in the last pass that reported it, by name. */
  const stands = new Map<string, Labels>();
  const lastPass = family(LAST_PASS, "gauge", "When the last pass ended");

  const addAll = <T>(metrics: typeof PASS_METRICS | typeof SIDECARSET_METRICS, report: T, labels: Labels) => {
    for (const { kind, help, of, ...metric } of metrics) {
      const name = prometheusName({ ...metric, kind });
      const value = (of as (report: T) => number | undefined)(report);
      const own = family(name, kind, help);
      if (value === undefined) continue;
      if (kind === "counter") add(own, line(name, labels), value);
      else own.values.set(line(name, labels), value);
    }
  };

  return {
    addPass: (report, at) => {
      lastPass.values.set(line(LAST_PASS, {}), at / 1000);
      addAll(PASS_METRICS, report, {});
      forgetOld(families, stands, report);
      for (const one of report.sidecarSets) {
        addAll(SIDECARSET_METRICS, one, { sidecarset: one.name });
        stands.set(one.name, { ...stands.get(one.name), ...standOf(one) });
      }
      states.values.clear();
      for (const [name, known] of stands)
        if (known["state"] !== undefined) states.values.set(line(STATE, { sidecarset: name, ...known }), 1);
    },
    addRequest: (webhook, code, seconds) => {
      add(requests, line(REQUESTS, { webhook, code: String(code) }), 1);
      for (const bound of BUCKETS)
        add(durations, line(`${DURATION}_bucket`, { webhook, le: String(bound) }), seconds <= bound ? 1 : 0);
      add(durations, line(`${DURATION}_bucket`, { webhook, le: "+Inf" }), 1);
      add(durations, line(`${DURATION}_sum`, { webhook }), seconds);
      add(durations, line(`${DURATION}_count`, { webhook }), 1);
    },
    setView: (state) => {
      views.values.clear();
      if (state !== undefined) views.values.set(line(VIEW, { ...state }), 1);
    },
    text: () => [...families].map(([name, one]) => printed(name, one)).join(""),
  };
}

/** The labels of a report. A failed pass knows the cause, but no state. */
function standOf({ state, cause }: SidecarSetReport): Labels {
  return { ...(state === undefined ? {} : { state }), ...(cause === undefined ? {} : { cause }) };
}

function forgetOld(families: ReadonlyMap<string, Family>, stands: Map<string, Labels>, report: PassReport): void {
  // Another replica makes the passes, and its metrics are newer.
  if (report.heldBy !== undefined) forget(families, stands, new Set(), ["gauge"]);
  // A pass that could not read says nothing about deleted SidecarSets.
  else if (report.failure === undefined) forget(families, stands, namesIn(report), ["gauge", "counter"]);
}

function namesIn({ sidecarSets, notReached }: PassReport): ReadonlySet<string> {
  return new Set([...sidecarSets.map(({ name }) => name), ...notReached]);
}

/** Removes the values of SidecarSets that `names` does not contain. */
function forget(
  families: ReadonlyMap<string, Family>,
  stands: Map<string, Labels>,
  names: ReadonlySet<string>,
  kinds: readonly Family["type"][],
): void {
  forgetOthers(stands, names);
  const present = new Set([...names].map((sidecarset) => line("", { sidecarset })));
  for (const metric of SIDECARSET_METRICS) {
    if (!kinds.includes(metric.kind)) continue;
    const { values } = families.get(prometheusName(metric)) ?? {};
    for (const key of values?.keys() ?? []) if (!present.has(key.slice(key.indexOf("{")))) values?.delete(key);
  }
}

function forgetOthers(stands: Map<string, Labels>, names: ReadonlySet<string>): void {
  for (const name of stands.keys()) if (!names.has(name)) stands.delete(name);
}

function printed(name: string, { help, type, values }: Family): string {
  const lines = [...values].map(([key, value]) => `${key} ${value}\n`);
  return lines.length === 0 ? "" : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function line(name: string, labels: Labels): string {
  const texts = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value)}"`);
  return texts.length === 0 ? name : `${name}{${texts.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

// Pages for people and Prometheus use hono; reviews, thousands a second, do not.

/** The answer of a hono app. `path` replaces the request's own path, which may hold a secret. */
export async function askPages(pages: Hono, { method, query }: HttpRequest, path: string): Promise<HttpAnswer> {
  const url = new URL(`http://pages${path}`);
  url.search = query;
  const response = await pages.fetch(new Request(url, { method }));
  return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
}
