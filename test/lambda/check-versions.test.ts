/** Tests the checker of new versions with the real functions, and a fake AWS that calls these functions. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import {
  type handler as check,
  eventOf,
  questionsFor,
  type VersionAnswer,
} from "../../functions/lambda/check-versions.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { pathDigestsOf, registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { type ServedCluster, startServedCluster } from "../webhook/cluster.ts";

// The checker's waits take a hundredth of their time.
vi.mock("node:timers/promises", async (original) => {
  const timers = await original<typeof import("node:timers/promises")>();
  return { ...timers, setTimeout: (ms: number, value?: unknown) => timers.setTimeout(ms / 100, value) };
});

type Answer = APIGatewayProxyStructuredResultV2 | { readonly errorMessage: string };
type Handler = (event: APIGatewayProxyEventV2) => Promise<Answer>;

const WEBHOOKS = ["mutate-pod", "mutate-sidecarset", "validate-sidecarset", "convert-sidecarset"];
const PATHS = [
  "/mutate-pod",
  "/mutate-apps-kruise-io-sidecarset",
  "/validate-apps-kruise-io-sidecarset",
  "/convert",
  "/readyz",
];
const HOOK = { DeploymentId: "d-1", LifecycleEventHookExecutionId: "hook-1" };

let cluster: ServedCluster;
let aws: Server;
let served: ReadonlyMap<string, Handler>;
/** WEBHOOK:QUALIFIER → a handler that replaces the real function */
const instead = new Map<string, Handler>();
const statuses: unknown[] = [];
let refusals = 0;
let run: typeof check;

/** Loads the functions of a deployment with digests. */
async function load(secret: string): Promise<ReadonlyMap<string, Handler>> {
  vi.resetModules();
  delete process.env["PATH_SECRETS"];
  process.env["PATH_DIGESTS"] = printPathDigests(pathDigestsOf([secret], PATHS));
  const loaded = WEBHOOKS.map(async (name) => {
    const module = (await import(`../../functions/lambda/${name}.ts`)) as { readonly handler: Handler };
    return [name, module.handler] as const;
  });
  const all = new Map(await Promise.all(loaded));
  delete process.env["PATH_DIGESTS"];
  process.env["PATH_SECRETS"] = "arn:aws:ssm:eu-central-1:123456789012:parameter/sidecarset/test/path-secrets";
  return all;
}

beforeAll(async () => {
  cluster = await startServedCluster();
  // Every pod gets this sidecar, also the checker's test pod.
  await cluster.client.create(SIDECARSETS, {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: "everywhere" },
    spec: {
      selector: { matchExpressions: [{ key: "no-sidecar", operator: "DoesNotExist" }] },
      containers: [{ name: "log-agent", image: "fluent-bit:3" }],
    },
  } as never);
  aws = createServer(async (request, response) => {
    const body = JSON.parse((await text(request)) || "{}") as Record<string, unknown>;
    const answer = await answerOf(`${request.headers["x-amz-target"] ?? request.url}`, body);
    response.writeHead(answer === undefined ? 403 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer ?? { __type: "AccessDeniedException" }));
  }).listen(0, "127.0.0.1");
  await once(aws, "listening");
  Object.assign(process.env, {
    KUBECONFIG: cluster.kubeconfig,
    LOG_LEVEL: "error",
    AUTHENTICATION: "secret-path",
    AWS_ACCESS_KEY_ID: "AKIAEXAMPLE",
    AWS_SECRET_ACCESS_KEY: "example-secret-key",
    AWS_ENDPOINT_URL: `http://127.0.0.1:${(aws.address() as AddressInfo).port}`,
    VERSIONS: WEBHOOKS.map(
      (name) => `${name}=arn:aws:lambda:eu-central-1:123456789012:function:sidecarset-test-${name}:7`,
    ).join(","),
  });
  served = await load(cluster.pathSecret);
  ({ handler: run } = await import("../../functions/lambda/check-versions.ts"));
});
afterAll(async () => {
  aws.close();
  await cluster.close();
});
afterEach(() => {
  instead.clear();
  statuses.length = 0;
  refusals = 0;
});

async function answerOf(asked: string, body: Record<string, unknown>): Promise<unknown> {
  const [, name = "", qualifier = ""] =
    /functions\/sidecarset-test-([a-z-]+)\/invocations\?Qualifier=(\w+)$/.exec(asked) ?? [];
  if (name !== "") {
    if (refusals-- > 0) return undefined;
    const handler = instead.get(`${name}:${qualifier}`) ?? served.get(name);
    return handler?.(body as unknown as APIGatewayProxyEventV2);
  }
  if (asked === "AmazonSSM.GetParameter") return { Parameter: { Value: `${cluster.pathSecret}\n` } };
  if (asked !== "CodeDeploy_20141006.PutLifecycleEventHookExecutionStatus") return undefined;
  statuses.push(body);
  return { lifecycleEventHookExecutionId: "hook-1" };
}

const told = (status: "Succeeded" | "Failed") => [
  { deploymentId: "d-1", lifecycleEventHookExecutionId: "hook-1", status },
];

test.each(WEBHOOKS)("%s answers every question of the checker correctly", async (name) => {
  const questions = questionsFor(name, true, {});
  expect(questions.length).toBeGreaterThan(0);
  for (const question of questions) {
    const event = eventOf(question, registeredPath(cluster.pathSecret, question.path), {});
    const answer = (await served.get(name)?.(event)) as VersionAnswer;
    expect(question.problemOf(answer)).toBeUndefined();
  }
});

test.each(WEBHOOKS)("%s answers the questions that need no client certificate correctly", async (name) => {
  const questions = questionsFor(name, false, {});
  expect(questions.length).toBeGreaterThan(0);
  for (const question of questions) {
    const isProven = question.purpose === "conversion";
    const path = isProven ? registeredPath(cluster.pathSecret, question.path) : question.path;
    const answer = (await served.get(name)?.(eventOf(question, path, {}))) as VersionAnswer;
    expect(question.problemOf(answer)).toBeUndefined();
  }
});

test("the checker accepts working versions and reports success to CodeDeploy", async () => {
  expect(await run(HOOK)).toEqual({ status: "Succeeded", problems: [] });
  expect(statuses).toEqual(told("Succeeded"));
});

/** Returns version 7 of mutate-pod with a changed body. */
const changed = (change: (body: string) => string): Handler => {
  return async (event) => {
    const answer = (await served.get("mutate-pod")?.(event)) as APIGatewayProxyStructuredResultV2;
    return { ...answer, body: change(answer.body ?? "") };
  };
};

test.each<[string, string, Handler, string]>([
  [
    "fails at its start",
    "mutate-pod",
    async () => ({ errorMessage: "Cannot find module './x.js'" }),
    "mutate-pod, version 7: /readyz ended without an answer: Cannot find module './x.js'; the version that serves does better",
  ],
  [
    "answers with an error",
    "validate-sidecarset",
    async () => ({ statusCode: 500, body: "x is undefined" }),
    "validate-sidecarset, version 7: /validate-apps-kruise-io-sidecarset answered 500 where 200 is right: x is undefined; the version that serves does better",
  ],
  [
    "refuses a valid pod",
    "mutate-pod",
    changed((body) => body.replace('"allowed":true', '"allowed":false')),
    "mutate-pod, version 7: /mutate-pod refused what is valid; the version that serves does better",
  ],
  [
    "injects no sidecar",
    "mutate-pod",
    changed((body) => body.replace(/,"patch":"[^"]*"/, "")),
    "mutate-pod, version 7: /mutate-pod gives a pod no log-agent, as the version that serves does",
  ],
  [
    "fills in no defaults",
    "mutate-sidecarset",
    async () => ({ statusCode: 200, body: '{"response":{"uid":"u","allowed":true}}' }),
    "mutate-sidecarset, version 7: /mutate-apps-kruise-io-sidecarset filled in no defaults; the version that serves does better",
  ],
  [
    "converts nothing",
    "convert-sidecarset",
    async () => ({ statusCode: 200, body: '{"response":{"result":{"status":"Failure"}}}' }),
    "convert-sidecarset, version 7: /convert converted nothing; the version that serves does better",
  ],
])("the checker refuses a version that %s", async (_, name, handler, problem) => {
  instead.set(`${name}:7`, handler);
  const { status, problems } = await run(HOOK);
  expect(status).toBe("Failed");
  expect(problems).toContain(problem);
  expect(statuses).toEqual(told("Failed"));
});

test("the checker refuses a version that knows another secret than the registered one", async () => {
  const others = await load("A".repeat(43));
  instead.set("mutate-pod:7", others.get("mutate-pod") as Handler);
  const { status, problems } = await run(HOOK);
  expect([status, problems.length]).toEqual(["Failed", 2]);
  expect(problems[1]).toContain("/mutate-pod answered 401 where 200 is right");
});

test("the checker compares versions by a pod with the labels of SAMPLE_LABELS", async () => {
  process.env["SAMPLE_LABELS"] = "no-sidecar=true,app=web";
  instead.set(
    "mutate-pod:7",
    changed((body) => body.replace(/,"patch":"[^"]*"/, "")),
  );
  expect(await run(HOOK)).toEqual({ status: "Succeeded", problems: [] });
  delete process.env["SAMPLE_LABELS"];
});

test("the checker accepts a version that fails in the same way as the serving version", async () => {
  const down: Handler = async () => ({ statusCode: 503, body: "the API server cannot be reached" });
  for (const qualifier of ["7", "live"]) instead.set(`mutate-pod:${qualifier}`, down);
  expect(await run(HOOK)).toEqual({ status: "Succeeded", problems: [] });
});

test("the checker asks again after one wrong answer", async () => {
  let asked = 0;
  instead.set("convert-sidecarset:7", async (event) => {
    asked += 1;
    if (asked === 1) return { statusCode: 500, body: "just started" };
    return (await served.get("convert-sidecarset")?.(event)) as Answer;
  });
  expect(await run(HOOK)).toEqual({ status: "Succeeded", problems: [] });
  expect(asked).toBe(2);
});

test("the checker waits for its rights, and refuses all versions when AWS keeps denying them", async () => {
  refusals = 5;
  expect(await run(HOOK)).toEqual({ status: "Succeeded", problems: [] });
  refusals = Number.POSITIVE_INFINITY;
  const { status, problems } = await run(HOOK);
  expect([status, problems]).toEqual(["Failed", ["lambda in eu-central-1 answered 403 AccessDeniedException"]]);
});
