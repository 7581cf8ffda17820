/** The parts of OpenKruise in a cluster, and its features without a replacement here. */
import type { ConfigMap, KubernetesObject, LabelSelector, Namespace } from "../../../api/kubernetes.ts";
import { DELETE_PROTECTION_LABEL, SIDECARSET_GROUP } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { parseLedger } from "../../ledger.ts";
import type { Deployment } from "../check/facts.ts";

export type Workload = Deployment & { readonly spec?: { readonly selector?: LabelSelector } };

/** A kind of OpenKruise, and its number of objects. */
export interface CountedKind {
  readonly group: string;
  readonly kind: string;
  readonly plural: string;
  /** undefined: they may not be counted */
  readonly count: number | undefined;
}

interface ConversionClient {
  readonly url?: string;
  readonly service?: { readonly name?: string; readonly namespace?: string };
}

/** The facts about a cluster. A fact that could not be read is in `unseen`, and empty here. */
export interface MigrationFacts {
  readonly kruiseNamespace: string;
  readonly managers: readonly Workload[];
  readonly daemons: readonly KubernetesObject[];
  /** names of configurations that OpenKruise's manager registered */
  readonly theirConfigurations: readonly string[];
  /** names of configurations that this project registered */
  readonly ourConfigurations: readonly string[];
  readonly kinds: readonly CountedKind[];
  readonly sidecarSets: readonly SidecarSet[];
  readonly pods: number;
  readonly revisions: number;
  readonly namespaces: readonly Namespace[];
  readonly ledgers: readonly ConfigMap[];
  /** conversion of the SidecarSet CRD; undefined: none */
  readonly conversion: ConversionClient | undefined;
  /** conversion of the StatefulSet CRD */
  readonly setConversion?: ConversionClient | undefined;
  /** one sentence for each missing fact */
  readonly unseen: readonly string[];
}

/** Kinds that this project serves too. */
const SERVED: ReadonlySet<string> = new Set(["sidecarsets", "containerrecreaterequests", "statefulsets"]);
/** Kinds that OpenKruise creates by itself, used or not. */
const BOOKKEEPING: ReadonlySet<string> = new Set(["nodeimages", "nodepodprobes"]);

export const OPTIONAL_ROLES: Readonly<Record<string, string>> = {
  containerrecreaterequests: "container-recreate",
  statefulsets: "ordered-sets",
};

/** Kinds with objects that only OpenKruise's manager serves. */
export function lackingKinds({ kinds }: MigrationFacts): readonly CountedKind[] {
  return kinds.filter(({ plural, count }) => !SERVED.has(plural) && !BOOKKEEPING.has(plural) && count !== 0);
}

/** Optional kinds that this project serves, each with its own role. */
export function optionalKinds({ kinds }: MigrationFacts): readonly CountedKind[] {
  return kinds.filter(
    ({ group, plural, count = 0 }) => group === SIDECARSET_GROUP && plural in OPTIONAL_ROLES && count > 0,
  );
}

/** Version in the image's tag; undefined: none */
export function versionOf({ spec }: Workload): string | undefined {
  const image = spec?.template?.spec?.containers?.[0]?.image ?? "";
  return /:([^:/@]+)(?:@|$)/.exec(image)?.[1];
}

/** Feature gates that its manager sets. */
export function gatesOf({ spec }: Workload): readonly string[] {
  const args = (spec?.template?.spec?.containers ?? []).flatMap(({ args = [] }) => args);
  return args.flatMap((arg) => /^--feature-gates=(.+)$/.exec(arg)?.[1]?.split(",") ?? []);
}

export function protectedNamespaces({ namespaces }: MigrationFacts): readonly string[] {
  return namespaces
    .filter(({ metadata }) => metadata?.labels?.[DELETE_PROTECTION_LABEL] !== undefined)
    .map(({ metadata }) => metadata?.name ?? "");
}

/** SidecarSets whose rollouts are running, by their status. */
export function underWay({ sidecarSets }: MigrationFacts): readonly string[] {
  return sidecarSets
    .filter(({ metadata, spec, status = {} }) => {
      const { matchedPods = 0, updatedPods = 0, observedGeneration = 0 } = status;
      const isHeld = spec.updateStrategy?.paused === true || spec.updateStrategy?.type === "NotUpdate";
      return !isHeld && (updatedPods < matchedPods || observedGeneration < (metadata?.generation ?? 0));
    })
    .map(({ metadata }) => metadata?.name ?? "");
}

/** Pods that are reserved for an update by a pass. */
export function reservedPods({ ledgers }: MigrationFacts): number {
  return ledgers.reduce((sum, { data }) => sum + (parseLedger(data)?.reservations.length ?? 0), 0);
}

// The parts of a migration's plan.

export interface MigrationStep {
  /** one sentence */
  readonly what: string;
  /** lines for a shell, in order */
  readonly commands: readonly string[];
  /** lines that take the step back */
  readonly back: readonly string[];
}

export interface Migration {
  readonly direction: "from-kruise" | "to-kruise";
  /** facts about the cluster */
  readonly found: readonly string[];
  /** what has to be fixed first; empty: nothing */
  readonly blocks: readonly string[];
  /** what stays the same */
  readonly same: readonly string[];
  /** what changes */
  readonly changes: readonly string[];
  readonly risks: readonly string[];
  /** empty while something blocks */
  readonly steps: readonly MigrationStep[];
}

/** test/e2e/takeover*.e2e.ts checks these on a real control plane. */
export const SAME: readonly string[] = [
  "the hashes of every SidecarSet (kruise.io/sidecarset-hash): no pod counts as old because of the move",
  "the annotations of injected pods, and the sidecars in them: no pod restarts",
  "ControllerRevisions: history, undo and injectionStrategy.revision go on",
  "the status of SidecarSets, partition, maxUnavailable and the order of pods; a rollout that is under way goes on where it is",
];

/** A path for a shell command, quoted if necessary. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
