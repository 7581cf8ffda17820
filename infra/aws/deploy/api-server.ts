/** Looks at the cluster before anything is begun: whether it is the right one, and lets this user do all that is to come. */
import type { Deployment as KubeDeployment } from "../../../shared/core/inspect/check/facts.ts";
import { isRunning } from "../../../shared/core/inspect/check/others.ts";
import type { EksCluster } from "./aws.ts";
import { DeployError, type Tools } from "./deployment.ts";
import { type Kubectl, sentenceOf } from "./programs.ts";

/** @throws DeployError */
export async function checkApiServer(tools: Tools, cluster: EksCluster): Promise<void> {
  await checkContext(tools, cluster);
  await checkRights(tools.kubectl);
  await refuseOpenKruise(tools.kubectl);
}

async function checkContext({ kubectl, options }: Tools, { endpoint }: EksCluster): Promise<void> {
  const config = await kubectl(["config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"]);
  const update = `aws eks update-kubeconfig --region ${options.region} --name ${options.cluster}`;
  if (config.code !== 0) throw new DeployError(`the kubeconfig cannot be used (${sentenceOf(config)}): run ${update}.`);
  if (!isSameServer(config.stdout, endpoint ?? ""))
    throw new DeployError(
      `the kubeconfig leads to ${config.stdout}, and EKS cluster ${options.cluster} is at ${endpoint}: run ${update}, or choose another --context.`,
    );
  const asked = await kubectl(["get", "--raw", "/version"]);
  if (asked.code !== 0) throw new DeployError(`the API server cannot be asked: ${sentenceOf(asked)}`);
}

/** Two that roll out the same SidecarSets exceed maxUnavailable together: before the first pass, not after it. */
async function refuseOpenKruise(kubectl: Kubectl): Promise<void> {
  const named = ["--field-selector", "metadata.name=kruise-controller-manager"];
  const asked = await kubectl(["get", "deployments.apps", "--all-namespaces", ...named, "-o", "json"]);
  if (asked.code !== 0) throw new DeployError(`the Deployments of the cluster cannot be listed: ${sentenceOf(asked)}`);
  const { items } = JSON.parse(asked.stdout) as { readonly items: readonly KubeDeployment[] };
  const running = items.find(isRunning)?.metadata;
  if (running === undefined) return;
  throw new DeployError(
    `OpenKruise's manager runs in this cluster (Deployment ${running.namespace}/${running.name}): both would roll SidecarSets out, each within a budget of its own. Do not scale it down, since its webhooks would keep pods from being created: sidecarset migrate from-kruise shows the steps.`,
  );
}

function isSameServer(one: string, other: string): boolean {
  return URL.canParse(one) && URL.canParse(other) && new URL(one).href === new URL(other).href;
}

/** Of what is applied. Rights may only be given by users who have them, or `escalate`: cluster-admin has. */
const APPLIED = [
  "create namespaces",
  "patch customresourcedefinitions.apiextensions.k8s.io",
  "patch mutatingwebhookconfigurations.admissionregistration.k8s.io",
  "patch validatingwebhookconfigurations.admissionregistration.k8s.io",
  "escalate clusterroles.rbac.authorization.k8s.io",
  "bind clusterroles.rbac.authorization.k8s.io",
];

async function checkRights(kubectl: Kubectl): Promise<void> {
  const answers = await Promise.all(
    APPLIED.map(async (asked) => ({ asked, ended: await kubectl(["auth", "can-i", ...asked.split(" ")]) })),
  );
  const refused = answers.find(({ ended }) => ended.code !== 0);
  if (refused === undefined) return;
  const { asked, ended } = refused;
  const isNo = ended.stdout.trim().startsWith("no");
  throw new DeployError(
    `this user of the cluster ${isNo ? "may not" : "cannot be asked for whether it may"} ${asked}${isNo ? "" : ` (${sentenceOf(ended)})`}: the definition and the rights are applied by a cluster-admin; choose another --context.`,
  );
}
