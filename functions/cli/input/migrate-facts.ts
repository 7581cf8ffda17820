/** Looks at what a migration is about: OpenKruise's manager, its webhooks and kinds, and the SidecarSets. */
import type { ConfigMap, ControllerRevision, KubernetesObject, Namespace } from "../../../shared/api/kubernetes.ts";
import { SIDECARSET_NAME_LABEL } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { mapLimited } from "../../../shared/controller/loop/concurrency.ts";
import type { Definition, Seen, WebhookConfiguration } from "../../../shared/core/inspect/check/facts.ts";
import { registered } from "../../../shared/core/inspect/check/webhooks.ts";
import type { CountedKind, MigrationFacts, Workload } from "../../../shared/core/inspect/migrate/inventory.ts";
import {
  type Cluster,
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  PODS,
  SIDECARSETS,
} from "../../../shared/kube/port.ts";
import type { Session } from "../session.ts";
import { all, count, DEFINITIONS, DEPLOYMENTS, readManagers, readOrWhy, VALIDATING } from "./check-facts.ts";
import type { Neighbours } from "./given-set.ts";

const DAEMON = "kruise-daemon";
const LEDGER = "sidecarset-ledger-";
const COUNTS_AT_ONCE = 4;

interface Kind extends Definition {
  readonly spec?: Definition["spec"] & {
    readonly group?: string;
    readonly scope?: string;
    readonly names?: { readonly kind?: string; readonly plural?: string };
  };
}

export interface ReadMigrationFacts extends MigrationFacts {
  /** what the webhook reads beside a SidecarSet */
  readonly neighbours: Pick<Neighbours, "revisions" | "configMaps">;
}

/** @throws KubeError when the cluster is not reached at all */
export async function readMigrationFacts(session: Session): Promise<ReadMigrationFacts> {
  const { kruiseNamespace: namespace } = session;
  const cluster = await session.cluster();
  const unseen: string[] = [];
  const [managers, daemons, mutating, validating, definitions, sidecarSets, namespaces, configMaps, revisions, pods] =
    await Promise.all([
      readManagers(cluster),
      all<KubernetesObject>(
        cluster,
        { ...DEPLOYMENTS, plural: "daemonsets" },
        { fieldSelector: `metadata.name=${DAEMON}` },
      ),
      all<WebhookConfiguration>(cluster, MUTATING_WEBHOOK_CONFIGURATIONS),
      all<WebhookConfiguration>(cluster, VALIDATING),
      all<Kind>(cluster, DEFINITIONS),
      all<SidecarSet>(cluster, SIDECARSETS),
      all<Namespace>(cluster, NAMESPACES),
      all<ConfigMap>(cluster, CONFIG_MAPS, { namespace }),
      all<ControllerRevision>(cluster, CONTROLLER_REVISIONS, { namespace, labelSelector: SIDECARSET_NAME_LABEL }),
      readOrWhy(() => count(cluster, PODS)),
    ]);
  const seen = <T>(what: string, one: Seen<readonly T[]>): readonly T[] => {
    if ("value" in one) return one.value;
    unseen.push(`${what} could not be looked at: ${one.why}`);
    return [];
  };
  const kinds = seen("definitions", definitions).filter(({ spec }) => spec?.group?.endsWith("kruise.io"));
  const conversionOf = (plural: string) =>
    kinds.find(({ spec }) => spec?.names?.plural === plural)?.spec?.conversion?.webhook?.clientConfig;
  const configurations = [...seen("mutating webhooks", mutating), ...seen("validating webhooks", validating)];
  const neighbours = { revisions: seen("revisions", revisions), configMaps: seen("ledgers", configMaps) };
  return {
    kruiseNamespace: namespace,
    neighbours,
    managers: seen<Workload>("deployments", managers),
    daemons: seen("daemonsets", daemons),
    ...ownersOf(configurations),
    kinds: await mapLimited(kinds, COUNTS_AT_ONCE, (kind) => countKind(cluster, kind)),
    sidecarSets: seen("SidecarSets", sidecarSets),
    pods: "value" in pods ? pods.value : 0,
    revisions: neighbours.revisions.length,
    namespaces: seen("namespaces", namespaces),
    ledgers: neighbours.configMaps.filter(({ metadata }) => metadata?.name?.startsWith(LEDGER)),
    conversion: conversionOf("sidecarsets"),
    setConversion: conversionOf("statefulsets"),
    unseen,
  };
}

const OURS = /^[mv](pod|sidecarset)[.]kb[.]io$/;

function ownersOf(configurations: readonly WebhookConfiguration[]) {
  const ones = registered(configurations);
  const names = (isWanted: (one: (typeof ones)[number]) => boolean) => [
    ...new Set(ones.filter(isWanted).map(({ configuration }) => configuration)),
  ];
  return {
    theirConfigurations: names(({ isOpenKruise }) => isOpenKruise),
    ourConfigurations: names(({ webhook, isOpenKruise }) => !isOpenKruise && OURS.test(webhook.name)),
  };
}

async function countKind(cluster: Cluster, { spec }: Kind): Promise<CountedKind> {
  const { group = "", names: { kind = "", plural = "" } = {}, versions = [], scope } = spec ?? {};
  // What is stored need not be converted.
  const version = (versions.find(({ storage }) => storage) ?? versions[0])?.name ?? "v1alpha1";
  const seen = await readOrWhy(() => count(cluster, { group, version, plural, namespaced: scope === "Namespaced" }));
  return { group, kind, plural, count: "value" in seen ? seen.value : undefined };
}
