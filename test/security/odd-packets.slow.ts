/** Sends odd packets of strangers to each port and each front door of a function: other callers must notice nothing. */

import { METHODS } from "node:http";
import { connect as connectPlain, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { lambdaWebhook } from "../../functions/lambda/http.ts";
import { type Server, startServer } from "../../functions/server/serve.ts";
import { createLog } from "../../shared/log.ts";
import { functionUrl, httpApi, loadBalancer, loadBalancerMultiValue } from "../lambda/events.ts";
import { addAttacks } from "../support/attacks.ts";
import { PATIENT } from "../support/patient.ts";
import { type ServedCluster, startServedCluster } from "../webhook/cluster.ts";

const lines: string[] = [];
let cluster: ServedCluster;
let server: Server;
beforeAll(async () => {
  cluster = await startServedCluster();
  const { kubeconfig, tls, authentication } = cluster;
  const log = createLog("info", (line) => lines.push(line));
  server = await startServer({ kubeconfig, ...tls, authentication, host: "127.0.0.1", port: 0, metricsPort: 0, log });
});
afterAll(async () => {
  await server.close();
  await cluster.close();
});

const GET = "GET /healthz HTTP/1.1\r\nhost: x\r\n";
const POST = "POST /mutate-pod HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
const many = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, at) => line(at)).join("");

const PACKETS: Readonly<Record<string, string>> = {
  nothing: "\r\n\r\n\r\n",
  zeros: "\0".repeat(70_000),
  "a greeting of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "a greeting of TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  "a greeting of SSH": "SSH-2.0-OpenSSH_9.9\r\n",
  "no version": "GET /healthz\r\n\r\n",
  "an old version": "GET /healthz HTTP/0.9\r\nhost: x\r\n\r\n",
  "a version to come": "GET /healthz HTTP/9.9\r\nhost: x\r\n\r\n",
  "no host": "GET /healthz HTTP/1.1\r\n\r\n",
  "two hosts": `${GET}host: y\r\nconnection: close\r\n\r\n`,
  "a method of its own": "BREW /pot HTTP/1.1\r\nhost: x\r\n\r\n",
  "a request that wants another protocol": `${GET}connection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-key: x\r\n\r\n`,
  "a request that wants plain HTTP/2": `${GET}connection: upgrade, http2-settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n`,
  "a body that waits to be asked for": `${POST}expect: 100-continue\r\ncontent-length: 5\r\nconnection: close\r\n\r\n`,
  "an expectation that nobody has": `${POST}expect: gold\r\ncontent-length: 5\r\nconnection: close\r\n\r\n`,
  "two lengths": `${POST}content-length: 5\r\ncontent-length: 6\r\n\r\nhello!`,
  "a length and pieces": `${POST}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  "pieces twice": `${POST}transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n`,
  "pieces that are no pieces": `${POST}transfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n`,
  "a piece of all bytes there are": `${POST}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nhello\r\n`,
  "a piece with a long word": `${POST}transfer-encoding: chunked\r\n\r\n1;${"x".repeat(70_000)}\r\na\r\n0\r\n\r\n`,
  "a trailer without end": `${POST}transfer-encoding: chunked\r\n\r\n0\r\n${many(5_000, (at) => `t${at}: x\r\n`)}\r\n`,
  "a length below zero": `${POST}content-length: -1\r\n\r\n`,
  "a length beyond numbers": `${POST}content-length: 99999999999999999999999\r\n\r\n`,
  "a length in words": `${POST}content-length: five\r\n\r\n`,
  "a long header": `${GET}x: ${"a".repeat(70_000)}\r\n\r\n`,
  "many headers": `${GET}${many(5_000, (at) => `h${at}: x\r\n`)}\r\n`,
  "headers of names that JavaScript knows": `${GET}__proto__: x\r\nconstructor: x\r\nhasownproperty: x\r\ntostring: x\r\nconnection: close\r\n\r\n`,
  "a header without a name": `${GET}: x\r\n\r\n`,
  "a header that goes on": `${GET}x: a\r\n b\r\n\r\n`,
  "a header with a zero": `${GET}x: a\0b\r\n\r\n`,
  "lines that end too early": GET.replaceAll("\r\n", "\n"),
  "lines that end with half": `${GET.replaceAll("\r\n", "\r")}\r\r`,
  "a hundred requests at once": `${many(99, () => `${GET}\r\n`)}${GET}connection: close\r\n\r\n`,
  "a request behind one that is refused": `${POST}content-length: 2\r\n\r\n{}${GET}connection: close\r\n\r\n`,
  "a request within a body": `TRACE / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n${GET}\r\n`,
  "a tunnel": "CONNECT 169.254.169.254:80 HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\n\r\n",
  "a token of zeros": `${POST}authorization: Bearer ${"\x01".repeat(100)}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}`,
};

function open(port: "webhooks" | "metrics" | "webhooks without TLS"): Socket {
  if (port === "webhooks") return connectTls({ host: "127.0.0.1", port: server.port, ca: cluster.tls.certificate });
  return connectPlain(port === "metrics" ? (server.metricsPort ?? 0) : server.port, "127.0.0.1");
}

/** Reads everything that the server sends until the connection ends, or until `until` resolves. */
function send(port: Parameters<typeof open>[0], packet: string, until: () => Promise<unknown>): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = open(port).setEncoding("latin1");
    const end = () => {
      socket.destroy();
      resolve(answer);
    };
    socket.on("data", (text) => {
      answer += text;
    });
    socket.on("error", () => undefined).on("close", end);
    socket.write(packet, "latin1", () => void until().then(end));
  });
}

/** True if a correct request is answered with 200. */
async function isAnswered(): Promise<boolean> {
  const packet = `${GET}connection: close\r\n\r\n`;
  return (await send("webhooks", packet, () => sleep(PATIENT.timeout))).startsWith("HTTP/1.1 200");
}

/** Waits briefly, and then for the answer to a later request. */
async function aMoment(): Promise<void> {
  await sleep(300);
  await isAnswered();
}

/** Returns the codes of answers that show a stranger more than that a server runs. */
function wrongOf(answer: string, isMetrics: boolean): readonly string[] {
  const codes = [...answer.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, code = ""]) => code);
  const isRight = (code: string) => code.startsWith("4") || code === "100" || (code === "200" && !isMetrics);
  return codes.filter((code) => !isRight(code));
}

test("no packet of a stranger reveals more than a running server, and the next correct request is answered", async () => {
  const ports = ["webhooks", "metrics", "webhooks without TLS"] as const;
  const tries = ports.flatMap((port) => Object.entries(PACKETS).map(([title, packet]) => ({ port, title, packet })));
  const wrong: string[] = [];
  let refused = 0;
  for (const { port, title, packet } of tries) {
    const answer = await send(port, packet, aMoment);
    if (/^HTTP\/1\.1 4/m.test(answer)) refused++;
    const codes = wrongOf(answer, port === "metrics");
    const isWell = await isAnswered();
    if (codes.length > 0 || !isWell) wrong.push(`${port}, ${title}: ${codes.join()} ${isWell}`);
  }
  addAttacks(tries.length, wrong.length);
  expect(wrong).toEqual([]);
  expect(tries.length).toBeGreaterThan(100);
  expect(refused).toBeGreaterThan(tries.length / 2);
  expect(lines.filter((line) => line.includes('"error"'))).toEqual([]);
  expect(lines.length).toBeLessThan(30);
});

const TARGETS = [
  "",
  "*",
  "*%",
  "//",
  "/%zz",
  "/..",
  "/s/",
  "/s//mutate-pod",
  `/${"a".repeat(10_000)}`,
  "http://x/mutate-pod",
  "/\u0000",
];
const DOORS = { functionUrl, httpApi, loadBalancer, loadBalancerMultiValue };
/** Functions that break an event. */
const BREAKS: Readonly<Record<string, (event: object) => object>> = {
  "as it is": (event) => event,
  "without headers": (event) => ({ ...event, headers: undefined, multiValueHeaders: undefined }),
  "without a body": (event) => ({ ...event, body: null }),
  "with a body that is no base64": (event) => ({ ...event, body: "%%%", isBase64Encoded: true }),
  "with a query that is none": (event) => ({ ...event, rawQueryString: undefined, queryStringParameters: null }),
};

test("each door of a function answers every broken event with 401", async () => {
  const settings = { AUTHENTICATION: "secret-path", PATH_SECRETS: cluster.pathSecrets, LOG_LEVEL: "error" };
  for (const [name, value] of Object.entries(settings)) vi.stubEnv(name, value);
  const handler = lambdaWebhook(() => ({ admissions: { "/mutate-pod": () => ({ kind: "allowed" }) } }));
  vi.unstubAllEnvs();
  const tries = Object.entries(DOORS).flatMap(([door, eventOf]) =>
    Object.entries(BREAKS).flatMap(([how, broken]) =>
      METHODS.flatMap((method) =>
        TARGETS.map((path) => ({
          title: `${door} ${how}, ${method} ${path.slice(0, 30)}`,
          event: broken(eventOf({ method, path, body: "{" })) as Parameters<typeof handler>[0],
        })),
      ),
    ),
  );
  const wrong: string[] = [];
  for (const { title, event } of tries) {
    const code = await handler(event).then(({ statusCode = 0 }) => statusCode, String);
    if (code !== 401) wrong.push(`${title}: ${code}`);
  }
  addAttacks(tries.length, wrong.length);
  expect(wrong.slice(0, 10)).toEqual([]);
  expect(tries.length).toBeGreaterThan(5_000);
});
