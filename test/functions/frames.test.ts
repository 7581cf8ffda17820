/** Counts the product's own functions on the stack between an event and its work, from real entry points. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { HttpEvent } from "../../functions/lambda/body.ts";
import { printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { pathDigestsOf, registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { MUTATE_POD_PATH } from "../../shared/webhook/server/paths.ts";
import { deploy, type HttpsCluster, NAMESPACE, release, startHttpsCluster } from "../controller/fixture.ts";
import { functionUrl } from "../lambda/events.ts";
import { newPod } from "../support/objects.ts";

/** The number of frames today: a change may only lower it. */
const MOST = { injection: 12, patch: 20 };
/**
 * Matches our own frames. Frames of traces do not count: they appear only if another file of this thread listens to
 * traces.
 */
const OWN = /(?<!test\/)(?:functions|shared)\/(?!doings)[^):]+[.]ts/;
const SECRET = "s".repeat(43);

let cluster: HttpsCluster;
let folder: string;
let stacks: (readonly string[])[];

beforeAll(async () => {
  cluster = await startHttpsCluster();
  await deploy(cluster.cluster, "web", 1, { maxUnavailable: 1 });
  folder = await mkdtemp(join(tmpdir(), "sidecarset-frames-"));
});
beforeEach(async ({ task }) => {
  stacks = [];
  // Another file may have loaded a function with its own settings.
  vi.resetModules();
  vi.stubEnv("AUTHENTICATION", "secret-path");
  vi.stubEnv("PATH_DIGESTS", printPathDigests(pathDigestsOf([SECRET], [MUTATE_POD_PATH])));
  vi.stubEnv("LOG_LEVEL", "error");
  // A new connection is needed, which begins after the test watches its calls.
  const kubeconfig = join(folder, task.id);
  vi.stubEnv("KUBECONFIG", kubeconfig);
  await writeFile(kubeconfig, cluster.kubeconfig);
  return () => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  };
});
afterAll(async () => {
  await cluster.close();
  await rm(folder, { recursive: true });
});

/** Records the product's functions that run or wait now, the innermost first. */
function takeStack() {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = Number.POSITIVE_INFINITY;
  const { stack = "" } = new Error("where");
  Error.stackTraceLimit = stackTraceLimit;
  const own = stack.split("\n").filter((line) => OWN.test(line));
  stacks.push(own.map((line) => line.replace(/ *at (.*?)\(?\S*?((?:functions|shared)\/[^)]+)\)?/, "$1$2")));
}

/** Returns the longest path from the function of this name to the first frame for which `isEntry` is true. */
function way(from: string, isEntry: (frame: string) => boolean): readonly string[] {
  const ways = stacks.flatMap((stack) => {
    const [first, last] = [stack.findIndex((frame) => frame.startsWith(`${from} `)), stack.findIndex(isEntry)];
    return first < 0 || last < 0 ? [] : [stack.slice(first, last + 1)];
  });
  return ways.toSorted((one, other) => other.length - one.length)[0] ?? [];
}

/** Fails with the frames if there are too many. */
function expectFrames(frames: readonly string[], most: number) {
  expect(frames.length, frames.join("\n")).toBeLessThanOrEqual(most);
  expect(frames.length, "no stack was taken").toBeGreaterThan(most / 2);
}

/** Makes each container report the code that reads its image. */
function watchImages() {
  const { parse } = JSON;
  vi.spyOn(JSON, "parse").mockImplementation((text, reviver) => {
    const value = parse(text, reviver);
    for (const { spec } of value?.items ?? [])
      for (const container of spec?.containers ?? []) {
        const { image } = container;
        const get = () => {
          takeStack();
          return image;
        };
        Object.defineProperty(container, "image", { enumerable: true, get });
      }
    return value;
  });
}

test(`at most ${MOST.injection} stack frames of our code lie between Lambda's event and the injected container`, async () => {
  watchImages();
  const { handler } = await import("../../functions/lambda/mutate-pod.ts");
  const review = {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "1",
      operation: "CREATE",
      resource: { group: "", version: "v1", resource: "pods" },
      namespace: NAMESPACE,
      object: newPod({ name: "one", labels: { app: "web" } }, { containers: [{ name: "main", image: "main:1" }] }),
    },
  };
  const event = functionUrl({ path: registeredPath(SECRET, MUTATE_POD_PATH), body: JSON.stringify(review) });
  await handler(event as HttpEvent);
  expectFrames(
    way("injectContainer", (frame) => frame.includes("functions/lambda/http.ts")),
    MOST.injection,
  );
});

test(`at most ${MOST.patch} stack frames of our code lie between a pass and the PATCH of a pod`, async () => {
  const { request } = https;
  vi.spyOn(https, "request").mockImplementation(((url: URL, options: https.RequestOptions) => {
    if (options.method === "PATCH" && url.pathname.includes("/pods/")) takeStack();
    return request(url, options);
  }) as typeof request);
  await release(cluster.cluster, "web", 2);
  const { handler } = await import("../../functions/lambda/rollout.ts");
  await handler({}, { getRemainingTimeInMillis: () => 30_000 });
  expectFrames(
    way("send", (frame) => frame.includes("shared/controller/pass.ts") && frame.startsWith("runPass")),
    MOST.patch,
  );
});
