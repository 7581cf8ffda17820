/** Reads a SidecarSet from a file, in the form that the webhook would store: valid, with defaults and hashes. */
import type { AdmissionRequest } from "../../../shared/api/admission.ts";
import type { ConfigMap, ControllerRevision, KubernetesObject, Namespace } from "../../../shared/api/kubernetes.ts";
import { SIDECARSET_KIND, SIDECARSET_V1ALPHA1, SIDECARSET_V1BETA1 } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { listAll, listRevisions, observePods } from "../../../shared/controller/rollout/observe-pods.ts";
import { Reading } from "../../../shared/controller/rollout/reading.ts";
import { type NewSetEffect, newSetEffect } from "../../../shared/core/inspect/diff/diff.ts";
import { DEFAULT_ROLLOUT_SETTINGS, type RolloutSettings } from "../../../shared/core/rollout/rollout-settings.ts";
import { validateSidecarSet } from "../../../shared/core/rollout/validate-sidecarset.ts";
import { counted } from "../../../shared/go/counted.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, CONFIG_MAPS, NAMESPACES, SIDECARSETS } from "../../../shared/kube/port.ts";
import { readConfig } from "../../../shared/settings/config.ts";
import { type LintFinding, type LintInput, lint } from "../../library/lint.ts";
import { storedSidecarSet } from "../../library/pass-input.ts";
import { type ReadObject, readObjects } from "../../terminal/read-objects.ts";
import { CliError, type Screen } from "../../terminal/screen.ts";
import { showRenewals, wrap } from "../../terminal/table.ts";
import type { Session } from "../session.ts";
import { listSets } from "./read-set.ts";

const WHITELIST = "kruise-configuration";

export function isSidecarSet({ kind, apiVersion }: KubernetesObject): boolean {
  return kind === SIDECARSET_KIND && (apiVersion === SIDECARSET_V1BETA1 || apiVersion === SIDECARSET_V1ALPHA1);
}

/** The feature gates in FEATURE_GATES that change which fields are valid. */
export function gatesOfLint(): NonNullable<LintInput["featureGates"]> {
  const gates = [...Object.keys(DEFAULT_ROLLOUT_SETTINGS), "SidecarSetPatchPodMetadataDefaultsAllowed"];
  return Object.fromEntries(Object.entries(readConfig().featureGates).filter(([gate]) => gates.includes(gate)));
}

/** The stored form, with defaults and hashes. @throws CliError that names the wrong place */
export function storedForm({ object, place }: Pick<ReadObject, "object" | "place">): SidecarSet {
  try {
    return storedSidecarSet(object);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new CliError(`${place}: ${cause.message}; correct it there`, { cause });
  }
}

export interface Neighbours {
  /** all SidecarSets in the cluster */
  readonly sidecarSets: readonly SidecarSet[];
  readonly revisions: readonly ControllerRevision[];
  /** ConfigMaps, with the whitelist of patchPodMetadata */
  readonly configMaps: readonly ConfigMap[];
  /** settings of the passes, which run with the webhooks' gates; absent: FEATURE_GATES here */
  readonly settings?: RolloutSettings;
}

/** The other objects that the webhook reads for a SidecarSet. @throws KubeError */
export async function readNeighbours(session: Session, cluster: Cluster, { metadata, spec }: SidecarSet) {
  const { kruiseNamespace: namespace } = session;
  const [sidecarSets, revisions, whitelist, settings] = await Promise.all([
    listSets(cluster),
    listRevisions(cluster, namespace, metadata?.name ?? ""),
    spec.patchPodMetadata === undefined ? undefined : readWhitelist(cluster, namespace),
    session.passSettings(cluster),
  ]);
  return { sidecarSets, revisions, configMaps: whitelist ? [whitelist] : [], settings } satisfies Neighbours;
}

async function readWhitelist(cluster: Cluster, namespace: string): Promise<ConfigMap | undefined> {
  try {
    return await cluster.get<ConfigMap>(CONFIG_MAPS, { namespace, name: WHITELIST });
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

/** Refuses an invalid SidecarSet. @throws CliError with every field error that the webhook would report */
export function requireValid(
  sidecarSet: SidecarSet,
  before: SidecarSet | undefined,
  place: string,
  { sidecarSets, revisions, configMaps, settings }: Neighbours,
): void {
  const { kruiseNamespace, featureGates: own } = readConfig();
  const featureGates = { ...own, ...settings };
  const request = {
    ...requestOf(sidecarSet, before ? "UPDATE" : "CREATE"),
    ...(before ? { oldObject: before } : {}),
  };
  const view = { sidecarSets, controllerRevisions: revisions, configMaps, kruiseNamespace, featureGates };
  const admission = validateSidecarSet(request, view);
  if (admission.kind === "denied") throw new CliError(`${place}: ${admission.message}; correct it there`);
}

function requestOf(object: KubernetesObject, operation: "CREATE" | "UPDATE"): AdmissionRequest {
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  return { uid: "preview", resource, operation, object };
}

export interface GivenSet {
  readonly sidecarSet: SidecarSet;
  readonly place: string;
}

/**
 * The SidecarSet with this name in the files, or their only one; undefined: no file was given. It warns about fields
 * without effect.
 * @throws CliError
 */
export async function readGivenSet(
  screen: Screen,
  files: readonly string[],
  wanted: string | undefined,
): Promise<GivenSet | undefined> {
  if (files.length === 0) return undefined;
  const found = (await readObjects(files)).filter(({ object }) => isSidecarSet(object));
  const name = wanted ?? onlyName(files, found);
  const named = found.filter(({ object }) => object.metadata?.name === name);
  const [only, second] = named;
  if (only === undefined) {
    const others = found.map(({ object }) => object.metadata?.name ?? "(no name)").join(", ");
    throw new CliError(`${files.join(", ")}: no SidecarSet ${name} in there${others ? `, but ${others}` : ""}`);
  }
  if (second !== undefined) throw new CliError(`${second.place}: SidecarSet ${name} is given twice; leave one out`);
  warnOf([only], screen);
  return { sidecarSet: storedForm(only), place: only.place };
}

/** All SidecarSets in the files, in their order. It warns about fields without effect. @throws CliError */
export async function readGivenSets(screen: Screen, files: readonly string[]): Promise<readonly GivenSet[]> {
  const found = (await readObjects(files)).filter(({ object }) => isSidecarSet(object));
  const names = found.map(({ object }) => object.metadata?.name);
  if (found.length === 0) throw new CliError(`${files.join(", ")}: no SidecarSet in there; add one with -f`);
  for (const [index, { object, place }] of found.entries()) {
    const name = object.metadata?.name;
    if (!name) throw new CliError(`${place}: the SidecarSet in there has no metadata.name; add it`);
    if (names.indexOf(name) !== index) throw new CliError(`${place}: SidecarSet ${name} is given twice; leave one out`);
  }
  warnOf(found, screen);
  return found.map((one) => ({ sidecarSet: storedForm(one), place: one.place }));
}

/** Prints the warnings of `lint`, and the values that kubectl reads differently than they look. */
export function warnOf(read: readonly ReadObject[], screen: Screen): void {
  for (const finding of lint({ objects: read.map(({ object }) => object) }))
    if (finding.severity === "warning" && !finding.needsCluster)
      screen.warn(`${placeOfFinding(finding, read)}: ${finding.message}`);
  warnOfRepeated(read, screen);
}

/** Warns about repeated keys; kubectl takes the last one. */
export function warnOfRepeated(read: readonly ReadObject[], screen: Screen): void {
  for (const { key, place } of read.flatMap((one) => one.repeatedKeys))
    screen.warn(`${place}: ${key} is given twice; the last one counts`);
}

const FIELD = /\b(?:spec|metadata)(?:\.[\w-]+|\[[^\]]*\])+/;
/** Fields that OpenKruise's messages name without their parents. */
const SHORT = /^(?:revision|updateStrategy)(?=[.:])/;
const PARENTS: Readonly<Record<string, string>> = { revision: "spec.injectionStrategy.", updateStrategy: "spec." };

/** Position of the field that a finding names, as file:line:column; otherwise the position of its object. */
export function placeOfFinding({ index, message }: LintFinding, read: readonly ReadObject[]): string {
  const whole = message.replace(SHORT, (name) => `${PARENTS[name]}${name}`);
  const [field = ""] = FIELD.exec(whole) ?? [];
  return read[index]?.placeOf(field.match(/[^.[\]]+/g) ?? []) ?? "";
}

function onlyName(files: readonly string[], found: readonly ReadObject[]): string {
  const names = [...new Set(found.map(({ object }) => object.metadata?.name ?? ""))];
  const [only] = names;
  if (only !== undefined && names.length === 1) {
    if (only !== "") return only;
    throw new CliError(`${files.join(", ")}: the SidecarSet in there has no metadata.name; add it`);
  }
  const what = names.length === 0 ? "no SidecarSet is in there" : `it holds ${names.join(", ")}`;
  throw new CliError(`${files.join(", ")}: ${what}; say which one: NAME behind the command`);
}

// The effect of a SidecarSet on the cluster, before it is stored.

interface Given {
  readonly sidecarSet: SidecarSet;
  readonly place: string;
}

/** The stored SidecarSet with this name; undefined: the cluster has none. @throws KubeError */
export async function storedSet(cluster: Cluster, { sidecarSet }: Given): Promise<SidecarSet | undefined> {
  try {
    return await cluster.get<SidecarSet>(SIDECARSETS, { name: sidecarSet.metadata?.name ?? "" });
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

/**
 * The pods that the new SidecarSet selects, and how they get its sidecars. @throws CliError if the webhook would refuse
 * it
 */
export async function readNewSet(session: Session, cluster: Cluster, given: Given): Promise<NewSetEffect> {
  const { sidecarSet, place } = given;
  requireValid(sidecarSet, undefined, place, await readNeighbours(session, cluster, sidecarSet));
  const reading = new Reading(sidecarSet, { resources: false, workloads: true, budgetLabels: undefined });
  const { view } = await observePods(cluster, sidecarSet, reading);
  const namespaces = (await listAll<Namespace, Namespace>(cluster, NAMESPACES, {}, (one) => one)).items;
  return newSetEffect([...view.pods], { namespaces, settings: await session.passSettings(cluster) });
}

const NAMED = 5;

export function showNewSet({ pods, renewals, excluded }: NewSetEffect, name: string, screen: Screen): void {
  const paragraph = (text: string) => {
    for (const line of wrap(text, screen.width)) screen.line(line);
  };
  screen.line(
    { text: `${SIDECARSET_KIND} ${name}`, color: "bold" },
    " is not stored yet, and the webhook would accept it.",
  );
  if (pods.length === 0) paragraph("No pod that runs matches its selector.");
  else {
    const named = pods.slice(0, NAMED).map(({ namespace, name: pod }) => `${namespace}/${pod}`);
    const more = pods.length > NAMED ? [`${pods.length - NAMED} more (-o json has all)`] : [];
    paragraph(
      `${counted(pods.length, "pod that runs matches", "pods that run match")} its selector, and ${pods.length === 1 ? "gets" : "get"} its sidecars only when recreated: ${[...named, ...more].join(", ")}`,
    );
  }
  for (const { namespace, pods: count } of excluded)
    paragraph(
      `${counted(count, "more pod", "more pods")} in ${namespace} ${count === 1 ? "never gets" : "never get"} them: API servers ask no webhook there.`,
    );
  showRenewals(renewals, screen);
}
