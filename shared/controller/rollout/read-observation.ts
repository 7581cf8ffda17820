/** Reads the inputs of a pass's decision, for readers that write nothing: the dry run, the command line, the page. */
import type { ControllerRevision, KubernetesObject, Namespace, Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { withRefusal } from "../../core/inspect/check/passes.ts";
import { isReplacedByFile } from "../../core/inspect/check/webhooks.ts";
import {
  type PodRegistration,
  REGISTRATION_IN_FILES,
  type Registrations,
} from "../../core/inspect/explain/registration.ts";
import type { EventObject } from "../../core/inspect/report/rows.ts";
import { ledgerSubject } from "../../core/ledger.ts";
import { restartsAtOnce } from "../../core/pod/replaced.ts";
import type { DecideContext, Observation } from "../../core/rollout/decide.ts";
import { STATUS_REFUSED } from "../../core/rollout/pass-trouble.ts";
import type { RolloutSettings } from "../../core/rollout/rollout-settings.ts";
import { reservedOf } from "../../core/rollout/select/reserved.ts";
import { ifAllowed, isKubeError } from "../../kube/error.ts";
import { type Cluster, EVENTS, MUTATING_WEBHOOK_CONFIGURATIONS, NAMESPACES } from "../../kube/port.ts";
import { type Clock, timestamp } from "../loop/clock.ts";
import { NO_KUBELETS } from "./kubelets.ts";
import { decideContext, decideOn, decideUntilKnown, keptOf, observe, surroundingsOf } from "./observe.ts";
import { listAll, listRevisions, observePods } from "./observe-pods.ts";
import { Reading } from "./reading.ts";
import { newTally } from "./report.ts";
import { readAsked } from "./workloads.ts";

export interface ReadContext {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly kruiseNamespace: string;
  readonly settings: RolloutSettings;
}

export interface ReadObservation {
  readonly observation: Observation & { readonly pods: readonly Pod[] };
  readonly context: DecideContext;
  /** pods created without the sidecars; undefined: unknown */
  readonly missed: readonly Pod[] | undefined;
}

/**
 * Reads the inputs; undefined: the SidecarSet does not exist. `changed`: used in its place. @throws KubeError, and an
 * Error that names what the caller may not read; no part is guessed
 */
export async function readObservation(
  context: ReadContext,
  name: string,
  changed?: SidecarSet,
): Promise<ReadObservation | undefined> {
  // Readers also get the owner of each pod; passes leave it out to save memory.
  const asReader = { endsAtMs: Number.POSITIVE_INFINITY, keepsWorkloads: true };
  const reading = { ...context, ...asReader, tally: newTally(), recorded: new Set<string>() };
  const snapshot = await observe(reading, name, changed);
  if (!snapshot) return undefined;
  const kept = await keptOf(reading, snapshot);
  if (restartsAtOnce(snapshot.sidecarSet) > 0)
    await decideUntilKnown(() => decideOn(reading, snapshot, kept), [readAsked(reading, snapshot)]);
  const surroundings = surroundingsOf(reading, snapshot, kept);
  const [sidecarSet = surroundings.sidecarSet] = await withStatusRefusals(context, [surroundings.sidecarSet]);
  return {
    observation: { ...surroundings, sidecarSet, pods: [...snapshot.observed.view.pods] },
    context: decideContext(context, snapshot.sidecarSet, snapshot.stored.ledger),
    missed: snapshot.missed,
  };
}

/** The SidecarSets with facts that passes may not write into the status; unchanged if Events cannot be read. */
export async function withStatusRefusals(
  { cluster, clock }: Pick<ReadContext, "cluster" | "clock">,
  sidecarSets: readonly SidecarSet[],
): Promise<readonly SidecarSet[]> {
  const fieldSelector = `involvedObject.kind=SidecarSet,reason=${STATUS_REFUSED}`;
  const options = { namespace: "default", fieldSelector };
  const listed = await listAll<EventObject, EventObject>(cluster, EVENTS, options, (event) => event).catch((error) => {
    if (!isKubeError(error)) throw error;
    return undefined;
  });
  const refusals = (listed?.items ?? []).map(({ involvedObject, message = "", lastTimestamp }) => ({
    uid: involvedObject?.uid ?? "",
    text: message,
    at: lastTimestamp ?? "",
  }));
  return sidecarSets.map((one) => withRefusal(one, refusals, timestamp(clock)));
}

// Reads the part of a rollout that callers with rights in one namespace may read: the pods there.

interface ReadWithin extends Pick<ReadObservation, "observation" | "context"> {
  /** the unreadable parts, which complete "could not be read: …" */
  readonly unread: readonly string[];
}

/** The result is about these pods alone. It has no counts, order or plan. @throws KubeError */
export async function readWithin(context: ReadContext, sidecarSet: SidecarSet, namespace: string): Promise<ReadWithin> {
  const { cluster, kruiseNamespace } = context;
  const revisions = await ifAllowed(listRevisions(cluster, kruiseNamespace, sidecarSet.metadata?.name ?? ""));
  // The namespace's labels may be out of reach: what is injected there was selected.
  const { namespaceSelector: _, ...spec } = sidecarSet.spec;
  const here = {
    ...cluster,
    list: (resource, options) => cluster.list(resource, { ...options, namespace }),
  } as typeof cluster;
  const reading = new Reading(sidecarSet, {
    resources: context.settings.InPlaceResize,
    workloads: true,
    budgetLabels: undefined,
  });
  const { view } = await observePods(here, { ...sidecarSet, spec }, reading);
  return {
    observation: {
      sidecarSet,
      pods: [...view.pods] satisfies readonly Pod[],
      revisions: revisions ?? ([] satisfies readonly ControllerRevision[]),
      taken: [],
      checks: [],
      kubelets: NO_KUBELETS,
      isResizeServed: false,
      namespaceLabels: new Map(),
      disruptionBudgets: [],
      reserved: reservedOf([], ledgerSubject(sidecarSet), {}),
    },
    context: decideContext(context, sidecarSet),
    unread: [
      "pods of other namespaces",
      "the ledger of reservations",
      ...(context.settings.RespectDisruptionBudgets ? ["disruption budgets"] : []),
      ...(revisions === undefined ? [`revisions in ${kruiseNamespace}`] : []),
    ],
  };
}

// Reads the facts about a pod's admission: its Namespace, and the webhooks that are registered for pods.

/** The Namespace; undefined: the caller may not read it, or it does not exist. */
export async function readNamespace(cluster: Cluster, name: string): Promise<Namespace | undefined> {
  try {
    return await cluster.get<Namespace>(NAMESPACES, { name });
  } catch (error) {
    if (isKubeError(error, 403, 404)) return undefined;
    throw error;
  }
}

interface WebhookRule {
  readonly operations?: readonly string[];
  readonly resources?: readonly string[];
}

interface Webhook extends PodRegistration {
  readonly rules?: readonly WebhookRule[];
  readonly clientConfig?: {
    readonly url?: string;
    readonly caBundle?: string;
    readonly service?: { readonly name?: string; readonly namespace?: string; readonly path?: string };
  };
  readonly timeoutSeconds?: number;
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  readonly reinvocationPolicy?: string;
}

interface Configuration extends KubernetesObject {
  readonly webhooks?: readonly Webhook[];
}

/** The configurations; undefined: the caller may not read them. */
async function readMutating(cluster: Cluster): Promise<readonly Configuration[] | undefined> {
  return (
    await ifAllowed(listAll<Configuration, Configuration>(cluster, MUTATING_WEBHOOK_CONFIGURATIONS, {}, (one) => one))
  )?.items;
}

/** Webhooks that inject sidecars into new pods, of this project or OpenKruise: both serve the same path. */
function podWebhooks(configurations: readonly Configuration[]): readonly Webhook[] {
  return configurations.flatMap(({ webhooks }) => webhooks ?? []).filter((one) => isForNewPods(one) && isInjector(one));
}

function isForNewPods({ rules = [] }: Webhook): boolean {
  return rules.some(
    ({ operations = [], resources = [] }) =>
      (operations.includes("CREATE") || operations.includes("*")) &&
      (resources.includes("pods") || resources.includes("*")),
  );
}

function isInjector({ name, clientConfig }: Webhook): boolean {
  const path = clientConfig?.url ?? clientConfig?.service?.path ?? "";
  return name === "mpod.kb.io" || path.endsWith("/mutate-pod");
}

export async function readRegistrations(cluster: Cluster): Promise<Registrations> {
  const configurations = await readMutating(cluster);
  if (configurations === undefined) return undefined;
  const webhooks = podWebhooks(configurations);
  return webhooks.length === 0 && configurations.some(isReplacedByFile) ? [REGISTRATION_IN_FILES] : webhooks;
}
