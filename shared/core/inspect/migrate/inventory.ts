/** The parts of OpenKruise in a cluster, and its features that this project does not replace. */
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
  /** number of objects; undefined: the caller may not count them */
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
  /** conversion of the SidecarSet CRD; undefined: it has none */
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

/** Optional kinds that this project serves, each with a role of its own. */
export function optionalKinds({ kinds }: MigrationFacts): readonly CountedKind[] {
  return kinds.filter(
    ({ group, plural, count = 0 }) => group === SIDECARSET_GROUP && plural in OPTIONAL_ROLES && count > 0,
  );
}

/** The version in the image's tag; undefined: the tag has none. */
export function versionOf({ spec }: Workload): string | undefined {
  const image = spec?.template?.spec?.containers?.[0]?.image ?? "";
  return /:([^:/@]+)(?:@|$)/.exec(image)?.[1];
}

/** Feature gates that the manager sets. */
export function gatesOf({ spec }: Workload): readonly string[] {
  const args = (spec?.template?.spec?.containers ?? []).flatMap(({ args = [] }) => args);
  return args.flatMap((arg) => /^--feature-gates=(.+)$/.exec(arg)?.[1]?.split(",") ?? []);
}

export function protectedNamespaces({ namespaces }: MigrationFacts): readonly string[] {
  return namespaces
    .filter(({ metadata }) => metadata?.labels?.[DELETE_PROTECTION_LABEL] !== undefined)
    .map(({ metadata }) => metadata?.name ?? "");
}

/** SidecarSets with a running rollout, by their status. */
export function runningRollouts({ sidecarSets }: MigrationFacts): readonly string[] {
  return sidecarSets
    .filter(({ metadata, spec, status = {} }) => {
      const { matchedPods = 0, updatedPods = 0, observedGeneration = 0 } = status;
      const isHeld = spec.updateStrategy?.paused === true || spec.updateStrategy?.type === "NotUpdate";
      return !isHeld && (updatedPods < matchedPods || observedGeneration < (metadata?.generation ?? 0));
    })
    .map(({ metadata }) => metadata?.name ?? "");
}

/** Pods that a pass has reserved for an update. */
export function reservedPods({ ledgers }: MigrationFacts): number {
  return ledgers.reduce((sum, { data }) => sum + (parseLedger(data)?.reservations.length ?? 0), 0);
}

// The parts of a migration's plan.

export interface MigrationStep {
  /** the step in one sentence */
  readonly what: string;
  /** commands for a shell, in order */
  readonly commands: readonly string[];
  /** commands that undo the step */
  readonly back: readonly string[];
}

export interface Migration {
  readonly direction: "from-kruise" | "to-kruise";
  /** facts about the cluster */
  readonly found: readonly string[];
  /** facts to fix before the move; empty: nothing blocks it */
  readonly blocks: readonly string[];
  /** behaviour that stays the same */
  readonly same: readonly string[];
  /** behaviour that changes */
  readonly changes: readonly string[];
  readonly risks: readonly string[];
  /** steps of the move; empty while something blocks it */
  readonly steps: readonly MigrationStep[];
}

/** Behaviour that stays the same; test/e2e/takeover*.e2e.ts checks it on a real control plane. */
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
