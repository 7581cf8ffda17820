/** The facts about the pods that pull images, their records in the ledger, and the texts about them. */
import type { ContainerStatus, Pod } from "../../../../api/kubernetes.ts";
import { PRE_PULL_DIGEST_LABEL } from "../../../../api/names.ts";
import { addSeconds, secondsBetween } from "../../../../go/seconds-between.ts";
import { CONTAINER_REASONS, type ContainerReason, waitingReasonOf } from "../../../pod/container-failure.ts";
import { refusalText } from "../../../refused-pods.ts";

/** Seconds for a pull. Its pod is deleted afterwards. */
export const DEADLINE_SECONDS = 600;
/** Seconds within which a kubelet that answers ends the pod. */
const GRACE_SECONDS = 30;
/** Limit of failed nodes. With more failures the image itself is bad, so no other node is tried. */
export const MOST_FAILURES = 50;
/** Seconds from a failure to the next try; the time doubles with each failure. */
const FIRST_WAIT_SECONDS = 30;
const LONGEST_WAIT_SECONDS = 600;
const REFUSAL_WAIT_SECONDS = 60;
/** Seconds between two looks of a pass while a node pulls. */
export const LOOK_SECONDS = 2;

/** The pull pods of a SidecarSet, and the nodes on which they pull. */
export interface PullFacts {
  /** the namespace of the kruise configuration */
  readonly namespace: string;
  /** pull pods of this SidecarSet */
  readonly pods: readonly Pod[];
  /** record in the ledger; absent: there is none */
  readonly record?: string | undefined;
  /** true: in a plan every node has the images, except nodes that could not pull them; absent: this is a pass */
  readonly isPlanned?: true;
  /** the API server's reason to refuse a pull pod, and the time, RFC3339; absent: this pass was not refused */
  readonly refusal?: { readonly message: string; readonly at: string } | undefined;
}

/** The facts with the present time. `now`: RFC3339, by the API server's clock */
export type PullFactsNow = PullFacts & { readonly now: string };

/** A node whose last pull failed. */
interface Failure {
  readonly node: string;
  readonly times: number;
  /** earliest time of the next try, RFC3339 */
  readonly until: string;
  /** refused: the node cannot get the image; unclear: nothing is known about the image */
  readonly kind: "refused" | "unclear";
  /** the failure in one clause */
  readonly message: string;
}

interface PullRecord {
  readonly digest: string;
  readonly failures: readonly Failure[];
  /** the reason why no pod can be created, and the time of the next try */
  readonly refusal?: Pick<Failure, "until" | "message"> | undefined;
}

/** Counts of pulls for the report, conditions and the plan. */
export interface PullsSummary {
  /** number of nodes with waiting pods that lack the images */
  readonly nodes: number;
  /** number of nodes that pull now or that this decision adds */
  readonly underWay: number;
  readonly atOnce: number;
  /** number of pods that wait only for the images */
  readonly waiting: number;
  /** a few of the failed nodes */
  readonly failed: readonly Pick<Failure, "node" | "kind" | "message">[];
  readonly failedCount: number;
  readonly refusal?: string;
  /** true: every remaining node has failed */
  readonly isStuck: boolean;
  /** seconds until the next look; 0 in a plan, which never looks again */
  readonly seconds: number;
}

// Reads the results of the pull pods.

type FailedPull = Pick<Failure, "kind" | "message">;
type Pull = { readonly kind: "pulled" } | { readonly kind: "underWay" } | FailedPull;

export interface SeenPulls {
  readonly digest: string;
  /** pods of this release, by node */
  readonly current: ReadonlyMap<string, { readonly pod: Pod; readonly pull: Pull }>;
  /** pods of other releases, or a second pod on one node */
  readonly others: readonly Pod[];
  readonly failures: ReadonlyMap<string, Failure>;
  readonly refusal: PullRecord["refusal"];
}

export function seePulls(digest: string, { pods, record, refusal, now }: PullFactsNow): SeenPulls {
  const stored = parseRecord(record);
  const known = stored?.digest === digest ? stored : undefined;
  const current = new Map<string, { readonly pod: Pod; readonly pull: Pull }>();
  const others: Pod[] = [];
  for (const pod of pods.filter(isThere)) {
    const node = pod.spec.nodeName ?? "";
    const isCurrent = pod.metadata?.labels?.[PRE_PULL_DIGEST_LABEL] === digest && !current.has(node);
    if (isCurrent) current.set(node, { pod, pull: pullOf(pod, now) });
    else others.push(pod);
  }
  const failures = failuresNow(known?.failures ?? [], current, now);
  const told = refusal ? refusedUntil(refusal) : known?.refusal;
  const isOver = [...current.values()].some(({ pod }) => told && (pod.metadata?.creationTimestamp ?? "") >= told.until);
  return { digest, current, others, failures, refusal: isOver ? undefined : told };
}

function failuresNow(known: readonly Failure[], current: SeenPulls["current"], now: string): Map<string, Failure> {
  const failures = new Map(known.map((one) => [one.node, one]));
  for (const [node, { pod, pull }] of current) {
    const last = failures.get(node);
    if (pull.kind === "pulled") failures.delete(node);
    else if (pull.kind !== "underWay" && isNewFailure(pod, last))
      failures.set(node, failureOf(node, (last?.times ?? 0) + 1, pull, now));
  }
  return failures;
}

function refusedUntil({ at, message }: NonNullable<PullFacts["refusal"]>): PullRecord["refusal"] {
  return { until: later(at, REFUSAL_WAIT_SECONDS), message: refusalText(message) };
}

/** True for a new failure. The failure of a pod created before the next try is known already. */
function isNewFailure({ metadata }: Pod, last: Failure | undefined): boolean {
  return last === undefined || (metadata?.creationTimestamp ?? "") >= last.until;
}

function failureOf(node: string, times: number, { kind, message }: FailedPull, now: string) {
  const seconds = Math.min(FIRST_WAIT_SECONDS * 2 ** (times - 1), LONGEST_WAIT_SECONDS);
  return { node, times, until: later(now, seconds), kind, message: refusalText(message) };
}

function later(now: string, seconds: number): string {
  return addSeconds(now, seconds) ?? now;
}

export function isThere({ metadata }: Pod): boolean {
  return !metadata?.deletionTimestamp;
}

/** The state of a pull, from the pod's status. A pod that reports nothing for too long counts as failed. */
export function pullOf(pod: Pod, now: string): Pull {
  const statuses = pod.status?.containerStatuses ?? [];
  const failed = statuses.find((status) => kindOf(waitingReasonOf(status)) === "pull" && !status.imageID);
  if (failed) return { kind: "refused", message: reasonText(failed.state?.waiting, "no image") };
  const arePulled = pod.spec.containers.every(({ name }) => isPulled(statuses.find((one) => one.name === name)));
  if (arePulled) return { kind: "pulled" };
  const phase = pod.status?.phase ?? "";
  if (phase === "Failed" || phase === "Succeeded")
    return { kind: "unclear", message: reasonText(pod.status, `it ended ${phase}`) };
  const age = secondsBetween(pod.metadata?.creationTimestamp ?? now, now) ?? 0;
  if (age <= DEADLINE_SECONDS + GRACE_SECONDS) return { kind: "underWay" };
  return { kind: "unclear", message: `its kubelet did not answer within ${DEADLINE_SECONDS} seconds` };
}

/** True if the kubelet has acted on the container. It does so only after it has the image. */
function isPulled(status: ContainerStatus | undefined): boolean {
  const { running, terminated, waiting } = status?.state ?? {};
  if (running) return true;
  if (terminated) return Boolean(status?.imageID);
  const kind = kindOf(waiting?.reason);
  return kind === "config" || kind === "crash";
}

function reasonText(said: { readonly reason?: string; readonly message?: string } | undefined, absent: string) {
  return [said?.reason, said?.message].filter(Boolean).join(": ") || absent;
}

function kindOf(reason: string | undefined) {
  return reason === undefined ? undefined : CONTAINER_REASONS[reason as ContainerReason]?.kind;
}

// Reads and writes the ledger's record, line by line.

export function formatRecord({ digest, failures, refusal }: PullRecord): string {
  const lines = failures.map(
    ({ node, times, until, kind, message }) => `${node} ${times} ${until} ${kind} ${message}\n`,
  );
  return [`${digest}\n`, ...(refusal ? [`- ${refusal.until} ${refusal.message}\n`] : []), ...lines].join("");
}

/** Reads the record. An unreadable line costs one more try. */
function parseRecord(text: string | undefined): PullRecord | undefined {
  const [digest = "", ...lines] = (text ?? "").split("\n");
  if (digest === "") return undefined;
  const failures = lines.flatMap((line): readonly Failure[] => {
    const match = /^([^ ]+) (\d{1,6}) ([^ ]+) (refused|unclear) (.*)$/.exec(line);
    if (!match) return [];
    const [, node = "", times = "", until = "", kind = "", message = ""] = match;
    return [{ node, times: Number(times), until, kind: kind as Failure["kind"], message }];
  });
  const [, until, message] = lines.map((line) => /^- ([^ ]+) (.*)$/.exec(line)).find(Boolean) ?? [];
  return { digest, failures, refusal: until && message ? { until, message } : undefined };
}
