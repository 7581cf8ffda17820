/** Decides nothing: what a migration's plan consists of. */

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
