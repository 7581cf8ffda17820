/** `migrate`: a plan to move from OpenKruise and back, made from the objects of the cluster. It writes nothing. */

import type { ConfigMap, ControllerRevision, KubernetesObject, Namespace } from "../../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, SIDECARSET_NAME_LABEL } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { mapLimited } from "../../../shared/controller/loop/concurrency-limit.ts";
import type { Definition, Seen, WebhookConfiguration } from "../../../shared/core/inspect/check/facts.ts";
import { registered } from "../../../shared/core/inspect/check/webhooks.ts";
import { planFromKruise, planToKruise } from "../../../shared/core/inspect/migrate/from-kruise.ts";
import type {
  CountedKind,
  Migration,
  MigrationFacts,
  Workload,
} from "../../../shared/core/inspect/migrate/inventory.ts";
import {
  type Cluster,
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  PODS,
  SIDECARSETS,
} from "../../../shared/kube/port.ts";
import { CliError, type Color, type Screen } from "../../terminal/screen.ts";
import { wrap } from "../../terminal/table.ts";
import type { Command } from "../command.ts";
import { all, count, DEFINITIONS, DEPLOYMENTS, readManagers, readOrWhy, VALIDATING } from "../input/check-facts.ts";
import { type Neighbours, requireValid, storedForm } from "../input/given-set.ts";
import type { Session } from "../session.ts";

/** Reads the objects of a migration: OpenKruise's manager, its webhooks and kinds, and the SidecarSets. */
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

interface ReadMigrationFacts extends MigrationFacts {
  /** other objects that the webhook reads for a SidecarSet */
  readonly neighbours: Pick<Neighbours, "revisions" | "configMaps">;
}

/** The facts of a migration. @throws KubeError if the cluster cannot be reached */
async function readMigrationFacts(session: Session): Promise<ReadMigrationFacts> {
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
  // The stored version needs no conversion.
  const version = (versions.find(({ storage }) => storage) ?? versions[0])?.name ?? "v1alpha1";
  const seen = await readOrWhy(() => count(cluster, { group, version, plural, namespaced: scope === "Namespaced" }));
  return { group, kind, plural, count: "value" in seen ? seen.value : undefined };
}

const BLOCKED = 3;

const COMMON = {
  group: "Install it",
  outputs: ["table", "json", "yaml"],
  exits: [`${BLOCKED} something has to be fixed first`],
} as const;

export const FROM_KRUISE: Command = {
  ...COMMON,
  name: "migrate from-kruise",
  summary: "how to move from OpenKruise's manager to these functions: a plan, nothing is written",
  details:
    "Says what there is, what stays the same, what changes, what to beware of, and every line to run, each with the one that takes it back. No pod restarts. docs/migration.md tells the why.",
  options: [
    { flags: "--url <URL>", about: "where the webhooks answer, https" },
    { flags: "--ca-bundle <FILE>", about: "as of `webhooks`; its name stands in the lines" },
    { flags: "--path-secrets <FILE>", about: "as of `webhooks`; its name stands in the lines" },
  ],
  examples: ["sidecarset migrate from-kruise --url https://webhooks.example.com"],
  run: async (input, session) => {
    const [caBundle, pathSecrets] = [input.text("ca-bundle"), input.text("path-secrets")];
    const facts = await readMigrationFacts(session);
    const options = {
      url: urlOf(input.text("url")),
      ...(caBundle === undefined ? {} : { caBundle }),
      ...(pathSecrets === undefined ? {} : { pathSecrets }),
    };
    return printMigration(planFromKruise(facts, options, problemsOf(facts)), session);
  },
};

export const TO_KRUISE: Command = {
  ...COMMON,
  name: "migrate to-kruise",
  summary: "how to move back to OpenKruise's manager: a plan, nothing is written",
  details: "No pod restarts: hashes, annotations and revisions are OpenKruise's own. docs/migration.md tells the why.",
  examples: ["sidecarset migrate to-kruise"],
  run: async (_input, session) => printMigration(planToKruise(await readMigrationFacts(session)), session),
};

const PLACEHOLDER = "https://HOST";

function urlOf(url: string | undefined): string {
  if (url === undefined) return PLACEHOLDER;
  if (URL.canParse(url) && new URL(url).protocol === "https:") return url;
  throw new CliError(`--url ${url}: API servers call https only; write for example https://webhooks.example.com`);
}

/** SidecarSets that the webhook would refuse or hash differently. A healthy installation has none. */
function problemsOf({ sidecarSets, neighbours }: ReadMigrationFacts): readonly string[] {
  return sidecarSets.flatMap((one) => {
    const place = `SidecarSet ${one.metadata?.name}`;
    try {
      const stored = storedForm({ object: one, place });
      requireValid(stored, one, place, { sidecarSets, ...neighbours });
      const [wanted, has] = [stored, one].map(({ metadata }) => metadata?.annotations?.[HASH_ANNOTATION]);
      if (wanted === has) return [];
      return [
        `${place} has a hash that is not that of its content, so that all of its pods would count as old: change it once while OpenKruise's webhook is there`,
      ];
    } catch (error) {
      if (error instanceof CliError) return [error.message];
      throw error;
    }
  });
}

function printMigration(migration: Migration, session: Session): number {
  session.print(migration, (screen) => showMigration(migration, screen));
  return migration.blocks.length > 0 ? BLOCKED : 0;
}

export function showMigration({ found, blocks, same, changes, risks, steps }: Migration, screen: Screen): void {
  showList(screen, "Found", found);
  showList(screen, "To be fixed first", blocks, "red");
  showList(screen, "Stays the same", same);
  showList(screen, "Changes", changes);
  showList(screen, "Beware", risks, "yellow");
  if (steps.length > 0) screen.line({ text: "Steps", color: "bold" });
  for (const [index, { what, commands, back }] of steps.entries()) {
    const [first = "", ...rest] = wrap(what, screen.width, 4);
    screen.line({ text: String(index + 1).padStart(2), color: "bold" }, `. ${first}`);
    for (const line of rest) screen.line(line);
    // Lines are not broken, because people copy them.
    for (const command of commands) screen.line({ text: `    ${command}`, color: "cyan" });
    for (const command of back) screen.line({ text: `    # back: ${command}`, color: "dim" });
  }
  screen.line({ text: "Nothing was written.", color: "dim" });
}

function showList(screen: Screen, title: string, lines: readonly string[], color?: Color): void {
  if (lines.length === 0) return;
  screen.line({ text: title, color: "bold" });
  for (const text of lines) {
    const [first = "", ...rest] = wrap(text, screen.width, 2);
    for (const line of [`- ${first}`, ...rest]) screen.line(color ? { text: line, color } : line);
  }
}
