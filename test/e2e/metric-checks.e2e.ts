/** Tests batches that wait for a real Prometheus, on a real control plane. */
import { mkdtemp, readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { METRICS_ANNOTATION } from "../../shared/api/names.ts";
import type { StatusCondition } from "../../shared/api/sidecarset.ts";
import { type Gates, metricsAsker } from "../../shared/approval/batch-gates.ts";
import type { JsonPatchOperation } from "../../shared/kube/port.ts";
import { parsePrometheus } from "../../shared/settings/called-services.ts";
import { scenes } from "./support/open-scene.ts";
import { removeAtEnd } from "./support/processes.ts";
import { type Prometheus, startPrometheus } from "./support/prometheus.ts";
import { imageOf, type Scene, setImage } from "./support/scene.ts";
import { eventually, until } from "./support/until.ts";

let prometheus: Prometheus;
let metrics: Server;
/** The value that Prometheus scrapes; absent: no such metric. */
let errors: number | undefined;
beforeAll(async () => {
  metrics = createServer((_, response) => response.end(errors === undefined ? "" : `agent_errors ${errors}\n`));
  await new Promise<void>((resolve) => metrics.listen(0, "127.0.0.1", resolve));
  const folder = await mkdtemp(join(tmpdir(), "metrics-e2e-"));
  removeAtEnd(folder);
  prometheus = await startPrometheus(folder, `127.0.0.1:${(metrics.address() as AddressInfo).port}`);
});
afterAll(async () => {
  await prometheus?.process.stop();
  metrics?.close();
});

const batchGates: Gates = {
  refusals: new Map(),
  measure: async (...question) => {
    const measure = metricsAsker(parsePrometheus(`${prometheus.url}=private`, undefined));
    return measure ? measure(...question) : { nothing: "there is no server" };
  },
};
const openScene = scenes({ roles: ["undo"], batchGates });

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] };
}

async function query(text: string): Promise<Answer> {
  const body = new URLSearchParams({ query: text });
  return (await (await fetch(`${prometheus.url}/api/v1/query`, { method: "POST", body })).json()) as Answer;
}

async function scraped(value: number | undefined): Promise<void> {
  errors = value;
  const wanted = value === undefined ? undefined : String(value);
  await until(
    `Prometheus has scraped ${wanted}`,
    async () => (await query("agent_errors")).data.result[0]?.value[1] === wanted,
  );
}

function check(more: object): JsonPatchOperation {
  const value = JSON.stringify([{ name: "errors", query: "sum(agent_errors)", max: 2, intervalSeconds: 1, ...more }]);
  return { op: "add", path: `/metadata/annotations/${METRICS_ANNOTATION.replace("/", "~1")}`, value };
}

async function untilBlocked(scene: Scene, wanted: Partial<Record<keyof StatusCondition, unknown>>): Promise<void> {
  await eventually(
    async () => (await scene.set()).status?.conditions?.find(({ type }) => type === "Blocked"),
    (condition) => expect(condition).toMatchObject(wanted),
  );
}

const images = async (scene: Scene) => (await scene.pods()).map((pod) => imageOf(pod, "agent"));

it("no batch begins before Prometheus has a value, and every batch begins while the value is within the bound", async () => {
  await scraped(undefined);
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 1 } });
  await scene.deploy(2);
  await scene.untilSettled();
  await scene.patchSet(check({}), setImage("agent:v2"));
  await untilBlocked(scene, {
    status: "True",
    reason: "Metrics",
    message: "the check errors says nothing: no series matches its query; no batch begins until it passes",
  });
  expect(await images(scene)).toEqual(["agent:v1", "agent:v1"]);
  await scraped(1);
  await scene.untilUpdated(2);
  await untilBlocked(scene, { status: "False" });
});

it("a value beyond the bound takes the release back if the annotation asks for it", async () => {
  await scraped(1);
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 1 } });
  await scene.deploy(3);
  await scene.untilSettled();
  await scraped(7);
  await scene.patchSet(check({ onFailure: "undo" }), setImage("agent:v2"));
  await eventually(
    async () => (await scene.set()).status?.conditions?.find(({ type }) => type === "Undone"),
    (condition) => expect(condition?.message).toContain("the check errors is at 7, which has to be at most 2"),
  );
  expect((await scene.set()).spec.containers?.map(({ image }) => image)).toEqual(["agent:v1"]);
  expect(await images(scene)).toEqual(["agent:v1", "agent:v1", "agent:v1"]);
});

it("Prometheus can read every query of docs/metric-checks.md", async () => {
  const page = await readFile(join(import.meta.dirname, "../../docs/metric-checks.md"), "utf8");
  const queries = [...page.matchAll(/```promql\n(.*?)\n```/gs)].map(([, text = ""]) => text);
  expect(queries.length).toBeGreaterThanOrEqual(3);
  for (const text of queries)
    expect(await query(text.replaceAll("$(NAME)", "log-agent"))).toMatchObject({ status: "success" });
  expect(await query("sum(")).toMatchObject({ status: "error" });
});
