/** Reads the facts of a SidecarSet as a pass does, and further facts for an explanation. */
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { systemClock, timestamp } from "../../../shared/controller/loop/clock.ts";
import { readLease } from "../../../shared/controller/loop/lease.ts";
import { listAll } from "../../../shared/controller/rollout/observe-pods.ts";
import { readObservation, readWithin } from "../../../shared/controller/rollout/read-observation.ts";
import type { SetFacts } from "../../../shared/core/inspect/explain/trace-rollout.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, SIDECARSETS } from "../../../shared/kube/port.ts";
import { CliError } from "../../terminal/screen.ts";
import type { Session } from "../session.ts";

export function nowText(): string {
  return timestamp(systemClock);
}

/** The SidecarSet and its facts. @throws CliError if the SidecarSet does not exist */
export async function readSet(cluster: Cluster, name: string): Promise<SidecarSet> {
  if (name.includes("/"))
    throw new CliError(
      `${name}: write the name of a SidecarSet; only plan, explain, status, history, undo, pause and resume take other kinds`,
    );
  try {
    return await cluster.get<SidecarSet>(SIDECARSETS, { name });
  } catch (error) {
    // With status 502 only the list shows whether the whole API group is unknown.
    if (!isKubeError(error, 404, 502)) throw error;
    const names = (await listSets(cluster)).map(({ metadata }) => metadata?.name ?? "");
    if (isKubeError(error, 502)) throw error;
    const which = names.length === 0 ? "there is none" : `there are ${names.slice(0, 5).join(", ")}`;
    throw new CliError(`there is no SidecarSet ${name}; ${which}`);
  }
}

/** Lists SidecarSets. `labelSelector`: written as for kubectl; absent: all SidecarSets. */
export async function listSets(cluster: Cluster, labelSelector?: string): Promise<readonly SidecarSet[]> {
  const options = labelSelector === undefined ? {} : { labelSelector };
  try {
    return (await listAll<SidecarSet, SidecarSet>(cluster, SIDECARSETS, options, (one) => one)).items;
  } catch (error) {
    if (!isKubeError(error, 404)) throw error;
    throw new CliError("the cluster knows no SidecarSets; install them first: sidecarset install --help");
  }
}

export interface ReadSet {
  readonly sidecarSet: SidecarSet;
  readonly facts: SetFacts;
}

/** Facts of a SidecarSet. `changed` replaces the stored SidecarSet. @throws CliError if there is no such SidecarSet */
export async function readFacts(
  session: Session,
  cluster: Cluster,
  name: string,
  changed?: SidecarSet,
): Promise<ReadSet> {
  await readSet(cluster, name);
  const { kruiseNamespace } = session;
  const settings = await session.passSettings(cluster);
  const context = { cluster, clock: systemClock, kruiseNamespace, settings };
  const read = await readObservation(context, name, changed).catch((error: unknown) => {
    throw named(error, name);
  });
  if (!read) throw new CliError(`SidecarSet ${name} has just been deleted; look again with sidecarset status`);
  const { sidecarSet, ...observed } = read.observation;
  const lastPass = await readLastPass(cluster, kruiseNamespace);
  return { sidecarSet, facts: { ...observed, ...read.context, lastPass } };
}

/**
 * Reads the pods of one namespace if the caller may not read all pods, and a warning names what is missing.
 * @throws `error` if it is not about missing rights, or no namespace is named
 */
export async function readFactsWithin(
  session: Session,
  cluster: Cluster,
  {
    name,
    namespace,
    error,
  }: { readonly name: string; readonly namespace: string | undefined; readonly error: unknown },
): Promise<ReadSet> {
  if (namespace === undefined || !isKubeError(error, 403)) throw error;
  const sidecarSet = await readSet(cluster, name);
  const settings = await session.passSettings(cluster);
  const context = { cluster, clock: systemClock, kruiseNamespace: session.kruiseNamespace, settings };
  const { observation, context: decideOn, unread } = await readWithin(context, sidecarSet, namespace);
  session.screen.warn(`Not read, for lack of rights: ${unread.join(", ")}. This is about pods of ${namespace} alone.`);
  const { sidecarSet: _, ...observed } = observation;
  return { sidecarSet, facts: { ...observed, ...decideOn, lastPass: undefined } };
}

/** Adds the SidecarSet's name to an error, because a command may concern several. */
function named(error: unknown, name: string): unknown {
  if (isKubeError(error) || !(error instanceof Error)) return error;
  return new Error(`SidecarSet ${name}: ${error.message}`, { cause: error });
}

/**
 * The time when a pass last renewed its Lease, in RFC3339; undefined: there is no Lease, or no right to read it.
 * `name`: the Lease; absent: the Lease of rollouts.
 */
export async function readLastPass(cluster: Cluster, namespace: string, name?: string): Promise<string | undefined> {
  try {
    const site = { cluster, clock: systemClock, namespace, over: new Set<string>(), ...(name ? { name } : {}) };
    const { stored } = await readLease(site);
    return stored?.spec?.renewTime;
  } catch (error) {
    if (isKubeError(error, 403)) return undefined;
    throw error;
  }
}

// The target of a command: a SidecarSet by its name, or an Advanced StatefulSet as KIND/NAME.

/** An Advanced StatefulSet. */
export interface SetTarget {
  readonly kind: "statefulset";
  readonly name: string;
  /** namespace of the set; absent: the namespace of -n, or of the context */
  readonly namespace?: string;
}

export type Target = { readonly kind: "sidecarset"; readonly name: string } | SetTarget;

export const SET_KIND = "statefulset.apps.kruise.io";
/** The argument that takes both kinds of targets. */
export const TARGET_ARGUMENT = {
  name: "<NAME>",
  about: `of the SidecarSet, or ${SET_KIND}/NAME`,
  completion: "set",
} as const;

const ORDERED_SETS = /^(statefulsets?(\.v1(alpha|beta)1)?\.apps\.kruise\.io|asts)$/i;
const BUILT_IN = /^statefulsets?(\.v1)?\.apps$/i;
const AMBIGUOUS = /^(statefulsets?|sts)$/i;
const SIDECARSET_WORD = /^sidecarsets?(\.apps\.kruise\.io)?$/i;
const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/**
 * The object that a text names; a text without a kind is the name of a SidecarSet.
 * @throws CliError for another kind, and for a text that names two
 */
export function targetOf(text: string): Target {
  const [kind = "", ...rest] = text.split("/");
  if (rest.length === 0) return { kind: "sidecarset", name: text };
  const [first = "", second] = rest;
  if (SIDECARSET_WORD.test(kind) && rest.length === 1 && first) return { kind: "sidecarset", name: first };
  if (!ORDERED_SETS.test(kind)) throw otherKind(text, kind, rest.at(-1) ?? "");
  if (rest.length > 2 || !rest.every((one) => NAME.test(one)))
    throw new CliError(`${text}: write ${SET_KIND}/NAME, or ${SET_KIND}/NAMESPACE/NAME`);
  return { kind: "statefulset", name: second ?? first, ...(second === undefined ? {} : { namespace: first }) };
}

function otherKind(text: string, kind: string, name: string): CliError {
  if (AMBIGUOUS.test(kind))
    return new CliError(
      `${text} may be one of two kinds: write ${SET_KIND}/${name}; a StatefulSet of apps/v1 is run by its own controller, and kubectl rollout is for it`,
    );
  if (BUILT_IN.test(kind))
    return new CliError(
      `${text}: StatefulSets of apps/v1 are run by their own controller; kubectl rollout is for them, this command for ${SET_KIND}/NAME`,
    );
  return new CliError(`${text}: write the name of a SidecarSet, or ${SET_KIND}/NAME for an ordered set`);
}
