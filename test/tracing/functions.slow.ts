/** Tests traces of the deployed bundles in their own processes, as a collector reads them. */
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { traced } from "../../functions/lambda/traced.ts";
import { bundle, bundleTraced } from "../../infra/build.ts";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { prepareSubjects, type Subject } from "../bench/lambda-subjects.ts";
import { deploy, type HttpsCluster, release, startHttpsCluster } from "../controller/fixture.ts";
import { type FunctionProcess, startFunction } from "../lambda/runtime-process.ts";
import { PATIENT } from "../support/patient.ts";
import { type Collector, childrenOf, type SentSpan, startCollector } from "./collector.ts";

const TIMEOUT_MS = 60_000;
const TRACEPARENT = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };

let folder: string;
let collector: Collector;
let hanging: Collector;
const running: FunctionProcess[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-traces-"));
  await writeFile(join(folder, "traced.js"), await bundleTraced());
  [collector, hanging] = [await startCollector(), await startCollector("hangs")];
});
afterEach(async () => {
  for (const each of running.splice(0)) await each.kill();
});
afterAll(async () => {
  await collector.close();
  await hanging.close();
  await rm(folder, { recursive: true, force: true });
});

type Options = Parameters<typeof startFunction>[0];

async function start({ env, ...options }: Options, url: string | undefined, handler = "traced.handler") {
  await copyFile(join(folder, "traced.js"), join(options.folder, "traced.js"));
  const traces = url === undefined ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT: url };
  const started = await startFunction({ ...options, handler, env: { ...env, ...traces, OTEL_SERVICE_NAME: "ours" } });
  running.push(started);
  return started;
}

const ofTrace = ({ traceId }: SentSpan, spans: readonly SentSpan[]) => spans.filter((span) => span.traceId === traceId);

/** Expects that each span started and ended within its parent. */
function expectNested(spans: readonly SentSpan[]): void {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const nested = spans.flatMap((span) => {
    const parent = byId.get(span.parentSpanId ?? "");
    return parent === undefined ? [] : [[span, parent] as const];
  });
  expect(nested.length).toBeGreaterThan(0);
  for (const [span, parent] of nested) {
    expect(span.beganAtMs, span.name).toBeGreaterThanOrEqual(parent.beganAtMs - 1);
    expect(span.endedAtMs, `${span.name} in ${parent.name}`).toBeLessThanOrEqual(parent.endedAtMs + 1);
  }
}

describe("traces of a webhook:", () => {
  let local: LocalCluster;
  let pods: Subject;
  beforeAll(async () => {
    local = await startLocalCluster();
    const subjects = await prepareSubjects(folder, local);
    const found = subjects.find(({ name }) => name === "mutate-pod");
    if (found === undefined) throw new Error("no mutate-pod");
    pods = found;
  });
  afterAll(() => local.close());

  /** Returns the event with more headers and the API server's timeout. */
  function event(headers: object = {}, query = "timeout=30s"): object {
    const { headers: own, ...rest } = pods.event as { readonly headers: object };
    return { ...rest, rawQueryString: query, headers: { ...own, ...headers } };
  }

  test("a request has one span in its caller's trace, with a child span for each call to the API server", async () => {
    const { invoke } = await start(pods, collector.url);
    const beganAt = Date.now();
    const { traceId, spanId } = TRACEPARENT;
    const answer = await invoke(event({ traceparent: `00-${traceId}-${spanId}-01` }), TIMEOUT_MS);
    const tookMs = Date.now() - beganAt;
    expect(answer).toMatchObject({ statusCode: 200 });
    const spans = (await collector.until((all) => all.some((span) => span.traceId === traceId))).filter(
      (span) => span.traceId === traceId,
    );
    const [request, ...others] = spans.filter(({ kind }) => kind === "server");
    expect(others).toEqual([]);
    expect(request).toMatchObject({
      name: "POST /mutate-pod",
      parentSpanId: spanId,
      failure: undefined,
      problems: [],
      values: {
        "http.request.method": "POST",
        "http.route": "/mutate-pod",
        "http.response.status_code": 200,
        "faas.invocation_id": expect.stringMatching(/./),
        "sidecarset.admission.allowed": true,
        "sidecarset.admission.uid": expect.stringMatching(/./),
        "sidecarset.admission.sidecarsets": ["log-agent"],
      },
      resource: { "service.name": "ours", "faas.name": "test", "cloud.region": "eu-central-1" },
    });
    const { body } = answer as { readonly body: string };
    const { patch } = (JSON.parse(body) as { response: { patch: string } }).response;
    expect(request?.values["sidecarset.admission.patch_size"]).toBe(Buffer.from(patch, "base64").length);
    if (request === undefined) throw new Error("no span");
    expect(request.endedAtMs - request.beganAtMs).toBeLessThanOrEqual(tookMs);
    const calls = childrenOf(request, spans);
    expect(calls.map(({ name }) => name)).toContain("LIST sidecarsets");
    for (const { kind, values } of calls) expect([kind, values["server.address"]]).toEqual(["client", "127.0.0.1"]);
    const [list] = calls.filter(({ name }) => name === "LIST sidecarsets");
    expect(list).toMatchObject({ failure: undefined, values: { "http.response.status_code": 200 } });
    expectNested(spans);
  });

  test("a collector gets no secret and no span of a refused request", async () => {
    const { invoke } = await start(pods, collector.url);
    const before = collector.spans().length;
    const stranger = { ...event(), rawPath: "/mutate-pod" };
    expect(await invoke(stranger, TIMEOUT_MS)).toMatchObject({ statusCode: 401 });
    expect(await invoke(event(), TIMEOUT_MS)).toMatchObject({ statusCode: 200 });
    const spans = (await collector.until((all) => all.length > before)).slice(before);
    expect(spans.filter(({ kind }) => kind === "server")).toHaveLength(1);
    const [, secret = ""] = /^\/s\/([\w-]+)\//.exec((pods.event as { rawPath: string }).rawPath) ?? [];
    expect(secret.length).toBeGreaterThan(20);
    expect(collector.text()).not.toContain(secret);
    expect(collector.text()).not.toContain(local.token);
  });

  test("an unsampled request has no span, and a request with an invalid traceparent starts a new trace", async () => {
    const { invoke } = await start(pods, collector.url);
    const before = collector.spans().length;
    await invoke(event({ traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-00` }), TIMEOUT_MS);
    await invoke(event({ traceparent: `00-${"0".repeat(32)}-${"2".repeat(16)}-01` }), TIMEOUT_MS);
    const spans = (await collector.until((all) => all.length > before)).slice(before);
    const requests = spans.filter(({ kind }) => kind === "server");
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({ parentSpanId: undefined });
  });

  /** Returns the times of five answers without the first two. */
  async function times(url: string): Promise<readonly number[]> {
    const started = await start(pods, url);
    const took: number[] = [];
    for (let at = 0; at < 5; at++) {
      const beganAt = performance.now();
      expect(await started.invoke(event(), TIMEOUT_MS)).toMatchObject({ statusCode: 200 });
      took.push(performance.now() - beganAt);
    }
    return took.slice(2);
  }

  test("a collector that hangs delays only the first answers", async () => {
    const requests = hanging.requests();
    const took = await times(hanging.url);
    await vi.waitFor(() => expect(hanging.requests()).toBeGreaterThan(requests), PATIENT);
    // With waiting each answer would take 300 ms more. A busy machine delays some answers, and not all.
    expect(Math.min(...took)).toBeLessThan(300);
  });

  test("a collector that hangs delays the answer by a quarter of the API server's timeout", async () => {
    vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", hanging.url);
    vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers().unstubAllEnvs());
    const requests = hanging.requests();
    const context = { awsRequestId: "a", getRemainingTimeInMillis: () => TIMEOUT_MS };
    let isAnswered = false;
    const answer = traced(async () => ({ statusCode: 200 }))(event({}, "timeout=1s"), context).then(() => {
      isAnswered = true;
    });
    while (hanging.requests() === requests) await sleep(5);
    vi.advanceTimersByTime(249);
    await sleep(5);
    expect(isAnswered).toBe(false);
    vi.advanceTimersByTime(1);
    await answer;
  });

  test("a collector that refuses connections delays no later answer and is logged once", async () => {
    const closed = await startCollector();
    await closed.close();
    const took = await times(closed.url);
    expect(Math.min(...took)).toBeLessThan(300);
    const lines = running.flatMap(({ logLines }) => logLines());
    const said = lines.filter((line) => "message" in line && line.message === "spans could not be sent");
    expect(said).toHaveLength(1);
  });

  test.each([
    ["with the untraced handler", "index.handler", () => collector.url],
    ["without the collector's variable", "traced.handler", () => undefined],
  ])("a function %s sends no spans", async (_, handler, url) => {
    const before = collector.requests();
    const { invoke } = await start(pods, url(), handler);
    expect(await invoke(event(), TIMEOUT_MS)).toMatchObject({ statusCode: 200 });
    expect(await invoke(event(), TIMEOUT_MS)).toMatchObject({ statusCode: 200 });
    expect(collector.requests()).toBe(before);
  });

  test("an invalid variable for traces is logged as an error, and the function still answers", async () => {
    const started = await start({ ...pods, env: { ...pods.env, OTEL_TRACES_SAMPLER: "some" } }, collector.url);
    expect(await started.invoke(event(), TIMEOUT_MS)).toMatchObject({ statusCode: 200 });
    const [line] = started.logLines();
    expect(line).toMatchObject({ level: "error", message: "there are no traces" });
    expect(JSON.stringify(line)).toContain("OTEL_TRACES_SAMPLER=some is not one of always_on");
  });
});

describe("traces of a pass:", () => {
  let cluster: HttpsCluster;
  let options: Options;
  beforeAll(async () => {
    cluster = await startHttpsCluster();
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, cluster.kubeconfig);
    options = { folder: join(folder, "rollout-function"), env: { KUBECONFIG: kubeconfig, LOG_LEVEL: "error" } };
    await bundle("rollout", options.folder);
  });
  afterAll(() => cluster.close());

  async function prepare(name: string): Promise<void> {
    await deploy(cluster.cluster, name, 3, { maxUnavailable: 3 });
    await release(cluster.cluster, name, 2, { maxUnavailable: 3 });
  }

  test("a pass has a span, with child spans for the SidecarSet, its lists, its decision and its writes", async () => {
    await prepare("traced");
    const { invoke } = await start(options, collector.url);
    const before = collector.spans().length;
    await invoke({ sidecarSet: "traced" }, TIMEOUT_MS);
    const all = (await collector.until((spans) => spans.slice(before).some(({ name }) => name === "invocation"))).slice(
      before,
    );
    const [invocation] = all.filter(({ name }) => name === "invocation");
    if (invocation === undefined) throw new Error("no span");
    const spans = ofTrace(invocation, all);
    expect(spans).toEqual(all);
    expectNested(spans);
    const [pass, ...others] = childrenOf(invocation, spans).filter(({ kind }) => kind !== "client");
    expect(others).toEqual([]);
    expect(pass).toMatchObject({
      name: "pass",
      failure: undefined,
      values: { "sidecarset.pass.dry_run": false, "sidecarset.name": "traced", "sidecarset.pass.sidecarsets": 1 },
    });
    if (pass === undefined) throw new Error("no span");
    const [begin, follow] = childrenOf(pass, spans).filter(({ kind }) => kind !== "client");
    expect([begin?.name, follow?.name]).toEqual(["begin", "follow"]);
    expect(follow?.values).toMatchObject({
      "sidecarset.name": "traced",
      "sidecarset.stop": "settled",
      "sidecarset.pods.upgraded": 3,
    });
    if (begin === undefined) throw new Error("no span");
    const parts = childrenOf(begin, spans);
    expect(parts.filter(({ kind }) => kind !== "client").map(({ name }) => name)).toEqual(["look", "decide", "write"]);
    const [look, , write] = parts.filter(({ kind }) => kind !== "client");
    expect(look?.values).toMatchObject({ "sidecarset.pods.matched": 3 });
    expect(write?.values).toMatchObject({ "sidecarset.pods.written": 3, "sidecarset.pods.refused": 0 });
    if (look === undefined || write === undefined) throw new Error("no span");
    expect(childrenOf(look, spans).map(({ name }) => name)).toContain("LIST pods");
    const patches = childrenOf(write, spans).filter(({ name }) => name === "PATCH pods");
    expect(patches.map(({ values }) => values["http.response.status_code"])).toEqual([200, 200, 200]);
    // Each of the three pods has its own span.
    expect(new Set(patches.map(({ values }) => values["sidecarset.kubernetes.object"])).size).toBe(3);
  });

  test(
    "an unreachable cluster is an error in the spans of the pass and of the invocation",
    async () => {
      const kubeconfig = join(folder, "nowhere");
      await writeFile(kubeconfig, cluster.kubeconfig.replace(/server: .*/, "server: https://127.0.0.1:1"));
      const { invoke } = await start({ ...options, env: { ...options.env, KUBECONFIG: kubeconfig } }, collector.url);
      const before = collector.spans().length;
      await expect(invoke({}, TIMEOUT_MS)).rejects.toThrow(/127.0.0.1/);
      const all = (
        await collector.until((spans) => spans.slice(before).some(({ name }) => name === "invocation"))
      ).slice(before);
      const failed = all.filter(({ failure }) => failure !== undefined);
      expect(failed.map(({ name }) => name)).toEqual(
        expect.arrayContaining(["LIST sidecarsets", "pass", "invocation"]),
      );
      const [pass] = failed.filter(({ name }) => name === "pass");
      expect(pass?.problems.join()).toContain("127.0.0.1");
    },
    TIMEOUT_MS,
  );

  test("the span of an invocation that fails is sent before the invocation ends", async () => {
    vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
    onTestFinished(() => void vi.unstubAllEnvs());
    const requests = collector.requests();
    const fail = traced(() => Promise.reject(new Error("a fault")));
    const context = { awsRequestId: "a", getRemainingTimeInMillis: () => TIMEOUT_MS };
    await expect(fail({}, context)).rejects.toThrow("a fault");
    expect(collector.requests()).toBeGreaterThan(requests);
  });

  test("log lines have Lambda's keys and the id of the invocation", async () => {
    const started = await start({ ...options, env: { ...options.env, LOG_LEVEL: "info" } }, undefined, "index.handler");
    await started.invoke({ sidecarSet: "traced" }, TIMEOUT_MS);
    const lines = started.logLines();
    expect(lines.length).toBeGreaterThan(1);
    for (const line of lines)
      expect(line).toMatchObject({
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/),
        level: expect.stringMatching(/^(info|warn)$/),
        message: expect.stringMatching(/^(pass|SidecarSet traced)$/),
        requestId: "request-1",
      });
  });

  test("a pass completes its rollout although the collector hangs", async () => {
    await prepare("unseen");
    const { invoke } = await start(options, hanging.url);
    const report = (await invoke({ sidecarSet: "unseen" }, TIMEOUT_MS)) as PassReport;
    expect(report.sidecarSets).toMatchObject([{ name: "unseen", stop: "settled", tally: { upgraded: 3 } }]);
  });
});
