/** A webhook on its own HTTPS port: the product's as `serve` runs it, or a minimal one for comparison. */

import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { startServer } from "../../../functions/server/serve.ts";
import { createWakeUp, tickAll } from "../../../functions/server/ticks.ts";
import { connect } from "../../../shared/kube/connect.ts";
import { createBatchedLog } from "../../../shared/log.ts";
import { answerCalls } from "../process/answer-calls.ts";

export type Reads = "announced" | "listed" | "kept";

export interface ServerPlan {
  /**
   * no-op: reads the review and allows; minimal: gives every pod the same patch; copy: gives every pod the patch that
   * the product gave the first one; ours: the product
   */
  readonly kind: "no-op" | "minimal" | "copy" | "ours";
  /**
   * how the product learns of SidecarSets; announced: as installed; listed: without announcements; kept: a list for a
   * second, without following writes
   */
  readonly reads?: Reads;
  /** the thread of passes, one a second; beside: the webhooks' thread; behind: another thread; absent: no passes */
  readonly passes?: "beside" | "behind";
  /** paths of PEM files */
  readonly certificate: string;
  readonly key: string;
  /** path of the kubeconfig */
  readonly kubeconfig: string;
  /** path of the file with path secrets */
  readonly pathSecrets: string;
  /** the webhook that a copy calls first */
  readonly original?: { readonly url: string; readonly authority: string };
}

interface Review {
  readonly request: { readonly uid: string; readonly object: { readonly metadata: { readonly annotations?: object } } };
}

/** Returns a patch as the product makes it for a SidecarSet of one container: the container, a volume, annotations. */
function fixedPatch({ request }: Review): Patch {
  const container = {
    name: "agent",
    image: "fluent/fluent-bit:4.1.0",
    args: ["-i", "tail"],
    env: [{ name: "IS_INJECTED", value: "true" }],
    resources: { requests: { cpu: "20m", memory: "32Mi" } },
    volumeMounts: [{ name: "state", mountPath: "/state" }],
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    imagePullPolicy: "IfNotPresent",
  };
  const hash = "b2d9bz7499c5cwd4cvcx6z8847ffw8d57v6f4v6xx9z6d4vb8zx6v5849f5z8b6x";
  const annotations = {
    injected: "set",
    "hash-of-images": JSON.stringify({ set: hash }),
    hash: JSON.stringify({ set: hash }),
  };
  const patch = [
    { op: "add", path: "/spec/containers/-", value: container },
    { op: "add", path: "/spec/volumes/-", value: { name: "state", emptyDir: {} } },
    { op: "add", path: "/metadata/annotations", value: { ...request.object.metadata.annotations, ...annotations } },
  ];
  return { patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(patch)).toString("base64") };
}

async function readText(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

interface Patch {
  readonly patchType?: string;
  readonly patch?: string;
}

/** Returns the product's answer to this review. */
function copiedPatch(review: Review, { url, authority }: NonNullable<ServerPlan["original"]>): Promise<Patch> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const outgoing = request(url, { method: "POST", ca: authority, headers }, (incoming) => {
      const answered = (text: string) => {
        const { response } = JSON.parse(text) as { readonly response: Patch };
        return response.patch === undefined ? {} : { patchType: "JSONPatch", patch: response.patch };
      };
      readText(incoming).then(answered).then(resolve, reject);
    });
    outgoing.on("error", reject);
    outgoing.end(JSON.stringify(review));
  });
}

/** The text of the last review that a comparison webhook got. */
let lastReview = "";

async function startFloor({ kind, certificate, key, original }: ServerPlan): Promise<number> {
  const tls = { cert: await readFile(certificate), key: await readFile(key), keepAliveTimeout: 120_000 };
  let copied: Patch | undefined;
  const copyFrom = async (where: NonNullable<typeof original>, review: Review) => {
    const patch = await copiedPatch(review, where);
    if (patch.patch !== undefined) copied = patch;
    return patch;
  };
  const server = createServer(tls, async (incoming, outgoing) => {
    lastReview = await readText(incoming);
    const review = JSON.parse(lastReview) as Review;
    const known = kind === "minimal" ? fixedPatch(review) : copied;
    const patch = known ?? (original && (await copyFrom(original, review)));
    const response = { uid: review.request.uid, allowed: true, ...patch };
    const body = JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response });
    outgoing
      .writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
      .end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

const TICK_MS = 1_000;

/** Starts the product with its log, its authentication and its default settings. */
async function startOurs(plan: ServerPlan): Promise<number> {
  const { certificate, key, kubeconfig, pathSecrets, reads, passes } = plan;
  // In this mode the webhook works without announcements.
  if (reads === "listed") process.env["POD_NAMESPACE"] = "default";
  const log = createBatchedLog("info");
  const write = (lines: string) => process.stdout.write(lines);
  const { port } = await startServer({
    port: 0,
    host: "127.0.0.1",
    tlsCert: certificate,
    tlsKey: key,
    kubeconfig,
    ...(reads === "kept" ? { freshnessMs: 1_000 } : {}),
    log,
    ...(passes === "behind" ? { tickMs: TICK_MS, threadLog: { from: "info", write } } : {}),
    authentication: {
      mode: "secret-path",
      clientNames: [],
      clientCertificateFrom: "api-gateway",
      pathSecrets: { kind: "file", path: pathSecrets },
    },
  });
  const { signal } = new AbortController();
  const ticking = { connect: () => connect(kubeconfig), log, wakeUp: createWakeUp(), signal, tickMs: TICK_MS };
  if (passes === "beside") tickAll(ticking).catch((error) => log.error("no passes", { error }));
  return port;
}

answerCalls({
  start: (plan: ServerPlan) => (plan.kind === "ours" ? startOurs(plan) : startFloor(plan)),
  lastReview: () => lastReview,
});
