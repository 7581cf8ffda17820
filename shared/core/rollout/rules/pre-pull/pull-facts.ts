/** What is seen of the pods that pull images, what the ledger keeps of them, and what is said. */
import type { ContainerStatus, Pod } from "../../../../api/kubernetes.ts";
import { PRE_PULL_DIGEST_LABEL } from "../../../../api/names.ts";
import { addSeconds, secondsBetween } from "../../../../go/seconds-between.ts";
import { CONTAINER_REASONS, type ContainerReason, waitingReasonOf } from "../../../pod/container-failure.ts";
import { refusalText } from "../../../refused-pods.ts";

/** A pull takes no longer; then its pod is given up. */
export const DEADLINE_SECONDS = 600;
/** A kubelet that answers ends the pod itself. */
const GRACE_SECONDS = 30;
/** So many nodes that failed keep other nodes from being tried: then it is the image. */
export const MOST_FAILURES = 50;
/** From a failure to the next try, twice as long each time. */
const FIRST_WAIT_SECONDS = 30;
const LONGEST_WAIT_SECONDS = 600;
const REFUSAL_WAIT_SECONDS = 60;
/** A pass looks again so soon while a node pulls. */
export const LOOK_SECONDS = 2;

/** The pull pods of a SidecarSet, and the nodes that they pull on. */
export interface PullFacts {
  /** the kruise namespace */
  readonly namespace: string;
  /** those of this SidecarSet */
  readonly pods: readonly Pod[];
  /** what the ledger keeps of them; absent: nothing */
  readonly record?: string | undefined;
  /** why the API server did not create one, and when it said so, RFC3339; absent: this pass was not refused */
  readonly refusal?: { readonly message: string; readonly at: string } | undefined;
}

/** `now`: RFC3339, by the API server's clock */
export type PullFactsNow = PullFacts & { readonly now: string };

/** A node whose last pull failed. */
interface Failure {
  readonly node: string;
  readonly times: number;
  /** RFC3339: it is not tried again before */
  readonly until: string;
  /** refused: the image cannot be had there; unclear: nothing was learnt about the image */
  readonly kind: "refused" | "unclear";
  /** one clause */
  readonly message: string;
}

interface PullRecord {
  readonly digest: string;
  readonly failures: readonly Failure[];
  /** why no pod can be created, and when that is tried again */
  readonly refusal?: Pick<Failure, "until" | "message"> | undefined;
}

/** For the report, conditions and the plan. */
export interface PullsSummary {
  /** nodes whose pods wait, and that do not have the images yet */
  readonly nodes: number;
  /** nodes that pull now, and nodes that this decision adds */
  readonly underWay: number;
  readonly atOnce: number;
  /** pods that would get their turn now */
  readonly waiting: number;
  /** a few of the nodes that failed */
  readonly failed: readonly Pick<Failure, "node" | "kind" | "message">[];
  readonly failedCount: number;
  readonly refusal?: string;
  /** no node is left that could get them without another try of what failed */
  readonly isStuck: boolean;
  /** until something is to be looked at again */
  readonly seconds: number;
}

// What the pods that pull have come to.

type FailedPull = Pick<Failure, "kind" | "message">;
type Pull = { readonly kind: "pulled" } | { readonly kind: "underWay" } | FailedPull;

export interface SeenPulls {
  readonly digest: string;
  /** node → its pod, of this release */
  readonly current: ReadonlyMap<string, { readonly pod: Pod; readonly pull: Pull }>;
  /** of other releases, or the second one of a node */
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

/** A pod from before the next try is the one whose failure is known. */
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

/** Returns how a pull stands, as the kubelet says in the pod's status. A pod that says nothing for too long is given up. */
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

/** A kubelet does nothing with a container before it has its image. */
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

// What the ledger keeps, in lines.

export function formatRecord({ digest, failures, refusal }: PullRecord): string {
  const lines = failures.map(
    ({ node, times, until, kind, message }) => `${node} ${times} ${until} ${kind} ${message}\n`,
  );
  return [`${digest}\n`, ...(refusal ? [`- ${refusal.until} ${refusal.message}\n`] : []), ...lines].join("");
}

/** A line that cannot be read costs one more try. */
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
