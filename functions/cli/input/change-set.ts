/** A change to a SidecarSet, or to another object, that is stored only if nobody else changed it since it was read. */
import type { ControllerRevision, KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, SKIP_WAVES_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { unansweredText, webhookDoubts } from "../../../shared/core/inspect/webhook-doubts.ts";
import { commandText } from "../../../shared/core/pod/command-text.ts";
import { steeringOf } from "../../../shared/core/pod/steering/steering.ts";
import {
  giveUpCurrent,
  isWayBack,
  type OutcomeFacts,
  outcomeFacts,
  readyAt,
  revisionOutcome,
  wayBack,
  whyGivenUp,
} from "../../../shared/core/rollout/history/history.ts";
import { undoneBefore } from "../../../shared/core/rollout/rules/halt/undone.ts";
import { sceneOf } from "../../../shared/core/rollout/select/observed-states.ts";
import { recordedFields } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { isControlledBy } from "../../../shared/core/sidecarset/revision/wanted-revision.ts";
import { counted } from "../../../shared/go/counted.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, type PatchOptions, SIDECARSETS } from "../../../shared/kube/port.ts";
import { CliError } from "../../terminal/screen.ts";
import { imagesText } from "../../terminal/table.ts";
import type { Input } from "../command.ts";
import type { Session } from "../session.ts";
import { readConfigurations } from "./check-facts.ts";
import { isCertificate } from "./check-probe.ts";
import { podRows } from "./pod-rows.ts";
import { nowText, type ReadSet } from "./read-set.ts";

export interface Change {
  /** merge patch of the object's spec: null removes a field */
  readonly spec: object;
  /** annotations to write; absent: none is changed */
  readonly annotations?: Readonly<Record<string, string>>;
  /** the change, as in "log-agent: paused" */
  readonly text: string;
  /** notes about the change, each one sentence */
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
  /** the changed object, in the JSON output */
  readonly subject: Readonly<Record<string, string>>;
  readonly change: Pick<Change, "text" | "notes">;
  /** the object that the change is based on */
  readonly before: KubernetesObject;
  readonly read: () => Promise<KubernetesObject>;
  /** a patch that requires this version of the object */
  readonly store: (resourceVersion: string | undefined, options: PatchOptions) => Promise<KubernetesObject>;
  /** warnings about the webhooks after the change */
  readonly doubts?: (stored: KubernetesObject) => Promise<readonly string[]>;
}

/** While a rollout runs, a pass writes the status every second, so a write may need several tries. */
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

/** Retries when only the status has changed: a status write changes the version, but not the generation. */
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

// Finds the revision that `undo` and `abort` return to, and the change that they write for it.

/** Returns the change that `undo` writes, and the sentence about it. @throws CliError if waves cannot be skipped */
export function undoChange(read: ReadSet, revision: ControllerRevision, isSkipping: boolean): Required<Change> {
  const { updateStrategy } = read.sidecarSet.spec;
  const notes = [
    ...notUpdateNotes(read.sidecarSet),
    ...(updateStrategy?.paused ? ["The rollout is paused: pods go back after sidecarset resume."] : []),
    ...(isAbsent(updateStrategy?.partition)
      ? []
      : [`The partition is ${updateStrategy?.partition}: so many pods stay as they are.`]),
    ...doubtsOf(read, revision),
  ];
  const skip = skipOf(read.sidecarSet, revision, isSkipping);
  const annotations = { ...givenUp(read, revision, "undone"), ...skip.annotations };
  return { ...changeTo(revision), annotations, notes: [...notes, ...skip.notes] };
}

/** Returns the change that `abort` writes. @throws CliError if there is no release to give up */
export function abortChange(read: ReadSet): Change {
  const revision = revisionOfOthers(read);
  const { spec, text } = changeTo(revision);
  const skip = steeringOf(read.sidecarSet).waves === undefined ? undefined : skipOf(read.sidecarSet, revision, true);
  const annotations = { ...givenUp(read, revision, "aborted"), ...skip?.annotations };
  const isCanary = read.sidecarSet.spec.injectionStrategy?.revision?.policy === "Partial";
  const strategy = {
    updateStrategy: { paused: false, partition: 0 },
    ...(isCanary ? { injectionStrategy: { revision: null } } : {}),
  };
  const notes = notUpdateNotes(read.sidecarSet);
  return { spec: { ...spec, ...strategy }, annotations, text: `aborted, ${text}`, notes };
}

/** Returns the revisions of the SidecarSet, the newest first. */
export function recordedRevisions({ sidecarSet, facts }: ReadSet): readonly ControllerRevision[] {
  const own = facts.revisions.filter((revision) => isControlledBy(revision, sidecarSet));
  return own.toSorted((a, b) => b.revision - a.revision);
}

export function isCurrent({ metadata }: ControllerRevision, sidecarSet: SidecarSet): boolean {
  return metadata?.annotations?.[HASH_ANNOTATION] === sidecarSet.metadata?.annotations?.[HASH_ANNOTATION];
}

export function revisionFor(read: ReadSet, wanted: number | undefined): ControllerRevision {
  const { sidecarSet } = read;
  const all = recordedRevisions(read);
  const numbers = all.map(({ revision }) => revision).join(", ");
  if (wanted !== undefined) {
    const found = all.find(({ revision }) => revision === wanted);
    if (found) return found;
    throw new CliError(`--to-revision ${wanted}: there is no such revision, but ${numbers || "none at all"}`);
  }
  const previous = wayBack(outcomesOf(read));
  if (previous) return previous;
  const name = sidecarSet.metadata?.name;
  const outcomes = outcomesOf(read);
  const others = all.filter((one) => !isCurrent(one, sidecarSet));
  if (others.length === 0)
    throw new CliError(
      commandText`SidecarSet ${name} has no previous revision; sidecarset history ${name} shows what there is`,
    );
  const why = others.map((one) => `${one.revision} (${revisionOutcome(one, outcomes)})`).join(", ");
  throw new CliError(
    `no revision of ${name} is left that may have worked: ${why}; name one to go back to it all the same: ${commandText`sidecarset undo ${name} --to-revision ${others[0]?.revision}`}`,
  );
}

export function outcomesOf({ sidecarSet, facts }: ReadSet): OutcomeFacts {
  return outcomeFacts(sidecarSet, facts.revisions, sceneOf({ ...facts, sidecarSet }, facts).states);
}

/** The annotation that records the release that `abort` gave up for the current one. */
function givenUp(read: ReadSet, target: ControllerRevision, how: "aborted" | "undone") {
  return giveUpCurrent({ sidecarSet: read.sidecarSet, revisions: recordedRevisions(read) }, target, {
    how,
    at: nowText(),
  });
}

function notUpdateNotes({ spec }: SidecarSet): readonly string[] {
  return spec.updateStrategy?.type === "NotUpdate"
    ? ["The update strategy is NotUpdate: pods stay as they are; only new pods get this revision."]
    : [];
}

/** Reasons against a revision: it was rolled back before, or no ready pod runs it. */
function doubtsOf(read: ReadSet, revision: ControllerRevision): readonly string[] {
  const { sidecarSet, facts } = read;
  const name = sidecarSet.metadata?.name ?? "";
  const pods = podRows({ sidecarSet, facts });
  const readyWith = ({ metadata }: ControllerRevision) =>
    pods.filter((pod) => pod.isReady && pod.revision === metadata?.name).length;
  const undone = undoneBefore(sidecarSet, revision.metadata?.annotations?.[HASH_ANNOTATION] ?? "");
  const givenUp = whyGivenUp(sidecarSet, revision.metadata?.annotations?.[HASH_ANNOTATION] ?? "");
  const taken = [
    ...(undone === undefined ? [] : [`Revision ${revision.revision} was taken back before: ${undone}.`]),
    ...(undone === undefined && givenUp !== undefined ? [`Revision ${revision.revision} was ${givenUp} before.`] : []),
  ];
  if (readyWith(revision) > 0 || readyAt(revision) !== undefined) return taken;
  const running = pods.filter((pod) => pod.revision === revision.metadata?.name).length;
  const seen =
    running === 0 ? "No pod runs it now" : `${counted(running, "pod runs", "pods run")} it, and none is ready`;
  const [best] = recordedRevisions(read).filter((one) => !isCurrent(one, sidecarSet) && readyWith(one) > 0);
  const other = best
    ? ` Revision ${best.revision} is ready in ${counted(readyWith(best), "pod")}: ${commandText`sidecarset undo ${name} --to-revision ${best.revision}`}.`
    : "";
  return [...taken, `It is not known whether revision ${revision.revision} was ever ready. ${seen}.${other}`];
}

/** The revision that most of the pods run that are not updated. */
function revisionOfOthers(read: ReadSet): ControllerRevision {
  const { sidecarSet, facts } = read;
  const name = sidecarSet.metadata?.name;
  const old = podRows({ sidecarSet, facts }).filter(({ isUpdated }) => !isUpdated);
  const count = ({ metadata }: ControllerRevision) => old.filter(({ revision }) => revision === metadata?.name).length;
  const run = recordedRevisions(read)
    .filter((one) => count(one) > 0)
    .toSorted((a, b) => count(b) - count(a));
  const outcomes = outcomesOf(read);
  const good = run.find((one) => !isCurrent(one, sidecarSet) && isWayBack(revisionOutcome(one, outcomes)));
  if (good !== undefined) return good;
  const back = wayBack(outcomesOf(read));
  const next = back
    ? `${commandText`sidecarset undo ${name}`} goes back to revision ${back.revision} (${imagesText(back)})`
    : `choose one of ${commandText`sidecarset history ${name}`}: ${commandText`sidecarset undo ${name} --to-revision NUMBER`}`;
  if (old.length === 0) throw new CliError(`no rollout of ${name} is under way, all pods are updated; ${next}`);
  const [most] = run;
  if (most === undefined) throw new CliError(`no revision is left of what the other pods of ${name} run; ${next}`);
  const outcome = revisionOutcome(most, outcomes);
  throw new CliError(
    `the other pods of ${name} run revision ${most.revision}, which is not one to go back to (${outcome}); ${next}`,
  );
}

/** Lets the rollback to this revision skip the waves if the user asks for it; otherwise a note names the waves. */
function skipOf(
  sidecarSet: SidecarSet,
  { metadata }: ControllerRevision,
  isSkipping: boolean,
): Required<Pick<Change, "notes">> & Pick<Change, "annotations"> {
  const hasWaves = steeringOf(sidecarSet).waves !== undefined;
  if (!hasWaves) return { notes: isSkipping ? ["It has no waves that could be skipped."] : [] };
  const hash = metadata?.annotations?.[HASH_ANNOTATION];
  if (!isSkipping) return { notes: ["Pods go back wave by wave; --skip-waves has all go back at once."] };
  if (hash === undefined)
    throw new CliError(
      "--skip-waves: the revision does not say which hash it has; take the annotation waves away instead",
    );
  return { annotations: { [SKIP_WAVES_ANNOTATION]: hash }, notes: [] };
}

/** The recorded fields; null for a field that the revision lacks. */
function changeTo(revision: ControllerRevision): Pick<Change, "spec" | "text"> {
  return { spec: recordedFields(revision), text: `back to revision ${revision.revision} (${imagesText(revision)})` };
}

function isAbsent(partition: unknown): boolean {
  return partition === undefined || partition === 0 || partition === "0%";
}
