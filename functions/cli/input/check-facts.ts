/** Reads the facts of a check. A fact that the caller may not read carries the reason. */
import type {
  ConfigMap,
  ControllerRevision,
  KubernetesObject,
  Namespace,
  Pod,
} from "../../../shared/api/kubernetes.ts";
import {
  CONTAINER_PRIORITY_ENV,
  HASH_ANNOTATION,
  KRUISE_NAMESPACE,
  TERMINATE_SIDECAR_ENV,
} from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { systemClock, timestamp } from "../../../shared/controller/loop/clock.ts";
import { mapLimited } from "../../../shared/controller/loop/concurrency-limit.ts";
import { readLease } from "../../../shared/controller/loop/lease.ts";
import { readDisruptionBudgets } from "../../../shared/controller/rollout/disruption-budgets.ts";
import { isResizeServed, listKubelets, NO_KUBELETS } from "../../../shared/controller/rollout/kubelets.ts";
import { listAll } from "../../../shared/controller/rollout/observe-pods.ts";
import { withStatusRefusals } from "../../../shared/controller/rollout/read-observation.ts";
import {
  type DeclaringNode,
  type Definition,
  type Deployment,
  type Facts,
  type Right,
  type Seen,
  seenOf,
  type Trial,
  type WebhookConfiguration,
} from "../../../shared/core/inspect/check/facts.ts";
import { restartsAllContainers } from "../../../shared/core/inspect/check/sidecar-sets.ts";
import { addressesOf, podToTry, registrationsOf } from "../../../shared/core/inspect/check/webhooks.ts";
import type { RolloutSettings } from "../../../shared/core/rollout/rollout-settings.ts";
import { projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import { ownSchema } from "../../../shared/install/crd/sidecarset-crd.ts";
import {
  type AccessObject,
  accessObjects,
  type PolicyRule,
  RECONCILER,
  WEBHOOKS,
} from "../../../shared/install/rbac/access.ts";
import { optionalAccess } from "../../../shared/install/rbac/optional-access.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import {
  type Cluster,
  CONFIG_MAPS,
  CONTAINER_RECREATE_REQUESTS,
  CONTROLLER_REVISIONS,
  type ListOptions,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  NODES,
  PODS,
  type Resource,
  readServerFacts,
  SIDECARSETS,
  STATEFUL_SETS,
} from "../../../shared/kube/port.ts";
import type { Session } from "../session.ts";
import { probe } from "./check-probe.ts";

export const DEPLOYMENTS: Resource = { group: "apps", version: "v1", plural: "deployments", namespaced: true };
export const DEFINITIONS: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};
export const VALIDATING: Resource = { ...MUTATING_WEBHOOK_CONFIGURATIONS, plural: "validatingwebhookconfigurations" };
const MANAGER = "kruise-controller-manager";
export const PROBES_AT_ONCE = 4;

/** The facts of a check. @throws KubeError if the cluster cannot be reached */
export async function readCheckFacts(session: Session): Promise<Facts> {
  const server = await readServer(session);
  const cluster = await session.cluster();
  const { kruiseNamespace } = session;
  const settings = await session.passSettings(cluster);
  const registered = await readRegistered(cluster);
  const [stored, inPlace, trial, rights, optionalObjects, probes] = await Promise.all([
    readStored(cluster, kruiseNamespace, settings),
    readInPlace(cluster, settings),
    readOrWhy(() => tryOut(cluster, SIDECARSETS, TRIAL)),
    readOrWhy(() => askRights(cluster)),
    readOrWhy(() => countOptional(cluster)),
    mapLimited(addressesOf(registered), PROBES_AT_ONCE, probe),
  ]);
  const podTrial = await readOrWhy(() => tryPod(cluster, registered, stored));
  const declaredFeatures = await readOrWhy(() => readDeclaredFeatures(cluster, seenOf(stored.sidecarSets) ?? []));
  return {
    now: timestamp(systemClock),
    kruiseNamespace,
    ...server,
    ...registered,
    ...stored,
    ownSchema: ownSchema(),
    trial,
    podTrial,
    declaredFeatures,
    probes,
    rights,
    optionalObjects,
    settings,
    ...inPlace,
  };
}

/** The value, or the reason why the caller may not read it. An unreachable cluster is an error, not a finding. */
export async function readOrWhy<T>(read: () => Promise<T>): Promise<Seen<T>> {
  try {
    return { value: await read() };
  } catch (error) {
    if (isKubeError(error) && error.code >= 400) return { why: error.message };
    throw error;
  }
}

export async function readServer(session: Session): Promise<Pick<Facts, "version" | "skewSeconds">> {
  const seen = await readOrWhy(async () => readServerFacts(await session.access(), systemClock.epochMs));
  if ("why" in seen) return { version: seen, skewSeconds: seen };
  const { version, skewSeconds } = seen.value;
  return {
    version: { value: version },
    skewSeconds: skewSeconds === undefined ? { why: "its answers have no date" } : { value: skewSeconds },
  };
}

export function all<T extends KubernetesObject>(
  cluster: Cluster,
  resource: Resource,
  options: ListOptions = {},
): Promise<Seen<readonly T[]>> {
  return readOrWhy(async () => (await listAll<T, T>(cluster, resource, options, (one) => one)).items);
}

/** The registrations of the webhooks, and the definition of SidecarSets. */
export async function readRegistered(cluster: Cluster): Promise<Pick<Facts, "mutating" | "validating" | "definition">> {
  const [configurations, definition] = await Promise.all([
    readConfigurations(cluster),
    readOrWhy(() => readDefinition(cluster)),
  ]);
  return { ...configurations, definition };
}

export async function readConfigurations(cluster: Cluster): Promise<Pick<Facts, "mutating" | "validating">> {
  const [mutating, validating] = await Promise.all([
    all<WebhookConfiguration>(cluster, MUTATING_WEBHOOK_CONFIGURATIONS),
    all<WebhookConfiguration>(cluster, VALIDATING),
  ]);
  return { mutating, validating };
}

/** The definition of SidecarSets; undefined: the cluster has none. */
async function readDefinition(cluster: Cluster): Promise<Definition | undefined> {
  try {
    return await cluster.get<Definition>(DEFINITIONS, { name: "sidecarsets.apps.kruise.io" });
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

type Stored = Pick<Facts, "sidecarSets" | "namespaces" | "pods" | "revisions" | "configMaps" | "lastPass" | "managers">;

/** Facts that passes need only with the gates for updates in place. */
async function readInPlace(
  cluster: Cluster,
  settings: RolloutSettings,
): Promise<Pick<Facts, "kubelets" | "isResizeServed" | "disruptionBudgets">> {
  const { NativeSidecarInPlaceUpdate, InPlaceResize } = settings;
  return {
    kubelets: await readOrWhy(async () => (NativeSidecarInPlaceUpdate ? await listKubelets(cluster) : NO_KUBELETS)),
    isResizeServed: await readOrWhy(async () => InPlaceResize && (await isResizeServed(cluster))),
    disruptionBudgets: await readOrWhy(() => readDisruptionBudgets({ cluster, clock: systemClock, settings })),
  };
}

async function readStored(cluster: Cluster, namespace: string, { InPlaceResize }: RolloutSettings): Promise<Stored> {
  const shrunk = (pod: Pod) => shrink(pod, InPlaceResize);
  const [sidecarSets, namespaces, pods, revisions, configMaps, lastPass, managers] = await Promise.all([
    readOrWhy(async () => {
      const { items } = await listAll<SidecarSet, SidecarSet>(cluster, SIDECARSETS, {}, (one) => one);
      return await withStatusRefusals({ cluster, clock: systemClock }, items);
    }),
    all<Namespace>(cluster, NAMESPACES),
    readOrWhy(async () => (await listAll<Pod, Pod>(cluster, PODS, {}, shrunk)).items),
    all<ControllerRevision>(cluster, CONTROLLER_REVISIONS, { namespace }),
    all<ConfigMap>(cluster, CONFIG_MAPS, { namespace }),
    readOrWhy(() => readLastPass(cluster, namespace)),
    readManagers(cluster),
  ]);
  return { sidecarSets, namespaces, pods, revisions, configMaps, lastPass, managers };
}

/** OpenKruise's managers, in any namespace. */
export function readManagers(cluster: Cluster): Promise<Seen<readonly Deployment[]>> {
  return all<Deployment>(cluster, DEPLOYMENTS, { fieldSelector: `metadata.name=${MANAGER}` });
}

async function readLastPass(cluster: Cluster, namespace: string): Promise<string | undefined> {
  const { stored } = await readLease({ cluster, clock: systemClock, namespace, over: new Set() });
  return stored?.spec?.renewTime;
}

/** Number of objects by the role that serves them. A kind without a definition counts as 0. */
async function countOptional(cluster: Cluster): Promise<Readonly<Record<string, number>>> {
  const [recreate, sets] = await Promise.all(
    [CONTAINER_RECREATE_REQUESTS, STATEFUL_SETS].map((resource) =>
      count(cluster, resource).catch((error: unknown) => {
        if (isKubeError(error, 404)) return 0;
        throw error;
      }),
    ),
  );
  return { "container-recreate": recreate ?? 0, "ordered-sets": sets ?? 0 };
}

/** Features that nodes declare; nodes before Kubernetes 1.36 declare none. */
async function readDeclaredFeatures(
  cluster: Cluster,
  sidecarSets: readonly SidecarSet[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (!sidecarSets.some(restartsAllContainers)) return new Map();
  const { items } = await listAll<DeclaringNode, DeclaringNode>(cluster, NODES, {}, (one) => one);
  if (items.every(({ status }) => status?.declaredFeatures === undefined)) return new Map();
  return new Map(items.map(({ metadata, status }) => [metadata?.name ?? "", status?.declaredFeatures ?? []]));
}

/** Reads one object only, because the API server reports the number of the others. */
export async function count(cluster: Cluster, resource: Resource): Promise<number> {
  const { items, metadata } = await cluster.list(resource, { limit: 1 });
  return items.length + (metadata.remainingItemCount ?? 0);
}

const TELLING_ENV: ReadonlySet<string> = new Set([CONTAINER_PRIORITY_ENV, TERMINATE_SIDECAR_ENV]);

/** Keeps the fields of a pod that a pass keeps, and the variables that show optional features. */
function shrink(pod: Pod, withResources: boolean): Pod {
  const small = projectPod(pod, undefined, { resources: withResources, workloads: true, budgetLabels: undefined });
  const containers = small.spec.containers.map((container, index) => {
    const env = (pod.spec.containers[index]?.env ?? []).filter(({ name }) => TELLING_ENV.has(name));
    return env.length === 0 ? container : { ...container, env: env.map(({ name }) => ({ name })) };
  });
  return { ...small, spec: { ...small.spec, containers } };
}

const TRIAL = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "sidecarset-check-of-the-webhooks" },
  spec: {
    selector: { matchLabels: { "sidecarset.kruise.io/check": "none" } },
    containers: [{ name: "sidecarset-check", image: "check:1" }],
  },
};

/** A dry run of a pod shows whether a file of the API servers registers the webhook, where no readable object does. */
async function tryPod(
  cluster: Cluster,
  registered: Pick<Facts, "mutating" | "validating">,
  { sidecarSets, namespaces }: Pick<Facts, "sidecarSets" | "namespaces">,
): Promise<Trial | undefined> {
  if (registrationsOf(registered)?.pods.length !== 0) return undefined;
  const pod = podToTry(seenOf(sidecarSets) ?? [], seenOf(namespaces) ?? []);
  return pod && tryOut(cluster, PODS, pod);
}

/** Creates the object in a dry run: the API server asks the webhooks, and stores nothing. */
async function tryOut(cluster: Cluster, resource: Resource, object: KubernetesObject): Promise<Trial> {
  try {
    const { metadata } = await cluster.create<KubernetesObject>(resource, object, { dryRun: true });
    return { kind: metadata?.annotations?.[HASH_ANNOTATION] === undefined ? "untouched" : "admitted" };
  } catch (error) {
    if (!isKubeError(error)) throw error;
    if (/failed calling webhook/.test(error.message)) return { kind: "unanswered", message: error.message };
    // The product's other webhook adds the defaults, so this refusal is no fault.
    if (/"vsidecarset[.]kb[.]io" denied the request/.test(error.message)) return { kind: "untouched" };
    throw error;
  }
}

/**
 * Asks the API server about the rights of the product's accounts: rights that infra/rbac grants, and rights that
 * nothing here needs.
 */
const REVIEWS: Resource = {
  group: "authorization.k8s.io",
  version: "v1",
  plural: "subjectaccessreviews",
  namespaced: false,
};
const AT_ONCE = 8;

interface Question extends Omit<Right, "isAllowed"> {
  readonly attributes: Attributes;
}

/** authorization.k8s.io/v1 ResourceAttributes. */
interface Attributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly namespace?: string;
}

/** The answers about rights. @throws KubeError if the caller may not ask */
function askRights(cluster: Cluster): Promise<readonly Right[]> {
  return mapLimited(questions(), AT_ONCE, async ({ attributes, ...question }) => ({
    ...question,
    isAllowed: await isAllowed(cluster, question.account, attributes),
  }));
}

interface Review extends KubernetesObject {
  readonly spec: object;
  readonly status?: { readonly allowed?: boolean };
}

async function isAllowed(cluster: Cluster, account: string, resourceAttributes: Attributes): Promise<boolean> {
  const { status } = await cluster.create<Review>(REVIEWS, {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    spec: {
      user: `system:serviceaccount:${KRUISE_NAMESPACE}:${account}`,
      groups: [
        "system:authenticated",
        "system:serviceaccounts",
        `system:serviceaccounts:${KRUISE_NAMESPACE}`,
        // The groups that identities from outside the cluster are mapped to.
        account === RECONCILER ? "sidecarset:reconciler" : "sidecarset:webhooks",
      ],
      resourceAttributes,
    },
  });
  return status?.allowed === true;
}

function questions(): readonly Question[] {
  const optional = optionalAccess().flatMap(({ feature, objects }) =>
    objects.flatMap((one) => questionsOf(accountOf(one), one, feature)),
  );
  return [...accessObjects().flatMap((one) => questionsOf(accountOf(one), one, "base")), ...optional, ...excess()];
}

function accountOf({ metadata }: KubernetesObject): string {
  return metadata?.name?.startsWith(RECONCILER) ? RECONCILER : WEBHOOKS;
}

function questionsOf(account: string, { metadata, rules = [] }: AccessObject, role: string): readonly Question[] {
  return rules.flatMap((rule) => attributesOf(rule, metadata?.namespace)).map((one) => question(account, one, role));
}

function attributesOf(
  { apiGroups, resources, verbs, resourceNames }: PolicyRule,
  namespace: string | undefined,
): readonly Attributes[] {
  const names = resourceNames ?? [undefined];
  const place = namespace === undefined ? {} : { namespace };
  return apiGroups.flatMap((group) =>
    resources.flatMap((full) => {
      const [resource = "", subresource] = full.split("/");
      const what = { group, resource, ...(subresource === undefined ? {} : { subresource }), ...place };
      return verbs.flatMap((verb) => names.map((name) => ({ ...what, verb, ...(name === undefined ? {} : { name }) })));
    }),
  );
}

function question(account: string, attributes: Attributes, role: string): Question {
  const { verb, resource, subresource, name, namespace } = attributes;
  const object = [resource, subresource].filter(Boolean).join("/") + (name === undefined ? "" : ` ${name}`);
  return { account, role, attributes, what: `${verb} ${object}${namespace === undefined ? "" : ` in ${namespace}`}` };
}

/** Rights that no role of the product grants, with any feature. */
function excess(): readonly Question[] {
  const nobody: readonly Attributes[] = [
    { verb: "get", group: "", resource: "secrets" },
    { verb: "create", group: "", resource: "pods", subresource: "exec" },
    { verb: "delete", group: "", resource: "namespaces" },
    { verb: "delete", group: "apps.kruise.io", resource: "sidecarsets" },
    { verb: "create", group: "rbac.authorization.k8s.io", resource: "clusterrolebindings" },
    { verb: "impersonate", group: "", resource: "users" },
  ];
  const readersOnly: readonly Attributes[] = [
    { verb: "patch", group: "", resource: "pods" },
    { verb: "create", group: "", resource: "pods" },
    { verb: "patch", group: "apps.kruise.io", resource: "sidecarsets" },
    { verb: "create", group: "apps", resource: "controllerrevisions" },
  ];
  return [
    ...[RECONCILER, WEBHOOKS].flatMap((account) => nobody.map((one) => question(account, one, "none"))),
    ...readersOnly.map((one) => question(WEBHOOKS, one, "none")),
  ];
}
