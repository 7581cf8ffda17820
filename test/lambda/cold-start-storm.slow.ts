/**
 * Tests a thousand cold starts of mutate-pod, as when every node of a cluster is replaced. The deployed bundle runs
 * each time with its own connection to a real API over TLS. A fake AWS counts its calls.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { Agent, request, createServer as serveTls, type Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import { createCertificates } from "../../infra/local/http/https-server.ts";
import { printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { pathDigestsOf, registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { prepareSubjects, type Subject } from "../bench/lambda-subjects.ts";
import { freshFunction } from "./fresh-function.ts";

const COUNT = 1_000;
/**
 * The most cold starts at once. One machine simulates a thousand, so only the number of calls counts, and not their
 * time.
 */
const AT_ONCE = 10;
/** Number of starts that is enough to count the calls of each. */
const FEW = 100;
/** The most calls a second. Source: Secrets Manager quotas, GetSecretValue. */
const SECRETS_MANAGER_LIMIT = 10_000;
const SECRET = randomBytes(32).toString("base64url");

let folder: string;
let cluster: LocalCluster;
let subject: Subject;
let front: TlsServer;
let aws: Server;
const asked: string[] = [];
const tokens = new Set<string>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-storm-"));
  cluster = await startLocalCluster();
  const found = (await prepareSubjects(folder, cluster)).find(({ name }) => name === "mutate-pod");
  if (found === undefined) throw new Error("there is no mutate-pod");
  subject = found;
  aws = createServer((incoming, answer) => {
    asked.push(String(incoming.headers["x-amz-target"] ?? incoming.url));
    answer.writeHead(200, { "content-type": "application/x-amz-json-1.1" });
    answer.end(JSON.stringify({ SecretString: cluster.token }));
  });
  front = await eksFront(cluster);
  await Promise.all([aws, front].map((server) => new Promise<void>((done) => server.listen(0, "127.0.0.1", done))));
});
afterAll(async () => {
  for (const server of [aws, front]) {
    server?.closeAllConnections();
    await new Promise((closed) => server?.close(closed));
  }
  await cluster?.close();
  await rm(folder, { recursive: true, force: true });
});

let authority: string;

/** Starts the cluster's API for callers with a token of EKS. Such a token is a signed request to STS. */
async function eksFront({ url, caCertificate, token }: LocalCluster): Promise<TlsServer> {
  const { authority: ours, certificate, key } = await createCertificates();
  authority = ours;
  const agent = new Agent({ keepAlive: true, ca: caCertificate });
  return serveTls({ cert: certificate, key }, (incoming, answer) => {
    const { authorization = "", ...headers } = incoming.headers;
    const [, signed = ""] = /^Bearer k8s-aws-v1\.([\w-]+)$/.exec(authorization) ?? [];
    if (!Buffer.from(signed, "base64url").toString().includes("Action=GetCallerIdentity")) {
      answer.writeHead(401).end();
      return;
    }
    tokens.add(signed);
    const { method } = incoming;
    const options = {
      agent,
      ...(method === undefined ? {} : { method }),
      headers: { ...headers, authorization: `Bearer ${token}` },
    };
    const outgoing = request(url + incoming.url, options, (inner) => {
      answer.writeHead(inner.statusCode ?? 502, inner.headers);
      inner.pipe(answer);
    });
    outgoing.on("error", () => answer.destroy());
    incoming.pipe(outgoing);
  });
}

/** Returns status → number of starts that got it, and how many pods got their sidecar. */
async function storm(count: number, variables: Readonly<Record<string, string>>) {
  const digests = printPathDigests(pathDigestsOf([SECRET], ["/mutate-pod"]));
  const env = {
    AUTHENTICATION: "secret-path",
    PATH_DIGESTS: digests,
    LOG_LEVEL: "error",
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "AKIA",
    AWS_SECRET_ACCESS_KEY: "x".repeat(40),
    AWS_ENDPOINT_URL: `http://127.0.0.1:${(aws.address() as AddressInfo).port}`,
    ...variables,
  };
  const event = { ...(subject.event as object), rawPath: registeredPath(SECRET, "/mutate-pod") };
  const statuses: Record<number, number> = {};
  let injected = 0;
  const start = async () => {
    const { statusCode, body } = await freshFunction(subject.folder, env)(event);
    statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
    if (body.includes('"patchType":"JSONPatch"')) injected++;
  };
  for (let begun = 0; begun < count; begun += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, start));
  return { statuses, injected };
}

const base64 = (pem: string) => Buffer.from(pem).toString("base64");

describe("cold starts of mutate-pod:", () => {
  test(`all ${COUNT} cold starts on EKS inject a pod without a call to AWS`, async () => {
    asked.length = 0;
    const EKS = { EKS_CLUSTER: "demo", CLUSTER_CA: base64(authority) };
    const server = `https://127.0.0.1:${(front.address() as AddressInfo).port}`;
    const before = Object.values(cluster.apiCalls()).reduce((sum, calls) => sum + calls, 0);
    expect(await storm(COUNT, { ...EKS, CLUSTER_SERVER: server })).toEqual({
      statuses: { 200: COUNT },
      injected: COUNT,
    });
    expect(asked).toEqual([]);
    expect(tokens.size).toBeGreaterThan(0);
    const calls = Object.values(cluster.apiCalls()).reduce((sum, one) => sum + one, 0) - before;
    process.stdout.write(`${COUNT} cold starts: 0 errors, 0 calls to AWS, ${calls} to the API server\n`);
    expect(calls).toBeLessThanOrEqual(3 * COUNT);
  });

  test("each cold start with a token in Secrets Manager reads the token once and injects a pod", async () => {
    asked.length = 0;
    const token = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:webhooks-AbCdEf";
    const known = { CLUSTER_TOKEN: token, CLUSTER_SERVER: cluster.url, CLUSTER_CA: base64(cluster.caCertificate) };
    expect(await storm(FEW, known)).toEqual({ statuses: { 200: FEW }, injected: FEW });
    expect(new Set(asked)).toEqual(new Set(["secretsmanager.GetSecretValue"]));
    expect(asked).toHaveLength(FEW);
    expect((asked.length / FEW) * COUNT).toBeLessThan(SECRETS_MANAGER_LIMIT);
  });

  test("after a warm-up ping the first pod of an environment makes no call to AWS, and a failed ping is no failure", async () => {
    const env = {
      AUTHENTICATION: "insecure",
      LOG_LEVEL: "error",
      AWS_REGION: "eu-central-1",
      AWS_ACCESS_KEY_ID: "AKIA",
      AWS_SECRET_ACCESS_KEY: "x".repeat(40),
      AWS_ENDPOINT_URL: `http://127.0.0.1:${(aws.address() as AddressInfo).port}`,
      CLUSTER_TOKEN: "arn:aws:secretsmanager:eu-central-1:123456789012:secret:webhooks-AbCdEf",
      CLUSTER_CA: base64(cluster.caCertificate),
    };
    asked.length = 0;
    const warm = freshFunction(subject.folder, { ...env, CLUSTER_SERVER: cluster.url });
    expect([(await warm({ keepWarm: true })).statusCode, asked.length]).toEqual([204, 1]);
    const { body } = await warm({ ...(subject.event as object), rawPath: "/mutate-pod" });
    expect([body.includes('"patchType":"JSONPatch"'), asked.length]).toEqual([true, 1]);
    const alone = freshFunction(subject.folder, { ...env, CLUSTER_SERVER: "https://127.0.0.1:1" });
    expect((await alone({ keepWarm: true })).statusCode).toBe(204);
    expect((await alone({ ...(subject.event as object), body: '{"keepWarm":true}', rawPath: "/" })).statusCode).toBe(
      404,
    );
  });

  test("a cold start without the address of its EKS cluster asks EKS once and answers 500 when EKS fails", async () => {
    asked.length = 0;
    const known = { EKS_CLUSTER: "demo", CLUSTER_SERVER: "", CLUSTER_CA: "" };
    const { statusCode } = await freshFunction(subject.folder, {
      AUTHENTICATION: "insecure",
      LOG_LEVEL: "error",
      AWS_REGION: "eu-central-1",
      AWS_ACCESS_KEY_ID: "AKIA",
      AWS_SECRET_ACCESS_KEY: "x".repeat(40),
      AWS_ENDPOINT_URL: `http://127.0.0.1:${(aws.address() as AddressInfo).port}`,
      ...known,
    })({ ...(subject.event as object), rawPath: "/mutate-pod" });
    // The fake AWS knows no cluster, so the webhook's failurePolicy decides about the pod.
    expect([statusCode, asked]).toEqual([500, ["/clusters/demo"]]);
  });
});
