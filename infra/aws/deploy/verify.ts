/** Checks that the deployment works: `sidecarset check`, and a dry run of a pod, which must get its sidecars. */

import { get } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { showReport } from "../../../functions/terminal/show-check.ts";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE, POD_WEBHOOK } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import type { CheckReport } from "../../../shared/core/inspect/check/check.ts";
import type { FindingId } from "../../../shared/core/inspect/check/finding.ts";
import { sidecarContainerNames } from "../../../shared/core/pod/sidecar-containers.ts";
import { registeredPath } from "../../../shared/webhook/server/path-secret.ts";
import { READY_PATH } from "../../../shared/webhook/server/ready-path.ts";
import { DEPLOYED } from "../deployed.ts";
import { runProgram, sentenceOf } from "./aws.ts";
import { DeployError, type Deployment, type SecretAddress } from "./objects.ts";

const CLI = fileURLToPath(new URL("../../../functions/cli.mjs", import.meta.url));
/** The schedule calls once a minute. */
const PATIENCE_MS = 150_000;
const POLL_MS = 3_000;
/** Findings that end with the first pass, or once API servers know the new objects. */
const SOON: ReadonlySet<FindingId> = new Set<FindingId>([
  "TickNeverRan",
  "TickNotRunning",
  "NotInForce",
  "ApiServerNotAnswered",
]);

/** @throws DeployError for an error that does not go away by itself */
export async function check(deployment: Deployment): Promise<void> {
  const { changes, screen, now } = deployment;
  if (changes.isDryRun) return changes.said("sidecarset check, until the first pass has run");
  const endsAt = now() + PATIENCE_MS;
  let report = await reportOf(deployment);
  while (
    errorsOf(report).some(({ id }) => SOON.has(id)) &&
    errorsOf(report).every(({ id }) => SOON.has(id)) &&
    now() < endsAt
  ) {
    await sleep(POLL_MS);
    report = await reportOf(deployment);
  }
  showReport(report, screen);
  if (report.counts.error > 0) throw new DeployError("sidecarset check found errors: each says above what to do.");
}

const errorsOf = ({ findings }: CheckReport) => findings.filter(({ severity }) => severity === "error");

async function reportOf({ options }: Deployment): Promise<CheckReport> {
  const context = options.context === undefined ? [] : ["--context", options.context];
  const ended = await runProgram(process.execPath, [CLI, "check", "-o", "json", ...context]);
  if (!ended.stdout.startsWith("{")) throw new DeployError(`sidecarset check failed: ${sentenceOf(ended)}`);
  return JSON.parse(ended.stdout) as CheckReport;
}

const SAMPLE_LABEL = "sidecarset.kruise.io/first-pod";
const SAMPLE = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "sidecarset-first-pod" },
  // No pod has this label but the one that is never stored.
  spec: {
    selector: { matchLabels: { [SAMPLE_LABEL]: "true" } },
    updateStrategy: { type: "NotUpdate" },
    containers: [{ name: "first-sidecar", image: "busybox:1.37" }],
  },
};

/** A SidecarSet that is asked for by labels alone. */
interface Asked {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly containers: readonly string[];
}

/** Injects by a SidecarSet of the cluster, or by a temporary one if it has none. */
export async function injectFirstPod(deployment: Deployment): Promise<void> {
  const { changes } = deployment;
  const stored = await sidecarSetsOf(deployment);
  // A run that was killed has left it.
  if (stored.some(isSample) && !changes.isDryRun) await removeSample(deployment);
  const there = askedOf(stored.filter((one) => !isSample(one)));
  if (there !== undefined)
    return changes.isDryRun ? changes.said(`a pod for ${there.name}, in a dry run`) : untilInjected(deployment, there);
  if (changes.count === 0)
    return changes.said("no SidecarSet to try one with: kubectl apply -f infra/demo/log-agent.yaml");
  const sample = {
    name: SAMPLE.metadata.name,
    labels: SAMPLE.spec.selector.matchLabels,
    containers: ["first-sidecar"],
  };
  if (changes.isDryRun)
    return changes.said(`SidecarSet ${sample.name} for a moment, which matches no pod but one in a dry run`);
  await kubectlOrThrow(deployment, ["apply", "-f", "-"], JSON.stringify(SAMPLE));
  try {
    await untilInjected(deployment, sample);
  } finally {
    await removeSample(deployment);
  }
}

/** Removes the sample with its ledger, which has no reservations because its pods are never changed. */
async function removeSample(deployment: Deployment): Promise<void> {
  const { name } = SAMPLE.metadata;
  const ledger = ["-n", KRUISE_NAMESPACE, "delete", "configmap", `sidecarset-ledger-${name}`];
  for (const args of [["delete", "sidecarset", name], ledger])
    await kubectlOrThrow(deployment, [...args, "--ignore-not-found", "--wait=false"]);
}

const isSample = ({ metadata }: SidecarSet) => metadata?.name === SAMPLE.metadata.name;

async function sidecarSetsOf({ kubectl }: Deployment): Promise<readonly SidecarSet[]> {
  const { code, stdout } = await kubectl(["get", "sidecarsets", "-o", "json"]);
  return code === 0 ? (JSON.parse(stdout) as { readonly items: readonly SidecarSet[] }).items : [];
}

function askedOf(sidecarSets: readonly SidecarSet[]): Asked | undefined {
  const asked = sidecarSets.flatMap((sidecarSet): readonly Asked[] => {
    const { selector, namespaceSelector, injectionStrategy } = sidecarSet.spec;
    const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
    const containers = [...sidecarContainerNames(sidecarSet)];
    const isPlain =
      Object.keys(matchLabels).length > 0 && matchExpressions.length === 0 && namespaceSelector === undefined;
    if (!isPlain || containers.length === 0 || injectionStrategy?.paused || injectionStrategy?.revision) return [];
    return [{ name: sidecarSet.metadata?.name ?? "", labels: matchLabels, containers }];
  });
  return asked[0];
}

async function untilInjected(deployment: Deployment, { name, labels, containers }: Asked): Promise<void> {
  const { changes, now } = deployment;
  const endsAt = now() + PATIENCE_MS / 5;
  for (;;) {
    const names = await containersOfPod(deployment, labels);
    if (names === undefined) return;
    if (containers.every((one) => names.includes(one)))
      return changes.said(
        `a pod with the labels of SidecarSet ${name}, created in a dry run, has the containers ${names.join(", ")}`,
      );
    if (now() > endsAt)
      throw new DeployError(
        `a pod that SidecarSet ${name} matches has only the containers ${names.join(", ")}: sidecarset explain says why.`,
      );
    await sleep(POLL_MS);
  }
}

/**
 * Containers of the pod that the API server returns; undefined: quotas or policies of the cluster refuse it, which is
 * no fault of the webhooks.
 */
async function containersOfPod({ kubectl, changes }: Deployment, labels: Asked["labels"]) {
  const metadata = { name: "sidecarset-first-pod", namespace: "default", labels };
  const pod = { apiVersion: "v1", kind: "Pod", metadata, spec: { containers: [{ name: "web", image: "nginx:1.29" }] } };
  const created = await kubectl(["create", "--dry-run=server", "-o", "json", "-f", "-"], JSON.stringify(pod));
  if (created.code !== 0 && created.stderr.includes("(Forbidden)") && !created.stderr.includes(POD_WEBHOOK))
    return changes.said(`no pod could be tried in namespace default: ${sentenceOf(created)}`);
  if (created.code !== 0) throw new DeployError(`kubectl create failed: ${sentenceOf(created)}`);
  const { spec } = JSON.parse(created.stdout) as Pod;
  return [...(spec.initContainers ?? []), ...spec.containers].map((one) => one.name);
}

async function kubectlOrThrow({ kubectl }: Deployment, args: readonly string[], stdin?: string): Promise<string> {
  const ended = await kubectl(args, stdin);
  if (ended.code === 0) return ended.stdout;
  throw new DeployError(`kubectl ${args[0]} failed: ${sentenceOf(ended)}`);
}

// Asks each function whether it could decide now, as a caller that it knows, before any API server does.

/** The time until access entries are in force. */
const HEALTH_PATIENCE_MS = 90_000;
const HEALTH_POLL_MS = 2_000;
const TIMEOUT_MS = 12_000;

interface Answer {
  /** 0: none */
  readonly code: number;
  readonly text: string;
}

/** Waits until all are ready. @throws DeployError with the first one that is not, and its own words */
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
  const endsAt = now() + HEALTH_PATIENCE_MS;
  for (;;) {
    const { code, text } = await ask(address);
    if (code === 200) return;
    if (now() > endsAt)
      throw new DeployError(
        `${name} is not ready: ${code === 0 ? "" : `${code} `}${text}. ${hintOf(options, code, text)}`,
      );
    await sleep(HEALTH_POLL_MS);
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
