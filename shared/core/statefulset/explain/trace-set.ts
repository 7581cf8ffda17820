/** The explanation of a set as a whole, and everything that blocks it. */
import { note, ok, stop, wait } from "../../inspect/explain/step.ts";
import { commandText } from "../../pod/command-text.ts";
import { explainSet, type SetStanding, setStanding } from "./explain-set.ts";
import {
  referenceTo,
  type SetExplanationFacts,
  type SetStep,
  traceLeftAlone,
  tracePassFails,
  traceSetTerminating,
  traceState,
  traceWork,
} from "./trace-pod.ts";

const NAMED = 3;

/** Pure. */
export function explainWholeSet(facts: SetExplanationFacts): readonly SetStep[] {
  const { seen, plan } = facts;
  const left = traceLeftAlone(seen);
  if (left) return [left];
  const standing = setStanding(seen, plan.outcome.updateRevision);
  const { desired, updated, waitingFor, outOfRange } = standing;
  const isDone = waitingFor.length === 0 && outOfRange === 0 && updated === desired;
  const count = explainSet({ ...standing, hold: "none", waitingFor: [], outOfRange: 0 });
  if (isDone && !seen.set.metadata?.deletionTimestamp) return [ok("AllAsWanted", count)];
  return [
    note("UnderWay", count),
    ...traceSetTerminating(seen),
    ...traceHold(facts, standing),
    ...traceWaiting(facts, standing),
    ...(outOfRange > 0 ? [wait("OutOfRange", `${outOfRange} pods beyond the range are to be removed`)] : []),
    ...tracePass(facts),
    ...traceWork(facts),
  ];
}

function traceHold({ seen }: SetExplanationFacts, { hold, desired, updated }: SetStanding): readonly SetStep[] {
  switch (hold) {
    case "paused":
      return [
        stop(
          "StrategyPaused",
          "the update is paused",
          commandText`sidecarset resume ${referenceTo(seen)} -n ${seen.set.metadata?.namespace}`,
        ),
      ];
    case "OnDelete":
      return [
        stop(
          "StrategyOnDelete",
          "pods are updated when they are deleted",
          commandText`kubectl -n ${seen.set.metadata?.namespace} delete pod NAME`,
        ),
      ];
    case "partition": {
      const { partition = 0 } = seen.set.spec.updateStrategy?.rollingUpdate ?? {};
      const kept = `the partition ${partition} keeps pods as they are, ${desired - updated} are not updated`;
      const hint = "lower spec.updateStrategy.rollingUpdate.partition when the updated pods are fine";
      return [desired - updated > partition ? note("KeptByPartition", kept) : stop("KeptByPartition", kept, hint)];
    }
    default:
      return [];
  }
}

/** Lowest ordinal first, because the order waits for that pod. */
function traceWaiting({ seen, plan }: SetExplanationFacts, { waitingFor }: SetStanding): readonly SetStep[] {
  const steps = waitingFor.slice(0, NAMED).map(({ name, why }): SetStep => {
    const pod = seen.pods.find(({ metadata }) => metadata?.name === name);
    const state = pod && traceState(seen, pod, plan.outcome.updateRevision);
    return state ?? wait("PodMissing", `${name} ${why}`);
  });
  const more = waitingFor.length - NAMED;
  return more > 0 ? [...steps, note("PodNotReady", `${more} more are not available`)] : steps;
}

function tracePass({ plan }: SetExplanationFacts): readonly SetStep[] {
  const { failure } = plan.outcome;
  if (failure) return [tracePassFails(failure.message)];
  const names = (kind: "CreatePod" | "DeletePod") =>
    plan.writes.flatMap((one) => (one.kind === kind ? [one.pod.metadata?.name ?? ""] : []));
  const updated = plan.writes.flatMap((one) =>
    one.kind === "UpdatePod" && one.before.spec !== one.after.spec ? [one.before.metadata?.name ?? ""] : [],
  );
  const parts = [
    ["creates", names("CreatePod")] as const,
    ["deletes", names("DeletePod")] as const,
    ["updates", updated] as const,
  ];
  const text = parts.flatMap(([verb, pods]) => (pods.length > 0 ? [`${verb} ${listed(pods)}`] : []));
  return text.length > 0 ? [ok("NextInLine", `the next pass ${text.join(", ")}`)] : [];
}

function listed(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
  return `${names.slice(0, NAMED).join(", ")}${more}`;
}
