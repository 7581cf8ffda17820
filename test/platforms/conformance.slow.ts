/** Tests that a webhook gives the same answers on every platform, with one table of requests for all. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { bundle } from "../../infra/build.ts";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { AdmissionReview } from "../../shared/api/admission.ts";
import { registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { READY_PATH } from "../../shared/webhook/server/ready-path.ts";
import { installSidecarSet } from "../bench/lambda-subjects.ts";
import { admissionReview } from "../lambda/http-event.ts";
import { newPod } from "../support/objects.ts";
import { PATIENT } from "../support/patient.ts";
import { buildImage, type Image } from "./image.ts";
import { type Asked, DRAINED, PLATFORMS, type Platform, type Running, type Settings } from "./platforms.ts";

const PATH = "/mutate-pod";
const secret = randomBytes(32).toString("base64url");

const pod = (padding = "") =>
  newPod(
    { name: "web", namespace: "default", labels: { app: "web" }, annotations: { padding } },
    { containers: [{ name: "web", image: "nginx:1" }] },
  );
const review = (padding = "") => admissionReview(pod(padding), ["", "v1", "pods"]);
const known = (path: string) => registeredPath(secret, path);

interface Row {
  readonly title: string;
  readonly asked: () => Asked;
  readonly status: number;
  /** true if the pod gets sidecars */
  readonly isInjected?: true;
  readonly headers?: Readonly<Record<string, string>>;
  /** text that the answer must contain */
  readonly says?: string;
}

const ROWS: readonly Row[] = [
  // Rows about callers.
  {
    title: "a request with the secret of the path",
    asked: () => ({ path: known(PATH), body: review() }),
    status: 200,
    isInjected: true,
  },
  { title: "a request without a secret", asked: () => ({ path: PATH, body: review() }), status: 401 },
  {
    title: "a request with a wrong secret",
    asked: () => ({ path: `/s/${"x".repeat(43)}${PATH}`, body: review() }),
    status: 401,
  },
  {
    title: "a request with the stored secret itself",
    asked: () => ({ path: `/s/${secret}${PATH}`, body: review() }),
    status: 401,
  },
  {
    title: "a request with another path's secret",
    asked: () => ({ path: known("/a").replace("/a", PATH), body: review() }),
    status: 401,
  },
  { title: "an unknown path", asked: () => ({ path: "/elsewhere", body: review() }), status: 401 },
  {
    title: "an unknown path with its secret",
    asked: () => ({ path: known("/elsewhere"), body: review() }),
    status: 404,
  },
  // Rows about requests.
  {
    title: "the method GET",
    asked: () => ({ path: known(PATH), method: "GET" }),
    status: 405,
    headers: { allow: "POST" },
  },
  {
    title: "the content type text/plain",
    asked: () => ({ path: known(PATH), contentType: "text/plain", body: review() }),
    status: 415,
  },
  { title: "a request without a body", asked: () => ({ path: known(PATH) }), status: 400 },
  { title: "a body that is not JSON", asked: () => ({ path: known(PATH), body: "{" }), status: 400 },
  { title: "JSON that is not a review", asked: () => ({ path: known(PATH), body: "{}" }), status: 400 },
  // Rows about sizes.
  {
    title: "a pod of 200 KB",
    asked: () => ({ path: known(PATH), body: review("x".repeat(200_000)) }),
    status: 200,
    isInjected: true,
  },
  {
    title: "a body of 21 MiB",
    asked: () => ({ path: known(PATH), body: review("x".repeat(21 * 1024 * 1024)) }),
    status: 413,
    says: "the limit is 20971520 bytes",
  },
  // Rows about readiness.
  { title: "a health check without a secret", asked: () => ({ path: "/healthz", method: "GET" }), status: 200 },
  { title: "a readiness check", asked: () => ({ path: known(READY_PATH), method: "GET" }), status: 200 },
];

const WITHOUT_CLUSTER: readonly Row[] = [
  {
    title: "a pod before the API server's timeout",
    asked: () => ({ path: known(PATH), body: review(), timeoutSeconds: 2 }),
    status: 500,
    says: "there is no decision after 1800 ms",
  },
  { title: "a health check", asked: () => ({ path: "/healthz", method: "GET" }), status: 200 },
  { title: "a readiness check", asked: () => ({ path: known(READY_PATH), method: "GET" }), status: 503 },
];

let folder: string;
let local: LocalCluster;
let silent: Server;
let image: Image;
let settings: Settings;
let withoutCluster: Settings;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-platforms-"));
  local = await startLocalCluster();
  await installSidecarSet(local);
  silent = createServer().listen(0, "127.0.0.1");
  const [secrets, kubeconfig, other] = ["secrets", "kubeconfig", "silent"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await writeFile(secrets, secret);
  await writeFile(kubeconfig, local.kubeconfig());
  const { port } = silent.address() as AddressInfo;
  await writeFile(other, local.kubeconfig().replace(local.url, `https://127.0.0.1:${port}`));
  settings = { kubeconfig, secrets };
  withoutCluster = { kubeconfig: other, secrets };
  await bundle("mutate-pod", folder);
  image = buildImage();
});
afterAll(async () => {
  silent.close();
  await local.close();
  image.remove();
  await rm(folder, { recursive: true, force: true });
});

async function expectAnswer(
  running: Running,
  { asked, status, isInjected, headers = {}, says = "" }: Row,
): Promise<void> {
  const answer = await running.ask(asked());
  expect([answer.status, answer.body.slice(0, 200)]).toEqual([status, expect.any(String)]);
  expect(answer.headers).toMatchObject(headers);
  expect(answer.body).toContain(says);
  expect(answer.body).not.toContain(secret);
  if (!isInjected) return;
  const { response } = JSON.parse(answer.body) as AdmissionReview;
  expect(response).toMatchObject({ uid: "u", allowed: true, patchType: "JSONPatch" });
  expect(Buffer.from(response?.patch ?? "", "base64").toString()).toContain("log-agent");
}

describe.each(Object.entries(PLATFORMS))("%s:", (_, start: Platform) => {
  describe("with a cluster:", () => {
    let running: Running;
    beforeAll(async () => {
      running = await start(settings, { folder, image });
    });
    afterAll(async () => {
      await running.stop();
    });

    test.each(ROWS.map((row) => [`the webhook answers ${row.title} with ${row.status}`, row] as const))(
      "the webhook gives the right answer to %s",
      (_title, row) => expectAnswer(running, row),
    );

    test("the webhook answers thirty requests at once, each with its own uid", async () => {
      const uids = Array.from({ length: 30 }, (_one, at) => `uid-${at}`);
      const answers = await Promise.all(
        uids.map((uid) => running.ask({ path: known(PATH), body: review().replace('"uid":"u"', `"uid":"${uid}"`) })),
      );
      expect(answers.map(({ body }) => (JSON.parse(body) as AdmissionReview).response?.uid)).toEqual(uids);
    });
  });
});

describe("with a cluster that never answers:", () => {
  const all = new Map<string, Running>();
  beforeAll(async () => {
    for (const [name, start] of Object.entries(PLATFORMS)) {
      const running = await start(withoutCluster, { folder, image });
      await running.ask({ path: PATH, body: "" });
      all.set(name, running);
    }
  });
  afterAll(async () => {
    for (const running of all.values()) await running.stop();
  });

  // The requests run in order, because a Lambda environment takes one event at a time.
  test.concurrent.each(Object.keys(PLATFORMS))(
    `without its cluster %s answers ${WITHOUT_CLUSTER.map(({ title, status }) => `${title} with ${status}`).join(", ")}`,
    async (name) => {
      const running = all.get(name);
      if (running === undefined) throw new Error(`no platform ${name}`);
      for (const row of WITHOUT_CLUSTER) await expectAnswer(running, row);
    },
  );
});

describe.each(DRAINED)("%s at SIGTERM:", (name) => {
  test("a stopping process answers the requests in progress, accepts no new request and exits with 0", async () => {
    const start = PLATFORMS[name];
    if (start === undefined) throw new Error(`no platform ${name}`);
    const running = await start(withoutCluster, { folder, image });
    const isUnderWay = once(silent, "connection");
    let isAnswered = false;
    // The answer comes after 8.1 seconds. The process ends its requests ten seconds after SIGTERM.
    const answer = running.ask({ path: known(PATH), body: review(), timeoutSeconds: 9 }).finally(() => {
      isAnswered = true;
    });
    await isUnderWay;
    const ended = running.stop();
    const isRefused = () =>
      expect(running.ask({ path: "/healthz", method: "GET" })).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await vi.waitFor(isRefused, PATIENT);
    expect(isAnswered).toBe(false);
    expect((await answer).status).toBe(500);
    expect(await ended).toBe(0);
  });
});
