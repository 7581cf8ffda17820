/** Asks each function whether it could decide now, as a caller that it knows, before any API server does. */
import { get } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { registeredPath } from "../../../shared/webhook/server/path-secret.ts";
import { READY_PATH } from "../../../shared/webhook/server/ready-path.ts";
import { DEPLOYED } from "../deployed.ts";
import { DeployError, type Deployment, type SecretAddress } from "./deployment.ts";

/** Access entries take a while to be in force. */
const PATIENCE_MS = 90_000;
const POLL_MS = 2_000;
const TIMEOUT_MS = 12_000;

interface Answer {
  /** 0: none */
  readonly code: number;
  readonly text: string;
}

/** @throws DeployError naming the first that is not ready, with what it says itself */
export async function untilReady(deployment: Deployment, address: SecretAddress, isInCluster: boolean): Promise<void> {
  const { changes } = deployment;
  const asked = DEPLOYED.filter((one) => one.isCalledFor !== undefined && one.isInCluster === isInCluster);
  const names = asked.map(({ name }) => name).join(", ");
  if (changes.isDryRun) return changes.said(`${names}: asked until they are ready`);
  for (const { name, paths: [path = ""] = [] } of asked) {
    const url = address.urls?.[path] ?? address.url;
    await untilOneIsReady(deployment, name, { ...address, url });
  }
  changes.said(`${names}: ready`);
}

async function untilOneIsReady({ options, now }: Deployment, name: string, address: SecretAddress): Promise<void> {
  const endsAt = now() + PATIENCE_MS;
  for (;;) {
    const { code, text } = await ask(address);
    if (code === 200) return;
    if (now() > endsAt)
      throw new DeployError(
        `${name} is not ready: ${code === 0 ? "" : `${code} `}${text}. ${hintOf(options, code, text)}`,
      );
    await sleep(POLL_MS);
  }
}

function hintOf({ region, stage, cluster }: Deployment["options"], code: number, text: string): string {
  if (code === 403 || code === 404)
    return "It does not know the secret in SSM: was path-digests deployed by another way?";
  if (/40[13]|Unauthorized|forbidden/i.test(text))
    return `The cluster does not let its role in: aws eks list-access-entries --region ${region} --cluster-name ${cluster}.`;
  return `Its log says more: npx osls logs -f NAME --region ${region} --stage ${stage}.`;
}

function ask({ url, caBundle, pathSecret }: SecretAddress): Promise<Answer> {
  const ca = caBundle === undefined ? {} : { ca: Buffer.from(caBundle, "base64") };
  return new Promise((resolve) => {
    const request = get(url + registeredPath(pathSecret, READY_PATH), { ...ca, timeout: TIMEOUT_MS }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk) => {
        text += chunk;
      });
      answer.on("end", () => resolve({ code: answer.statusCode ?? 0, text: text.trim().slice(0, 300) }));
    });
    request.on("timeout", () => request.destroy(new Error(`no answer within ${TIMEOUT_MS / 1_000} s`)));
    request.on("error", ({ message }) => resolve({ code: 0, text: message }));
  });
}
