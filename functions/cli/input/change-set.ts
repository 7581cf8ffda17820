/** A change to a SidecarSet, or to another object, that is stored only if nobody else changed it since it was read. */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { unansweredText, webhookDoubts } from "../../../shared/core/inspect/webhook-doubts.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, type PatchOptions, SIDECARSETS } from "../../../shared/kube/port.ts";
import { CliError } from "../../terminal/error.ts";
import type { Input } from "../command.ts";
import type { Session } from "../session.ts";
import { readConfigurations } from "./check-facts.ts";
import { isCertificate } from "./check-probe.ts";

export interface Change {
  /** merge patch of its spec: null takes a field away */
  readonly spec: object;
  /** absent: none is changed */
  readonly annotations?: Readonly<Record<string, string>>;
  /** the change, as in "log-agent: paused" */
  readonly text: string;
  /** notes about the change, one sentence each */
  readonly notes?: readonly string[];
}

export const DRY_RUN = {
  flags: "--dry-run",
  about: "let the API server and the webhooks judge the change, and store nothing",
};

/**
 * Writes the change; with --dry-run the API server checks it, webhooks included, and stores nothing. Prints problems of
 * the webhooks.
 */
export async function changeSet(input: Input, session: Session, cluster: Cluster, given: ChangeOf): Promise<void> {
  const { sidecarSet, change } = given;
  const { name = "", uid, generation } = sidecarSet.metadata ?? {};
  if (session.generation !== undefined && session.generation !== generation)
    throw new CliError(`SidecarSet ${name} was changed just now, by another client; look at it again, then repeat`);
  const read = () => cluster.get<SidecarSet>(SIDECARSETS, { name });
  const store = (resourceVersion: string | undefined, options: PatchOptions) => {
    const { annotations } = change;
    const metadata = { uid, resourceVersion, ...(annotations ? { annotations } : {}) };
    const body = { metadata, spec: change.spec };
    return cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body }, options);
  };
  const subject = { sidecarSet: name };
  await storeChange(input, session, {
    title: `SidecarSet ${name}`,
    name,
    subject,
    change,
    before: sidecarSet,
    read,
    store,
    doubts: async (stored) => {
      // The change is stored already, so a failed read only costs a warning.
      const configurations = await readConfigurations(cluster).catch((error: Error) => {
        const unread = { why: error.message };
        return { mutating: unread, validating: unread };
      });
      return webhookDoubts(sidecarSet, stored as SidecarSet, { ...configurations, isCertificate });
    },
  });
}

/** Prints that nothing is written, because the object already is as wanted. */
export function showUnchanged(session: Session, subject: Readonly<Record<string, string>>, why: string): void {
  const name = subject["sidecarSet"] ?? subject["statefulSet"] ?? "";
  session.print({ ...subject, change: null, notes: [why] }, (screen) => screen.line(`${name}: ${why}`));
}

interface StoredChange {
  readonly title: string;
  readonly name: string;
  /** the target in the JSON */
  readonly subject: Readonly<Record<string, string>>;
  readonly change: Pick<Change, "text" | "notes">;
  /** the object that the change is based on */
  readonly before: KubernetesObject;
  readonly read: () => Promise<KubernetesObject>;
  /** a patch on condition that the object has this version */
  readonly store: (resourceVersion: string | undefined, options: PatchOptions) => Promise<KubernetesObject>;
  /** warnings about the webhooks after the change */
  readonly doubts?: (stored: KubernetesObject) => Promise<readonly string[]>;
}

/** While a rollout is under way its status is written every second. */
const MAX_TRIES = 10;

export async function storeChange(input: Input, session: Session, given: StoredChange): Promise<void> {
  const { name, subject, change } = given;
  const dryRun = input.isSet("dry-run");
  const stored = await storeUnlessChanged(given, { dryRun });
  const { text } = change;
  const notes = [...(change.notes ?? []), ...((await given.doubts?.(stored)) ?? [])];
  const would = dryRun ? { object: stored } : {};
  const result = { ...subject, change: text, dryRun, notes, generation: stored.metadata?.generation, ...would };
  session.print(result, (screen) => {
    screen.line(`${name}: ${text}${dryRun ? " (dry run, nothing is stored)" : ""}`);
    for (const note of notes) screen.line({ text: note, color: "yellow" });
  });
}

/** Retries when only the status has changed: its writes move the version, and the wanted parts have their own count. */
export async function storeUnlessChanged(
  given: Pick<StoredChange, "title" | "before" | "read" | "store">,
  options: PatchOptions,
): Promise<KubernetesObject> {
  let { metadata } = given.before;
  for (let tries = 1; ; tries++) {
    try {
      return await given.store(metadata?.resourceVersion, options);
    } catch (error) {
      if (!isKubeError(error, 409)) throw unanswered(given.title, error);
      const now = (await given.read()).metadata;
      if (tries === MAX_TRIES || now?.uid !== metadata?.uid || now?.generation !== metadata?.generation)
        throw new CliError(`${given.title} was changed just now, by another client; look at it again, then repeat`);
      metadata = now;
    }
  }
}

function unanswered(title: string, error: unknown): unknown {
  const text = isKubeError(error) ? unansweredText(error.message) : undefined;
  return text === undefined ? error : new Error(`${title}: ${text}`, { cause: error });
}

export interface ChangeOf {
  readonly sidecarSet: SidecarSet;
  readonly change: Change;
}
