/** `npm run deploy:all`: from nothing to the first injected pod, on EKS. Run again it goes on where it stopped, and changes nothing that is as it should be. */

import { get } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { createScreen, type Screen } from "../../../functions/terminal/screen.ts";
import { counted } from "../../../shared/go/counted.ts";
import { mayColor, readEnvironment } from "../../../shared/settings/config.ts";
import { ConfigError } from "../../../shared/settings/config-error.ts";
import { registeredPath } from "../../../shared/webhook/server/path-secret.ts";
import { READY_PATH } from "../../../shared/webhook/server/ready-path.ts";
import { DEPLOYED } from "../deployed.ts";
import { openAws } from "./aws.ts";
import { Changes, DeployError, type Deployment, type SecretAddress, type Tools } from "./deployment.ts";
import { deployFunctions, letIn } from "./functions.ts";
import { addressOf, applyObjects, registerWebhooks } from "./objects.ts";
import { type DeployOptions, parseOptions, USAGE } from "./options.ts";
import { SERVICE } from "./parameters.ts";
import { ensureSecrets } from "./path-secrets.ts";
import { preflight } from "./preflight.ts";
import { endPrograms, openKubectl } from "./programs.ts";
import { check, injectFirstPod } from "./verify.ts";

async function deploy(options: DeployOptions, screen: Screen): Promise<void> {
  const tools: Tools = {
    options,
    screen,
    aws: openAws(options.region, readEnvironment()["AWS_ENDPOINT_URL"] || undefined),
    kubectl: openKubectl(options.context),
    now: Date.now,
  };
  const heading = (text: string) => screen.line({ text, color: "bold" });
  heading("Before anything is begun");
  const stackName = `${SERVICE}-${options.stage}`;
  const facts = await preflight(tools, stackName);
  const changes = new Changes(screen, options.isDryRun);
  const deployment: Deployment = { ...tools, ...facts, stackName, changes };
  heading("1. The secret that callers prove themselves by");
  const secrets = await ensureSecrets(deployment);
  heading("2. The functions");
  const stack = await deployFunctions(deployment, secrets);
  heading("3. Their roles in the cluster");
  await letIn(deployment, stack);
  heading("4. Definition and rights");
  const address = await addressOf(deployment, stack, secrets[0] ?? "");
  await untilReady(deployment, address, false);
  await applyObjects(deployment, address);
  heading("5. The webhooks, once their functions are ready");
  await untilReady(deployment, address, true);
  await registerWebhooks(deployment, address);
  heading("6. Check");
  await check(deployment);
  heading("7. The first pod");
  await injectFirstPod(deployment);
  heading(conclusionOf(changes));
}

function conclusionOf({ isDryRun, count }: Changes): string {
  if (isDryRun) return `Nothing was changed: ${counted(count, "change")} would be made.`;
  return count === 0 ? "All was there already: nothing was changed." : `Done: ${counted(count, "change")}.`;
}

/** Source: the exit codes of shells, 128 and the number of the signal. */
const ENDED_BY = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
for (const [signal, code] of Object.entries(ENDED_BY))
  process.once(signal, () => {
    endPrograms();
    process.stderr.write(`ended by ${signal}: run the same command again, it goes on where it stopped\n`);
    process.exit(code);
  });

const screen = createScreen({ out: process.stdout, err: process.stderr, mayColor: mayColor() });
try {
  if (readEnvironment()["npm_config_dry_run"])
    throw new ConfigError(
      "npm has taken --dry-run for itself: options stand behind --, as in npm run deploy:all -- --dry-run.",
    );
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) screen.text(USAGE);
  else await deploy(options, screen);
} catch (error) {
  const isTold = error instanceof ConfigError || error instanceof DeployError;
  screen.warn(error instanceof Error ? error.message : String(error));
  process.exitCode = isTold ? 2 : 1;
}

// Asks each function whether it could decide now, as a caller that it knows, before any API server does.

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
async function untilReady(deployment: Deployment, address: SecretAddress, isInCluster: boolean): Promise<void> {
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
