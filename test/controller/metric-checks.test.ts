/** Tests passes whose batches wait for metrics. An HTTP server answers as Prometheus does. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { METRICS_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { batchGates, metricsAsker } from "../../shared/approval/batch-gates.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import type { Log } from "../../shared/log.ts";
import { parsePrometheus } from "../../shared/settings/called-services.ts";
import { offTheClock } from "../support/virtual-time.ts";
import {
  deploy,
  imageOf,
  KRUISE_NAMESPACE,
  readPods,
  readSet,
  release,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";

let local: TestCluster;
let server: http.Server;
/** the query's value; undefined: no series */
let value: string | undefined;
const queries: string[] = [];
const authorizations: (string | undefined)[] = [];

beforeAll(async () => {
  local = await startTestCluster();
  server = http.createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    authorizations.push(request.headers.authorization);
    queries.push(new URLSearchParams(Buffer.concat(parts).toString()).get("query") ?? "");
    const result = value === undefined ? [] : [{ metric: {}, value: [1, value] }];
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ status: "success", data: { resultType: "vector", result } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => {
  server?.close();
  local?.close();
});

async function pass(sidecarSet: string, deadlineMs: number) {
  const { port } = server.address() as AddressInfo;
  const ask = metricsAsker(parsePrometheus(`http://127.0.0.1:${port}=private`, undefined));
  const measure = ask && ((...asked: Parameters<typeof ask>) => offTheClock(() => ask(...asked)));
  const [report] = (
    await runPass(local.cluster, {
      kruiseNamespace: KRUISE_NAMESPACE,
      deadlineMs,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: true,
      sidecarSet,
      gates: { refusals: new Map(), ask: async () => ({ allow: true }), ...(measure ? { measure } : {}) },
    })
  ).sidecarSets;
  return report;
}

async function begun(name: string, check: object): Promise<void> {
  await deploy(local.cluster, name, 3, { maxUnavailable: 1 });
  await pass(name, 12_000);
  const checks = [{ name: "errors", query: 'sum(errors{set="$(NAME)"})', intervalSeconds: 1, ...check }];
  await local.cluster.patch<SidecarSet>(
    SIDECARSETS,
    { name },
    { type: "merge", body: { metadata: { annotations: { [METRICS_ANNOTATION]: JSON.stringify(checks) } } } },
  );
  queries.length = 0;
  await release(local.cluster, name, 2, { maxUnavailable: 1 });
}

const blockedOf = ({ status }: SidecarSet) => status?.conditions?.find(({ type }) => type === "Blocked");

test("a batch begins only with a metric value within the bound, and each check is queried once per batch", async () => {
  value = undefined;
  await begun("measured", { max: 5 });
  await pass("measured", 4_000);
  expect(versionsOf(await readPods(local.cluster, "measured"))).toEqual(["1", "1", "1"]);
  expect(queries.length).toBeGreaterThan(0);
  expect(new Set(queries)).toEqual(new Set(['sum(errors{set="measured"})']));
  expect(blockedOf(await readSet(local.cluster, "measured"))).toMatchObject({ status: "True", reason: "Metrics" });

  value = "5";
  queries.length = 0;
  expect((await pass("measured", 20_000))?.why).toBe("3 of 3 pods updated, 3 of them ready");
  expect(queries).toHaveLength(3);
  expect(blockedOf(await readSet(local.cluster, "measured"))).toMatchObject({ status: "False" });
});

describe("the token of the metrics server:", () => {
  const log: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const measureBy = (token: string | undefined) => {
    const { port } = server.address() as AddressInfo;
    const env = { PROMETHEUS_SERVER: `http://127.0.0.1:${port}=private` };
    const { measure } = batchGates(log, { env: token === undefined ? env : { ...env, PROMETHEUS_TOKEN: token } });
    return measure?.("up", 2_000);
  };
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "metrics-token-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("a token is read from its file and sent as a bearer token, and no header is sent without a token", async () => {
    value = "1";
    authorizations.length = 0;
    await writeFile(join(folder, "token"), "t0p-secret\n");
    expect(await measureBy(join(folder, "token"))).toEqual({ values: ["1"] });
    expect(await measureBy(undefined)).toEqual({ values: ["1"] });
    expect(authorizations).toEqual(["Bearer t0p-secret", undefined]);
  });

  test.each([
    ["does not exist", undefined, /^the token cannot be had: .*absent/],
    [
      "has a token that would break the header",
      "t0p secret",
      /^the token cannot be had: .*has characters that no bearer token has/,
    ],
  ])(
    "no metric is queried when the token's file %s, and the error does not show the token",
    async (_, text, message) => {
      authorizations.length = 0;
      const place = join(folder, text === undefined ? "absent" : "broken");
      if (text !== undefined) await writeFile(place, text);
      const measured = await measureBy(place);
      expect(measured).toEqual({ nothing: expect.stringMatching(message) });
      expect(JSON.stringify(measured)).not.toContain("t0p");
      expect(authorizations).toEqual([]);
    },
  );
});

test("a rollout is undone when more values exceed the bound than failuresAllowed and onFailure is undo", async () => {
  value = "0.5";
  await begun("beyond", { max: 0.1, failuresAllowed: 1, onFailure: "undo" });
  const report = await pass("beyond", 12_000);
  expect(report?.tally.undone).toContain("the check errors is at 0.5, which has to be at most 0.1");
  const back = await readSet(local.cluster, "beyond");
  expect(back.spec.containers?.[0]?.image).toBe(imageOf(1));
  expect(new Set(versionsOf(await readPods(local.cluster, "beyond")))).toEqual(new Set(["1"]));
  expect(queries).toHaveLength(2);
});
