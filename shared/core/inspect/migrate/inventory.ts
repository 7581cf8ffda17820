/** Decides what of OpenKruise a cluster has, and which of its features nothing here replaces. */
import type { ConfigMap, KubernetesObject, LabelSelector, Namespace } from "../../../api/kubernetes.ts";
import { DELETE_PROTECTION_LABEL, SIDECARSET_GROUP } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { parseLedger } from "../../ledger.ts";
import type { Deployment } from "../check/facts.ts";

export type Workload = Deployment & { readonly spec?: { readonly selector?: LabelSelector } };

/** A kind of OpenKruise's, and how many objects of it there are. */
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

/** What was seen of a cluster; what may not be looked at is in `unseen`, and empty here. */
export interface MigrationFacts {
  readonly kruiseNamespace: string;
  readonly managers: readonly Workload[];
  readonly daemons: readonly KubernetesObject[];
  /** names of configurations that OpenKruise's manager registered */
  readonly theirConfigurations: readonly string[];
  /** names of ours */
  readonly ourConfigurations: readonly string[];
  readonly kinds: readonly CountedKind[];
  readonly sidecarSets: readonly SidecarSet[];
  readonly pods: number;
  readonly revisions: number;
  readonly namespaces: readonly Namespace[];
  readonly ledgers: readonly ConfigMap[];
  /** of the definition of SidecarSets; undefined: it has none */
  readonly conversion: ConversionClient | undefined;
  /** of the definition of StatefulSets */
  readonly setConversion?: ConversionClient | undefined;
  /** one sentence for each */
  readonly unseen: readonly string[];
}

/** Served here as well. */
const SERVED: ReadonlySet<string> = new Set(["sidecarsets", "containerrecreaterequests", "statefulsets"]);
/** OpenKruise makes them by itself, whether or not anybody uses them. */
const BOOKKEEPING: ReadonlySet<string> = new Set(["nodeimages", "nodepodprobes"]);

export const OPTIONAL_ROLES: Readonly<Record<string, string>> = {
  containerrecreaterequests: "container-recreate",
  statefulsets: "ordered-sets",
};

/** Kinds with objects that only OpenKruise's manager serves. */
export function lackingKinds({ kinds }: MigrationFacts): readonly CountedKind[] {
  return kinds.filter(({ plural, count }) => !SERVED.has(plural) && !BOOKKEEPING.has(plural) && count !== 0);
}

/** Served here too, each with a role of its own. */
export function optionalKinds({ kinds }: MigrationFacts): readonly CountedKind[] {
  return kinds.filter(
    ({ group, plural, count = 0 }) => group === SIDECARSET_GROUP && plural in OPTIONAL_ROLES && count > 0,
  );
}

/** As its image's tag says; undefined: it says nothing */
export function versionOf({ spec }: Workload): string | undefined {
  const image = spec?.template?.spec?.containers?.[0]?.image ?? "";
  return /:([^:/@]+)(?:@|$)/.exec(image)?.[1];
}

/** Whether its manager runs with a feature gate other than by default. */
export function gatesOf({ spec }: Workload): readonly string[] {
  const args = (spec?.template?.spec?.containers ?? []).flatMap(({ args = [] }) => args);
  return args.flatMap((arg) => /^--feature-gates=(.+)$/.exec(arg)?.[1]?.split(",") ?? []);
}

export function protectedNamespaces({ namespaces }: MigrationFacts): readonly string[] {
  return namespaces
    .filter(({ metadata }) => metadata?.labels?.[DELETE_PROTECTION_LABEL] !== undefined)
    .map(({ metadata }) => metadata?.name ?? "");
}

/** SidecarSets whose rollouts are under way, as their status says. */
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

// Decides nothing: what a migration's plan consists of.

export interface MigrationStep {
  /** one sentence */
  readonly what: string;
  /** lines for a shell, to be run in this order */
  readonly commands: readonly string[];
  /** lines that take it back */
  readonly back: readonly string[];
}

export interface Migration {
  readonly direction: "from-kruise" | "to-kruise";
  /** what there is */
  readonly found: readonly string[];
  /** what has to be fixed first; none: go ahead */
  readonly blocks: readonly string[];
  /** what stays the same */
  readonly same: readonly string[];
  /** what is not as before */
  readonly changes: readonly string[];
  readonly risks: readonly string[];
  /** none while something blocks */
  readonly steps: readonly MigrationStep[];
}

/** Held by test/e2e/takeover*.e2e.ts, on a real control plane. */
export const SAME: readonly string[] = [
  "the hashes of every SidecarSet (kruise.io/sidecarset-hash): no pod counts as old because of the move",
  "the annotations of injected pods, and the sidecars in them: no pod restarts",
  "ControllerRevisions: history, undo and injectionStrategy.revision go on",
  "the status of SidecarSets, partition, maxUnavailable and the order of pods; a rollout that is under way goes on where it is",
];

/** A path of a shell command, quoted where it has to be. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
