/** Measures how long an ordinary pod waits while the webhook decides on hostile pods, over real connections. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ATTACK_TIMES, addAttacks } from "../support/attacks.ts";
import { type HostilePod, hostilePods, madeUpPods } from "./hostile-pods.ts";

const HOSTILE = 3;
/** The number of slowest hostile pods that are tested. */
const SLOWEST = 8;
/** The number of rounds for a pod that seems slow, in turn with a body that is only parsed. */
const ROUNDS = 5;
/**
 * The longest allowed wait, as a multiple of the wait beside bodies of the same size that are only parsed and refused.
 */
const LIMIT = 2;
/** The least size that counts for a body, in bytes. */
const LEAST_BYTES = 1_500_000;

let server: ChildProcess;
let port: number;
const agent = new Agent({ keepAlive: true, maxSockets: HOSTILE + 1 });
beforeAll(async () => {
  const script = join(import.meta.dirname, "serve-pod-webhook.ts");
  server = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
  if (server.stdout === null) throw new Error("the server has no stdout");
  const [line] = await once(server.stdout, "data");
  port = Number(String(line));
});
afterAll(() => {
  agent.destroy();
  server?.kill();
});

interface Answered {
  readonly ms: number;
  readonly body: string;
}

function send(body: string): Promise<Answered> {
  const beganMs = performance.now();
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const options = { agent, host: "127.0.0.1", port, path: "/mutate-pod", method: "POST", headers };
    const outgoing = request(options, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("end", () => resolve({ ms: performance.now() - beganMs, body: Buffer.concat(chunks).toString() }));
    });
    outgoing.on("error", reject).end(body);
  });
}

function reviewOf(object: object): string {
  const resource = { group: "", version: "v1", resource: "pods" };
  const review = { uid: "u", operation: "CREATE", resource, namespace: "default", object };
  return JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request: review });
}

const ORDINARY = reviewOf({
  metadata: { name: "web", labels: { app: "main" } },
  spec: { containers: [{ name: "main", image: "nginx" }] },
});

/** Returns a body of short texts that the webhook parses, and refuses because of their number. */
function parsedOnly(bytes: number): string {
  const count = Math.max(bytes, LEAST_BYTES) / '{"name":"v1000"},'.length;
  return reviewOf({ list: Array.from({ length: count }, (_, index) => ({ name: `v${1_000 + (index % 9_000)}` })) });
}

/** Returns how long the ordinary pod waits, which is sent after the hostile ones. */
async function waitBeside(body: string): Promise<number> {
  const others = Array.from({ length: HOSTILE }, () => send(body));
  const { ms, body: answer } = await send(ORDINARY);
  await Promise.all(others);
  expect(answer).toContain('"patch"');
  return ms;
}

async function ratioOf({ body }: HostilePod): Promise<number> {
  const parsed = parsedOnly(body.length);
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS && least > LIMIT; round++)
    least = Math.min(least, (await waitBeside(body)) / (await waitBeside(parsed)));
  return least;
}

async function slowest(count: number): Promise<readonly HostilePod[]> {
  let timed: (readonly [HostilePod, number])[] = [];
  const take = async (pod: HostilePod) => {
    timed.push([pod, (await send(pod.body)).ms]);
    timed = timed.toSorted(([, a], [, b]) => b - a).slice(0, count);
  };
  const all = hostilePods();
  for (const pod of all) await take(pod);
  for (const pod of madeUpPods((ATTACK_TIMES - 1) * all.length)) await take(pod);
  return timed.map(([pod]) => pod);
}

test(
  "an ordinary pod waits at most twice as long for three hostile pods as for three parsed bodies",
  async () => {
    expect((await send(parsedOnly(0))).body).toContain("more than 20000 values");
    const slow: string[] = [];
    const pods = await slowest(SLOWEST * ATTACK_TIMES);
    let worst = 0;
    for (const pod of pods) {
      const ratio = await ratioOf(pod);
      worst = Math.max(worst, ratio);
      if (ratio > LIMIT) slow.push(`${pod.title}: ${ratio.toFixed(2)}`);
    }
    addAttacks(pods.length, slow.length);
    process.stdout.write(
      `beside three hostile pods an ordinary one waits ${worst.toFixed(2)} × what parsing them takes\n`,
    );
    expect(slow).toEqual([]);
    expect(pods).toHaveLength(SLOWEST * ATTACK_TIMES);
  },
  600_000 * ATTACK_TIMES,
);
