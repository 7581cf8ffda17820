/** `check`: faults of an installation, today's and coming ones. */

import type { KubernetesObject, Namespace } from "../../../shared/api/kubernetes.ts";
import { STATIC_SUFFIX } from "../../../shared/api/names.ts";
import { systemClock, timestamp } from "../../../shared/controller/loop/clock.ts";
import { mapLimited } from "../../../shared/controller/loop/concurrency-limit.ts";
import { NO_KUBELETS } from "../../../shared/controller/rollout/kubelets.ts";
import {
  type CheckReport,
  checkBeforeInstall,
  checkInstallation,
  type Tried,
} from "../../../shared/core/inspect/check/check.ts";
import {
  type Definition,
  type Facts,
  seenOf,
  type WebhookConfiguration,
} from "../../../shared/core/inspect/check/facts.ts";
import { addressesOf } from "../../../shared/core/inspect/check/webhooks.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { ownSchema } from "../../../shared/install/crd/sidecarset-crd.ts";
import { installedResource } from "../../../shared/install/manifests.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, NAMESPACES } from "../../../shared/kube/port.ts";
import { readObjects } from "../../terminal/read-objects.ts";
import { CliError } from "../../terminal/screen.ts";
import { showReport } from "../../terminal/show-check.ts";
import type { Command, Input } from "../command.ts";
import { all, PROBES_AT_ONCE, readCheckFacts, readManagers, readRegistered, readServer } from "../input/check-facts.ts";
import { probe } from "../input/check-probe.ts";
import type { Session } from "../session.ts";

const WARNINGS = 3;
const ERRORS = 4;

export const CHECK: Command = {
  name: "check",
  group: "Install it",
  summary: "whether the installation works: webhooks, certificates, rights, passes, SidecarSets and their pods",
  details:
    "Reads the cluster, knocks at the registered addresses without a proof of who asks, and has the API server create a SidecarSet in a dry run. Nothing is written. docs/check.md describes every finding.",
  options: [
    {
      flags: "--pre <FILE>",
      about: "before an install: whether what install printed would be accepted and could work; - is stdin",
    },
  ],
  outputs: ["table", "json", "yaml"],
  examples: [
    "sidecarset check",
    "sidecarset check -o json | jq -r '.findings[].id'",
    "sidecarset install --url https://webhooks.example.com | sidecarset check --pre -",
  ],
  exits: [`${WARNINGS} warnings, and no error`, `${ERRORS} errors`],
  run: async (input, session) => {
    const report = withoutPathSecrets(await reportOf(input, session));
    session.print(report, (screen) => showReport(report, screen));
    if (report.counts.error > 0) return ERRORS;
    return report.counts.warning > 0 ? WARNINGS : 0;
  },
};

async function reportOf(input: Input, session: Session): Promise<CheckReport> {
  const manifest = input.text("pre");
  if (manifest === undefined) return checkInstallation(await readCheckFacts(session));
  const { facts, tried } = await readBeforeInstall(session, manifest);
  return checkBeforeInstall(facts, tried);
}

/** Hides secrets: API servers print whole URLs that did not answer. */
function withoutPathSecrets(report: CheckReport): CheckReport {
  const text = JSON.stringify(report).replaceAll(/\/s\/[A-Za-z0-9_-]{20,}/g, "/s/[not shown]");
  return JSON.parse(text) as CheckReport;
}

/** Computes the cluster with a manifest applied, and asks its API server in a dry run; nothing is stored. */
const TRIES_AT_ONCE = 8;

/** `file`: the output of `install`; - for stdin. @throws KubeError when the cluster cannot be reached */
async function readBeforeInstall(
  session: Session,
  file: string,
): Promise<{ readonly facts: Facts; readonly tried: readonly Tried[] }> {
  const objects = (await readObjects([file])).map(({ object }) => object);
  if (!objects.some(isConfiguration))
    throw new CliError(
      `--pre ${file}: no webhooks are registered in there; give it what this prints: sidecarset install --url URL`,
    );
  const server = await readServer(session);
  const cluster = await session.cluster();
  const [there, namespaces, managers] = await Promise.all([
    readRegistered(cluster),
    all<Namespace>(cluster, NAMESPACES),
    readManagers(cluster),
  ]);
  const names = new Set((seenOf(namespaces) ?? []).map(({ metadata }) => metadata?.name));
  const isPlaceThere = (namespace: string | undefined) =>
    namespace === undefined || "why" in namespaces || names.has(namespace);
  const registered = asApplied(there, objects);
  const [tried, probes] = await Promise.all([
    mapLimited(objects, TRIES_AT_ONCE, (object) =>
      isForFile(object) ? tryForFile(cluster, object, seenOf(server.version)) : tryOut(cluster, object, isPlaceThere),
    ),
    mapLimited(addressesOf(registered), PROBES_AT_ONCE, probe),
  ]);
  const facts: Facts = {
    ...UNUSED,
    now: timestamp(systemClock),
    kruiseNamespace: session.kruiseNamespace,
    ownSchema: ownSchema(),
    ...server,
    ...registered,
    namespaces,
    managers,
    probes,
  };
  return { facts, tried };
}

/** Facts that only a running installation has. They are empty before an installation. */
const UNUSED = {
  sidecarSets: { value: [] },
  pods: { value: [] },
  revisions: { value: [] },
  configMaps: { value: [] },
  lastPass: { value: undefined },
  // An address that this machine cannot reach is only in doubt: API servers may reach it.
  trial: { value: { kind: "untouched" } },
  podTrial: { value: undefined },
  rights: { value: [] },
  optionalObjects: { value: {} },
  settings: DEFAULT_ROLLOUT_SETTINGS,
  kubelets: { value: NO_KUBELETS },
  declaredFeatures: { value: new Map() },
  isResizeServed: { value: false },
  disruptionBudgets: { value: [] },
} as const satisfies Partial<Facts>;

const DEFINITION = "sidecarsets.apps.kruise.io";

function isConfiguration({ kind }: KubernetesObject): boolean {
  return kind === "MutatingWebhookConfiguration" || kind === "ValidatingWebhookConfiguration";
}

/** The registrations and the definition after the manifest is applied. */
function asApplied(
  { mutating, validating, definition }: Pick<Facts, "mutating" | "validating" | "definition">,
  objects: readonly KubernetesObject[],
): Pick<Facts, "mutating" | "validating" | "definition"> {
  const withOurs = (seen: Facts["mutating"], kind: string): Facts["mutating"] => {
    const ours = objects.filter((one) => one.kind === kind) as readonly WebhookConfiguration[];
    const names = new Set(ours.map(({ metadata }) => metadata?.name));
    if ("why" in seen) return seen;
    return { value: [...seen.value.filter(({ metadata }) => !names.has(metadata?.name)), ...ours] };
  };
  const own = objects.find(({ metadata }) => metadata?.name === DEFINITION) as Definition | undefined;
  const { status } = seenOf(definition) ?? {};
  return {
    mutating: withOurs(mutating, "MutatingWebhookConfiguration"),
    validating: withOurs(validating, "ValidatingWebhookConfiguration"),
    definition: own === undefined ? definition : { value: { ...own, ...(status ? { status } : {}) } },
  };
}

function isForFile({ metadata }: KubernetesObject): boolean {
  return metadata?.name?.endsWith(STATIC_SUFFIX) ?? false;
}

/** The API accepts no object with this name, so the dry run uses the name without the suffix. */
async function tryForFile(
  cluster: Cluster,
  object: KubernetesObject,
  server: { readonly minor: string; readonly gitVersion: string } | undefined,
): Promise<Tried> {
  const { name = "" } = object.metadata ?? {};
  const about = `${object.kind} ${name}`;
  if (server && Number.parseInt(server.minor, 10) < READS_FILES)
    return {
      object: about,
      refusal: `${server.gitVersion} reads no registrations from files (docs/install-static.md)`,
    };
  const plain = { ...object, metadata: { ...object.metadata, name: name.slice(0, -STATIC_SUFFIX.length) } };
  return { ...(await tryOut(cluster, plain, () => true)), object: about };
}

/** Minor version of the first API servers that read registrations from files, with a gate. */
const READS_FILES = 36;

/** Creates or changes the object in a dry run, as kubectl apply would. */
async function tryOut(
  cluster: Cluster,
  object: KubernetesObject,
  isPlaceThere: (namespace: string | undefined) => boolean,
): Promise<Tried> {
  const { name = "", namespace } = object.metadata ?? {};
  const about = `${object.kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
  if (!isPlaceThere(namespace)) return { object: about, isUntried: true };
  try {
    await createOrChange(cluster, object);
    return { object: about };
  } catch (error) {
    if (!isKubeError(error) || error.code < 400) throw error;
    return { object: about, refusal: error.message, isForbidden: error.code === 403 };
  }
}

async function createOrChange(cluster: Cluster, object: KubernetesObject): Promise<void> {
  const resource = installedResource(object);
  const { name = "", namespace } = object.metadata ?? {};
  try {
    await cluster.create(resource, object, { dryRun: true });
  } catch (error) {
    if (!isKubeError(error, 409)) throw error;
    const key = namespace === undefined ? { name } : { name, namespace };
    await cluster.patch(resource, key, { type: "merge", body: object }, { dryRun: true });
  }
}
