/** Tests traces of the processes `serve` and `tick`, which answer and exit whatever a collector does. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { CLI, runCli } from "../cli/run-cli.ts";
import { deploy, type HttpsCluster, release, startHttpsCluster } from "../controller/fixture.ts";
import { admissionReview } from "../lambda/http-event.ts";
import { newPod } from "../support/objects.ts";
import { PATIENT } from "../support/patient.ts";
import { type Collector, childrenOf, startCollector } from "./collector.ts";

let folder: string;
let cluster: HttpsCluster;
let kubeconfig: string;
let collector: Collector;
let hanging: Collector;
const children: ChildProcess[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-traces-"));
  cluster = await startHttpsCluster();
  kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, cluster.kubeconfig);
  [collector, hanging] = [await startCollector(), await startCollector("hangs")];
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});
afterAll(async () => {
  await Promise.all([collector.close(), hanging.close(), cluster.close()]);
  await rm(folder, { recursive: true, force: true });
});

async function serve(url: string, tick: string) {
  const args = ["serve", "--port=0", "--host=127.0.0.1", "--no-tls", "--insecure", `--tick=${tick}`];
  const env = {
    ...process.env,
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
  };
  const child = spawn(process.execPath, [CLI, ...args, `--kubeconfig=${kubeconfig}`], { env });
  children.push(child);
  let logged = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    logged += text;
  });
  const port = await vi.waitUntil(() => /"serving","port":(\d+)/.exec(logged)?.[1], PATIENT);
  const ask = async () => {
    const beganAt = performance.now();
    const answer = await fetch(`http://127.0.0.1:${port}/mutate-pod?timeout=10s`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: admissionReview(POD, ["", "v1", "pods"]),
    });
    expect(answer.status).toBe(200);
    await answer.text();
    return performance.now() - beganAt;
  };
  const stop = async () => {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    const [code] = await exited;
    return code as number | null;
  };
  return { ask, stop, logged: () => logged };
}

const POD = newPod(
  { name: "web", namespace: "shop", labels: { app: "none" } },
  { containers: [{ name: "web", image: "nginx:1" }] },
);

describe("traces of serve:", () => {
  test("serve sends separate traces for requests and passes, also before it exits", async () => {
    const { ask, stop } = await serve(collector.url, "1s");
    await ask();
    expect(await stop()).toBe(0);
    const spans = await collector.until((all) => all.some(({ kind }) => kind === "server"));
    const [request] = spans.filter(({ kind }) => kind === "server");
    expect(request).toMatchObject({
      name: "POST /mutate-pod",
      parentSpanId: undefined,
      values: { "sidecarset.admission.allowed": true, "sidecarset.admission.patch_size": 0 },
      resource: { "service.name": "sidecarset-serverless", "deployment.environment.name": "test" },
    });
    const [pass] = spans.filter(({ name }) => name === "pass");
    expect(pass).toMatchObject({ parentSpanId: undefined, failure: undefined });
    expect(pass?.traceId).not.toBe(request?.traceId);
    if (pass === undefined) throw new Error("no span");
    expect(childrenOf(pass, spans).map(({ name }) => name)).toContain("LIST sidecarsets");
    // The exporter's own calls have no span.
    expect(spans.filter(({ name, kind }) => kind === "client" && name === "POST")).toEqual([]);
  });

  test("serve answers without delay and exits although the collector hangs", async () => {
    const { ask, stop } = await serve(hanging.url, "1s");
    await ask();
    await vi.waitUntil(() => hanging.requests() > 0, PATIENT);
    const took: number[] = [];
    for (let at = 0; at < 20; at++) took.push(await ask());
    // An export is given up after some seconds. A busy machine delays only some answers.
    expect(Math.min(...took)).toBeLessThan(1_000);
    expect(await stop()).toBe(0);
  });

  test("serve refuses an invalid address of a collector in one sentence", async () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4318" };
    const { code, stderr } = await runCli(
      ["serve", "--port=0", "--no-tls", "--insecure", `--kubeconfig=${kubeconfig}`],
      env,
    );
    expect([code, stderr]).toEqual([
      1,
      "OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318 is no address of a collector; write one such as http://localhost:4318.\n",
    ]);
  });
});

describe("traces of tick:", () => {
  test("tick sends the trace of its pass before it exits", async () => {
    await deploy(cluster.cluster, "ticked", 2, { maxUnavailable: 2 });
    await release(cluster.cluster, "ticked", 2, { maxUnavailable: 2 });
    const before = collector.spans().length;
    const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces` };
    const { code, stdout } = await runCli(["tick", "--sidecarset=ticked", `--kubeconfig=${kubeconfig}`], env);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { sidecarSets: [{ name: "ticked", stop: "settled" }] }]);
    const spans = collector.spans().slice(before);
    expect(spans.filter(({ parentSpanId }) => parentSpanId === undefined).map(({ name }) => name)).toEqual(["pass"]);
    expect(spans.filter(({ name }) => name === "PATCH pods")).toHaveLength(2);
  });

  test("tick prints its report and exits with code 0 although the collector hangs", async () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: hanging.url };
    const { code, stdout } = await runCli(["tick", "--sidecarset=ticked", `--kubeconfig=${kubeconfig}`], env);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { sidecarSets: [{ name: "ticked", stop: "settled" }] }]);
  });
});
