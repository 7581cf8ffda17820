/** Looks at the webhooks that are registered: nothing that API servers ask now may stop being answered, or change because an option was left out. */
import {
  DEPLOYED_BY_ANNOTATION,
  POD_WEBHOOK,
  VALIDATING_CONFIGURATION,
  WEBHOOK_CONFIGURATION,
} from "../../../shared/api/names.ts";
import type { WebhookConfiguration } from "../../../shared/core/inspect/check/facts.ts";
import { type Registered, registered } from "../../../shared/core/inspect/check/webhooks.ts";
import { type SecretPath, splitPath } from "../../../shared/webhook/server/authenticate.ts";
import { pathSecretOf } from "../../../shared/webhook/server/path-secret.ts";
import { lastGiven } from "../given-parameters.ts";
import { DeployError, type Facts, nameOfDeployment, type Tools } from "./deployment.ts";
import { secretName } from "./path-secrets.ts";
import { sentenceOf } from "./programs.ts";

const UNREGISTER = `kubectl delete mutatingwebhookconfiguration ${WEBHOOK_CONFIGURATION} and kubectl delete validatingwebhookconfiguration ${VALIDATING_CONFIGURATION}`;
/** Names of our configurations. */
const OURS = /^(?:kruise-)?sidecarset-/;
const STATEFUL_SETS = "sidecarset-stateful-sets-";

/** @throws DeployError */
export async function checkRegistered(tools: Tools, facts: Omit<Facts, "cluster">, stackName: string): Promise<void> {
  const configurations = await configurationsOf(tools);
  const all = registered(configurations);
  const openKruise = all.find(({ isOpenKruise }) => isOpenKruise);
  if (openKruise !== undefined)
    throw new DeployError(
      `OpenKruise's webhooks are registered (${openKruise.configuration}) without its manager, so that what they are asked about is refused: kubectl delete mutatingwebhookconfiguration kruise-mutating-webhook-configuration, and validating likewise, first.`,
    );
  refuseUnserved(all, facts);
  const pods = all.find(
    ({ configuration, webhook }) => configuration === WEBHOOK_CONFIGURATION && webhook.name === POD_WEBHOOK,
  );
  refuseOtherPolicy(tools, facts, pods);
  if (pods === undefined) return;
  const named = configurations.find(({ metadata }) => metadata?.name === WEBHOOK_CONFIGURATION);
  const deployedBy = named?.metadata?.annotations?.[DEPLOYED_BY_ANNOTATION];
  refuseOtherDeployment({ ...pods, deployedBy }, tools, facts, stackName);
  refuseOtherSecret(tools, facts, all);
}

async function configurationsOf({ kubectl }: Tools): Promise<readonly WebhookConfiguration[]> {
  const kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
  const asked = await kubectl(["get", kinds, "-o", "json"]);
  if (asked.code !== 0) throw new DeployError(`the registered webhooks cannot be listed: ${sentenceOf(asked)}`);
  return (JSON.parse(asked.stdout) as { readonly items: readonly WebhookConfiguration[] }).items;
}

/** Those of Advanced StatefulSets refuse what they are asked once their function does not know the callers any more. */
function refuseUnserved(all: readonly Registered[], { settings }: Pick<Facts, "settings">): void {
  const left = all.find(({ configuration }) => configuration.startsWith(STATEFUL_SETS));
  if (left === undefined || settings.isServingStatefulSets) return;
  const both = ["mutating", "validating"].map(
    (kind) => `kubectl delete ${kind}webhookconfiguration ${STATEFUL_SETS}${kind}-webhook-configuration`,
  );
  throw new DeployError(
    `webhooks of Advanced StatefulSets are registered, which would be reconciled no more: give --param ordered-sets=true, or run ${both.join(" and ")} first.`,
  );
}

function refuseOtherPolicy({ options }: Tools, { stack }: Pick<Facts, "stack">, pods: Registered | undefined): void {
  const isFail = pods?.webhook.failurePolicy === "Fail" || lastGiven(stack)["registered-failure-policy"] === "Fail";
  if (options.failurePolicy !== undefined || !isFail) return;
  throw new DeployError(
    "the pod webhook was registered with failurePolicy Fail: give --failure-policy Fail to keep it, or --failure-policy Ignore.",
  );
}

/**
 * Addresses change where `canary` is turned on or off, but they stay addresses. `deployedBy`: absent where it was registered
 * by hand: then the address tells.
 */
function refuseOtherDeployment(
  { deployedBy, webhook }: Pick<Registered, "webhook"> & { readonly deployedBy: string | undefined },
  { options }: Tools,
  { stack }: Pick<Facts, "stack">,
  stackName: string,
): void {
  const hostOf = (url = "") => (URL.canParse(url) ? new URL(url).host : undefined);
  const host = hostOf(webhook.clientConfig?.url);
  const own = new Set([...(stack?.outputs.values() ?? [])].map(hostOf));
  const isOurs = deployedBy === undefined ? own.has(host) : deployedBy === nameOfDeployment({ options, stackName });
  if (host !== undefined && isOurs) return;
  throw new DeployError(
    `the pod webhook is registered at ${host ?? "a Service of the cluster"}${deployedBy === undefined ? "" : `, by ${deployedBy}`}, which is not of stack ${stackName} in ${options.region}: perhaps another --stage. If this deployment is to take its place, run ${UNREGISTER} first: new pods get no sidecars then until step 5.`,
  );
}

/** Of a registration of ours, where it has one; a Service of the cluster is reached without. */
function secretPathsOf(all: readonly Registered[]): readonly SecretPath[] {
  const urls = all.flatMap(({ configuration, webhook }) =>
    OURS.test(configuration) && URL.canParse(webhook.clientConfig?.url ?? "") ? (webhook.clientConfig?.url ?? "") : [],
  );
  return urls.map((url) => splitPath(new URL(url).pathname)).filter(({ secret }) => secret !== undefined);
}

/** Functions that know other secrets than API servers call by would refuse all pods from step 2 to step 5. */
function refuseOtherSecret(
  { options: { stage } }: Tools,
  { secrets }: Pick<Facts, "secrets">,
  all: readonly Registered[],
): void {
  const paths = secretPathsOf(all);
  const isKnown = ({ path, secret }: SecretPath) => secrets.some((one) => pathSecretOf(one, path) === secret);
  const [place, first] = [secretName(stage), UNREGISTER];
  if (secrets.length === 0)
    throw new DeployError(
      `the webhooks are registered with a secret that is not in SSM any more (${place}): put it back, or, to have another one made, run ${first} first: new pods get no sidecars then until step 5.`,
    );
  if (paths.length === 0 || paths.some(isKnown)) return;
  throw new DeployError(
    `none of the ${paths.length} registered paths is made of a secret in SSM (${place}), so that the functions would refuse every pod until step 5: write the secret that is registered below the new one (docs/deploy.md, Rotating the secret), or, where it is lost, run ${first} first.`,
  );
}
