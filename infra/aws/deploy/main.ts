/** `npm run deploy:all`: from nothing to the first injected pod, on EKS. Run again it goes on where it stopped, and changes nothing that is as it should be. */
import { readFileSync } from "node:fs";
import { createScreen, type Screen } from "../../../functions/terminal/screen.ts";
import { counted } from "../../../shared/go/counted.ts";
import { mayColor, readEnvironment } from "../../../shared/settings/config.ts";
import { ConfigError } from "../../../shared/settings/config-error.ts";
import { endPrograms, openAws, openKubectl } from "./aws.ts";
import { deployFunctions, letIn } from "./functions.ts";
import {
  addressOf,
  applyObjects,
  Changes,
  DeployError,
  type Deployment,
  registerWebhooks,
  type Tools,
  throughStages,
} from "./objects.ts";
import { type DeployOptions, parseStages, USAGE } from "./options.ts";
import { ensureSecrets, SERVICE } from "./parameters.ts";
import { preflight, type Reservations } from "./preflight.ts";
import { check, injectFirstPod, untilReady } from "./verify.ts";

function toolsFor(options: DeployOptions, screen: Screen): Tools {
  return {
    options,
    screen,
    aws: openAws(options.region, readEnvironment()["AWS_ENDPOINT_URL"] || undefined),
    kubectl: openKubectl(options.context),
    now: Date.now,
  };
}

const stackOf = ({ stage }: DeployOptions) => `${SERVICE}-${stage}`;

async function deploy(options: DeployOptions, screen: Screen): Promise<void> {
  const tools = toolsFor(options, screen);
  const heading = (text: string) => screen.line({ text, color: "bold" });
  heading("Before anything is begun");
  const stackName = stackOf(options);
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
  const stages = parseStages(process.argv.slice(2), (file) => readFileSync(file, "utf8"));
  const [only, second] = stages ?? [];
  if (stages === undefined || only === undefined) screen.text(USAGE);
  else if (second === undefined) await deploy(only, screen);
  else {
    const reservations: Reservations = new Map();
    await throughStages(stages, screen, {
      look: (options) => preflight(toolsFor(options, screen), stackOf(options), reservations),
      deploy: (options) => deploy(options, screen),
    });
  }
} catch (error) {
  const isTold = error instanceof ConfigError || error instanceof DeployError;
  screen.warn(error instanceof Error ? error.message : String(error));
  process.exitCode = isTold ? 2 : 1;
}
