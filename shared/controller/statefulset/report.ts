/** The report of a pass over Advanced StatefulSets: what it did, and why not more, as data that prints as JSON. */
import type { StatefulSetStatus } from "../../api/stateful-set.ts";
import { explainSet, type SetStanding } from "../../core/statefulset/explain/explain-set.ts";
import type { SetRolloutPlan } from "../../core/statefulset/plan/plan-set-rollout.ts";
import type { Request } from "../../core/statefulset/step.ts";
import type { PassReport, Stop } from "../rollout/report.ts";

/** Counts of the actions on one set. */
export interface SetTally {
  rounds: number;
  created: number;
  deleted: number;
  /** writes to pods that were there */
  updated: number;
  claims: number;
  fenced: number;
  /** number of rounds that started again because somebody else wrote */
  restarts: number;
}

export function newSetTally(): SetTally {
  return { rounds: 0, created: 0, deleted: 0, updated: 0, claims: 0, fenced: 0, restarts: 0 };
}

export interface SetReport {
  readonly namespace: string;
  readonly name: string;
  readonly stop: Stop;
  readonly why: string;
  readonly generation?: number;
  readonly status?: StatefulSetStatus;
  readonly standing?: SetStanding;
  readonly tally: SetTally;
  /** dry run: the current actions */
  readonly planned?: readonly string[];
  /** dry run of one set: the forecast, step by step */
  readonly plan?: SetRolloutPlan;
}

type PassFields = "startedAt" | "durationMs" | "isDryRun" | "heldBy" | "problems" | "calls";

export interface SetPassReport extends Pick<PassReport, PassFields> {
  readonly sets: readonly SetReport[];
  /** NAMESPACE/NAME of sets that the time did not suffice for */
  readonly notReached: readonly string[];
}

/** One sentence about the state in which a pass left a set. */
export function explainStop(stop: Stop, standing: SetStanding | undefined, failure?: string): string {
  const where = [...(failure ? [failure] : []), ...(standing ? [explainSet(standing)] : [])].join("; ");
  switch (stop) {
    case "settled":
    case "oneRound":
      return where || "nothing to do";
    case "gone":
      return "there is no such StatefulSet of apps.kruise.io";
    case "deadline":
      return `the time is used up, the next pass goes on: ${where}`;
    case "stalled":
      return `nothing moved for a while, the next pass looks again: ${where}`;
    case "unchanged":
      return `the pods that are not ready have not changed for five minutes, the next pass looks again: ${where}`;
    case "aborted":
      return `stopped from outside: ${where}`;
    case "refused":
      return `every write is refused: ${where}`;
    case "contention":
      return `others kept writing the same objects, the next pass goes on${where ? `: ${where}` : ""}`;
    case "failed":
      return `failed: ${where}`;
    default:
      return stop satisfies never;
  }
}

/** One line for people; undefined for a request that concerns only the API server. */
export function describeRequest(request: Request): string | undefined {
  switch (request.kind) {
    case "CreateRevision":
      return `create ControllerRevision ${nameOf(request.revision)}, revision ${request.revision.revision}`;
    case "RenumberRevision":
      return `make ControllerRevision ${nameOf(request.revision)} the newest, revision ${request.number}`;
    case "AdoptRevision":
      return `adopt ControllerRevision ${nameOf(request.revision)}`;
    case "DeleteRevision":
      return `delete ControllerRevision ${nameOf(request.revision)}`;
    case "AdoptPod":
      return `adopt pod ${nameOf(request.pod)}`;
    case "ReleasePod":
      return `let go of pod ${nameOf(request.pod)}`;
    case "CreatePod":
      return `create pod ${nameOf(request.pod)}`;
    case "DeletePod":
      return `delete pod ${nameOf(request.pod)}`;
    case "UpdatePod":
    case "UpdatePodStatus":
      return describeUpdate(request);
    case "CreateClaim":
      return `create claim ${nameOf(request.claim)}`;
    case "UpdateClaim":
      return `change claim ${nameOf(request.after)}`;
    case "UpdateStatus":
      return `write the status of the set: ${JSON.stringify(request.status)}`;
    default:
      return undefined;
  }
}

function describeUpdate({ kind, before, after }: Extract<Request, { kind: "UpdatePod" | "UpdatePodStatus" }>): string {
  if (kind === "UpdatePodStatus") return `write conditions of pod ${nameOf(before)}`;
  const images = after.spec.containers.flatMap(({ name, image }) => {
    const old = before.spec.containers.find((container) => container.name === name)?.image;
    return old === image ? [] : [`${name} ${old} → ${image}`];
  });
  return `update pod ${nameOf(before)}: ${images.join(", ") || "metadata only"}`;
}

function nameOf({ metadata }: { readonly metadata?: { readonly name?: string } }): string {
  return metadata?.name ?? "";
}
