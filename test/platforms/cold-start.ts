/**
 * `node test/platforms/cold-start.ts` measures the wait of the first request on platforms that remove idle containers,
 * and the size of the image. The image's process starts with PORT, as platforms start it. The wait ends with the first
 * answer.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { startLocalCluster } from "../../infra/local/cluster.ts";
import { registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { installSidecarSet } from "../bench/lambda-subjects.ts";
import { admissionReview } from "../lambda/http-event.ts";
import { newPod } from "../support/objects.ts";
import { buildImage, IS_ISOLATED } from "./image.ts";
import { PLATFORMS } from "./platforms.ts";

const TIMES = 9;
const PATH = "/mutate-pod";
const POD = newPod(
  { name: "web", namespace: "default", labels: { app: "web" } },
  { containers: [{ name: "web", image: "nginx:1" }] },
);

const start = PLATFORMS["the image"];
if (start === undefined) throw new Error("no image");
const folder = await mkdtemp(join(tmpdir(), "sidecarset-cold-"));
const local = await startLocalCluster();
await installSidecarSet(local);
const secret = randomBytes(32).toString("base64url");
const settings = { kubeconfig: join(folder, "kubeconfig"), secrets: join(folder, "secrets") };
await writeFile(settings.kubeconfig, local.kubeconfig());
await writeFile(settings.secrets, secret);
const image = buildImage();
const took: number[] = [];
for (let at = 0; at < TIMES; at++) {
  const beganAt = performance.now();
  const running = await start(settings, { folder, image });
  const body = admissionReview(POD, ["", "v1", "pods"]);
  const { status } = await running.ask({ path: registeredPath(secret, PATH), body });
  if (status !== 200) throw new Error(`HTTP ${status}`);
  took.push(performance.now() - beganAt);
  await running.stop();
}
const sorted = took.toSorted((a, b) => a - b).map(Math.round);
const where = IS_ISOLATED ? "as its user, on a read-only root file system" : "as the one who tests";
process.stdout.write(
  `${(image.bytes / 1e6).toFixed(2)} MB beside the base image; ${where}, ${cpus().length} processors\n` +
    `from the start of the process to its first injected pod, of ${TIMES}: median ${sorted[Math.floor(TIMES / 2)]} ms, least ${sorted[0]}, most ${sorted.at(-1)}\n`,
);
image.remove();
await local.close();
await rm(folder, { recursive: true });
