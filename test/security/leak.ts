/**
 * Runs in a process: learns secrets in every possible way, writes them to its log in every form, and ends with a crash.
 * `node … FOLDER HOW`
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { logCrashes } from "../../functions/server/tracing.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { accessOf } from "../../shared/kube/connect.ts";
import { eksToken } from "../../shared/kube/eks.ts";
import { inClusterAccess } from "../../shared/kube/in-cluster.ts";
import { NAMESPACES } from "../../shared/kube/port.ts";
import { createLog, type Log } from "../../shared/log.ts";
import { parseAuthentication } from "../../shared/settings/authentication-settings.ts";
import { parseCluster } from "../../shared/settings/cluster-settings.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import { authenticator } from "../../shared/webhook/server/authenticate.ts";
import { registeredPath } from "../../shared/webhook/server/path-secret.ts";
import type { Learned } from "./canaries.ts";

const [folder = "", how = ""] = process.argv.slice(2);
const learned = JSON.parse(readFileSync(join(folder, "learned.json"), "utf8")) as readonly Learned[];
const log = createLog("debug");
logCrashes(log);

/** Reads the secret as the product does. */
async function learn({ way, secret, file, authority }: Learned): Promise<void> {
  const aws = () => ({
    credentials: { accessKeyId: "AKID", secretAccessKey: secret, sessionToken: `session${secret}` },
  });
  const where = { CLUSTER_SERVER: "https://127.0.0.1:1", CLUSTER_CA: authority };
  const call = async (access: Awaited<ReturnType<typeof accessOf>>) => {
    await access.token?.();
    await connectCluster(access).get(NAMESPACES, { name: secret });
  };
  const noted = (error: unknown) => log.warn("as expected, nobody listens", { error });
  switch (way) {
    case "path":
    case "token": {
      const [mode, place] = way === "path" ? ["secret-path", "PATH_SECRETS"] : ["bearer-token", "BEARER_TOKENS"];
      return present(parseAuthentication({ AUTHENTICATION: mode, [place]: file }), secret);
    }
    case "cluster-token":
      return call(await accessOf(parseCluster({ CLUSTER_TOKEN: file, ...where }), aws)).catch(noted);
    case "in-cluster":
      return call(await inClusterAccess(where.CLUSTER_SERVER, file)).catch(noted);
    case "kubeconfig":
      return call(await accessOf({ kind: "kubeconfig", path: file }, aws)).catch(noted);
    case "aws":
      log.info("token", { sent: await eksToken({ kind: "eks", name: "prod", region: "x" }, aws().credentials) });
      return accessOf({ kind: "eks", name: "prod", region: "nowhere" }, aws).then(() => undefined, noted);
  }
}

/** Sends a secret to a webhook that fails and prints what it got. */
async function present(settings: ReturnType<typeof parseAuthentication>, secret: string): Promise<void> {
  const { isKnown } = authenticator(settings, { aws: () => Promise.reject() as never, log, now: Date.now });
  const admit = () => {
    throw new Error(`refused ${secret}`, { cause: new Error(`because of /s/${secret}/mutate-pod`) });
  };
  const answer = webhookApp({ log, isKnown, admissions: { "/mutate-pod": admit } });
  const resource = { group: "", version: "v1", resource: secret };
  const request = { uid: secret, operation: "CREATE", resource, name: secret };
  const body = JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
  // The stored text may differ from the secret in the path.
  const registered = registeredPath(secret, "/mutate-pod");
  for (const path of [
    registered,
    `/s/${secret}/mutate-pod`,
    "/mutate-pod",
    `/s/${secret}/elsewhere`,
    `/s/${secret}x/mutate-pod`,
  ]) {
    for (const text of [body, "{", secret]) {
      const headers = { "content-type": "application/json", authorization: `Bearer ${secret}` };
      const readBody = async () => text;
      const { body: sent } = await answer({ method: "POST", path, query: `timeout=1s&${secret}`, headers, readBody });
      // The uid is the caller's own, and the answer repeats it exactly.
      process.stdout.write(`${sent.replaceAll(`"uid":"${secret}"`, '"uid":""')}\n`);
    }
  }
}

function writeEverywhere(log: Log, secret: string): void {
  const url = `https://x/s/${secret}/mutate-pod?token=${encodeURIComponent(secret)}`;
  const error = Object.assign(new Error(`refused ${secret}`, { cause: new TypeError(url) }), {
    headers: { a: secret },
  });
  for (const level of ["debug", "info", "warn", "error"] as const) {
    log[level](`a text with ${secret} in it`);
    log[level](secret, { a: secret, b: { c: [secret, { d: url }] }, error, [secret]: 1 });
    log[level]("encoded", { a: Buffer.from(secret).toString("base64"), b: JSON.stringify({ secret }), c: error.stack });
    log[level]("headers", { headers: { authorization: `Bearer ${secret}` }, map: Object.entries({ secret }) });
  }
}

for (const each of learned) {
  await learn(each);
  writeEverywhere(log, each.secret);
}
const all = learned.map(({ secret }) => secret).join(" ");
if (how === "reject") await Promise.reject(new Error(`nobody expected ${all}`));
else
  setTimeout(() => {
    throw how === "throw" ? new Error(`nobody expected ${all}`) : all;
  });
