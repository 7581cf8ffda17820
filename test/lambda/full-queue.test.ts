/** Tests a queue that refuses messages: the end of the function that sends them, and the log of its pass. */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { sendWork } from "../../shared/aws/send-work.ts";
import { sidecarSetCrd } from "../../shared/install/crd/sidecarset-crd.ts";
import { installedResource } from "../../shared/install/manifests.ts";
import { connect } from "../../shared/kube/connect.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { sidecarSet } from "../controller/fixture.ts";
import { PATIENT } from "../support/patient.ts";

let folder: string;
let cluster: LocalCluster;
let queue: Server;
/** answers that the queue still owes */
const held: ServerResponse[] = [];
let answer: (answer: ServerResponse, nth: number) => void;
let asked: number;

const refuse = (response: ServerResponse) =>
  void response.writeHead(403).end(JSON.stringify({ __type: "AccessDeniedException", message: "no" }));

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "full-queue-"));
  cluster = await startLocalCluster();
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, cluster.kubeconfig());
  const client = await connect(kubeconfig);
  const definition = sidecarSetCrd({ url: "https://127.0.0.1:9" });
  await client.create(installedResource(definition), definition);
  await client.create<SidecarSet>(SIDECARSETS, sidecarSet("log-agent", 1, {}));
  queue = createServer((_, response) => answer(response, asked++)).listen(0, "127.0.0.1");
  await once(queue, "listening");
});
beforeEach(() => {
  asked = 0;
});
afterAll(async () => {
  vi.unstubAllEnvs();
  for (const response of held) refuse(response);
  queue?.close();
  await cluster?.close();
  await rm(folder, { recursive: true, force: true });
});

const address = () => `http://127.0.0.1:${(queue.address() as AddressInfo).port}`;

test("sendWork ends only when every request is answered, because Lambda freezes a function after its end", async () => {
  answer = (response, nth) => (nth === 0 ? refuse(response) : held.push(response));
  const works = Array.from(
    { length: 20 },
    (_, index) => ({ kind: "tick", sidecarSet: `set-${index}`, minute: 1 }) as const,
  );
  const access = { credentials: { accessKeyId: "AKIA", secretAccessKey: "x" }, endpoint: address() };
  let isOver = false;
  const sent = sendWork({ url: "https://sqs.example.com/1/work.fifo", region: "eu-central-1" }, works, access);
  void sent.catch(() => {}).finally(() => (isOver = true));
  await expect.poll(() => [asked, held.length], PATIENT).toEqual([2, 1]);
  // The refusal of the first request has arrived meanwhile.
  for (let turn = 0; turn < 50; turn++) await new Promise((next) => setImmediate(next));
  expect(isOver).toBe(false);
  for (const response of held.splice(0)) refuse(response);
  await expect(sent).rejects.toThrow(/AccessDenied/);
});

test("a pass whose queue refuses its messages is logged before the function fails", async () => {
  answer = refuse;
  await writeFile(join(folder, "token"), cluster.token);
  const env = {
    LOG_LEVEL: "info",
    QUEUE_URL: "https://sqs.example.com/1/work.fifo",
    AWS_REGION: "eu-central-1",
    AWS_ENDPOINT_URL: address(),
    AWS_ACCESS_KEY_ID: "AKIA",
    AWS_SECRET_ACCESS_KEY: "x",
    CLUSTER_SERVER: cluster.url,
    CLUSTER_TOKEN: join(folder, "token"),
    CLUSTER_CA: Buffer.from(cluster.caCertificate).toString("base64"),
  };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  vi.stubEnv("CLUSTERS", undefined);
  vi.resetModules();
  const { handler } = await import("../../functions/lambda/rollout.ts");
  const lines: string[] = [];
  vi.spyOn(process.stdout, "write").mockImplementation((text) => lines.push(String(text)) > 0);
  const failed = handler({}, { getRemainingTimeInMillis: () => 20_000 });
  await expect(failed).rejects.toThrow(/AccessDenied/);
  vi.restoreAllMocks();
  expect(asked).toBeGreaterThan(0);
  expect(lines.filter((line) => JSON.parse(line).message === "pass")).toHaveLength(1);
});
