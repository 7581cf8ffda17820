/** Announces each admitted write of a SidecarSet, and lets it continue only after every pod webhook knows of it. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { ANNOUNCEMENTS_CONFIG_MAP } from "../../api/names.ts";
import { isKubeError } from "../../kube/error.ts";
import type { Cluster } from "../../kube/port.ts";
import type { Admit } from "../review/app.ts";
import {
  ANNOUNCE_WAIT_MS,
  type Announcement,
  type Announcements,
  NONE_YET,
  readNotice,
  writeNotice,
} from "../view/announcements.ts";

export interface AnnouncingOptions {
  readonly connect: () => Promise<Cluster>;
  /** where the ConfigMap is */
  readonly kruiseNamespace: string;
  /** epoch milliseconds */
  readonly now: () => number;
  readonly sleep: (milliseconds: number) => Promise<unknown>;
  /** a number from 0 to 1, exclusive; absent: random */
  readonly random?: () => number;
}

type Write = Pick<Announcement, "name" | "from" | "uid">;

/** Limit of attempts: others announce at the same time, and each of their writes costs a retry. */
const MAX_ATTEMPTS = 20;
const RETRY_MS = 20;

/**
 * The same decision; deletions are allowed. Resolves when no pod webhook uses the state before the announcement.
 * Rejects when it cannot be announced, so that the write is refused, not overlooked.
 */
export function announcing(options: AnnouncingOptions): (admit: Admit) => Admit {
  const announce = announcer(options);
  return (admit) => async (request) => {
    const { operation, subResource } = request;
    const isJudged = operation !== "DELETE" && !subResource;
    const admission = isJudged ? await admit(request) : ({ kind: "allowed" } as const);
    const write = admission.kind === "allowed" ? writeOf(request) : undefined;
    if (write !== undefined) await announce(write);
    return admission;
  };
}

/** Undefined: the write changes nothing that pods get. */
function writeOf({ operation, dryRun, object, oldObject, name = "" }: AdmissionRequest): Write | undefined {
  if (dryRun || (operation === "UPDATE" && isSame(object, oldObject))) return undefined;
  const { uid = "", name: ownName = name } = (oldObject ?? object)?.metadata ?? {};
  return { name: ownName, from: oldObject?.metadata?.resourceVersion ?? "", uid };
}

/** True for an update without a change: it is not stored, so nobody would ever see it. */
function isSame(one: KubernetesObject | null | undefined, other: KubernetesObject | null | undefined): boolean {
  return textOf(one) === textOf(other);
}

function textOf(object: KubernetesObject | null | undefined): string {
  const metadata = { ...object?.metadata, managedFields: undefined };
  return JSON.stringify({ ...object, metadata });
}

/** Announcements that are requested during a write are written together in the next one. */
function announcer(options: AnnouncingOptions): (write: Write) => Promise<void> {
  let next: { readonly writes: Write[]; readonly done: Promise<void> } | undefined;
  let last: Promise<unknown> = Promise.resolve();
  return (write) => {
    if (next === undefined) {
      const writes: Write[] = [];
      const writeAll = async () => {
        next = undefined;
        await record(options, writes);
      };
      const written = last.then(writeAll, writeAll);
      last = written;
      next = { writes, done: written.then(async () => void (await options.sleep(ANNOUNCE_WAIT_MS))) };
    }
    next.writes.push(write);
    return next.done;
  };
}

/** Records the announcements. One lease's time after the ConfigMap is removed, no pod webhook relies on them. */
async function record(options: AnnouncingOptions, writes: readonly Write[]): Promise<void> {
  const cluster = await options.connect().catch((error: unknown) => {
    throw refused(error);
  });
  const { sleep, random = Math.random } = options;
  for (let attempt = 1; ; attempt++) {
    const error = await tryToRecord(cluster, options, writes).catch((failure: unknown) => failure);
    if (error === undefined || isKubeError(error, 404)) return;
    if (attempt === MAX_ATTEMPTS || !isWorthAnother(error)) throw refused(error);
    await sleep(random() * RETRY_MS * attempt);
  }
}

async function tryToRecord(cluster: Cluster, { kruiseNamespace, now }: AnnouncingOptions, writes: readonly Write[]) {
  const notice = await readNotice(cluster, kruiseNamespace);
  await writeNotice(cluster, kruiseNamespace, notice, withMore(notice.announcements, writes, now()));
}

/** True if somebody else wrote first, or the outcome is open: announcing twice does no harm. */
function isWorthAnother(error: unknown): boolean {
  return isKubeError(error) && (!error.isOutcomeKnown || isKubeError(error, 409, 422));
}

function withMore(before: Announcements, writes: readonly Write[], at: number): Announcements {
  const { sequence, latest } = before;
  const epoch = before.epoch === NONE_YET.epoch ? crypto.randomUUID() : before.epoch;
  const more = writes.map((write, index) => ({ ...write, at, sequence: sequence + index + 1 }));
  return { ...before, epoch, sequence: sequence + writes.length, latest: [...latest, ...more] };
}

function refused(cause: unknown): Error {
  const hint = isKubeError(cause, 403) ? " (infra/rbac/access.yaml permits it)" : "";
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new Error(
    `this write can't be announced to the pod webhooks in the ConfigMap ${ANNOUNCEMENTS_CONFIG_MAP}${hint}, try again: ${reason}`,
    { cause },
  );
}
