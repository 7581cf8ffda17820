/** Decides what is wrong with the pods of a SidecarSet: which lack sidecars, and which a rollout leaves alone. */

import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { isEmptySelector } from "../../../go/label-selector.ts";
import { isActive, isInjected, isMatched, podName } from "../../pod/is-matched.ts";
import { sidecarContainerNames } from "../../pod/sidecar-containers.ts";
import { noPodsText } from "../explain/explain.ts";
import { restartAdvice } from "../restart-advice.ts";
import { type Finding, finding, someOf, where } from "./finding.ts";

/** One SidecarSet, the pods that it is meant for, and where its rollout stands. */
export interface Rollout {
  readonly sidecarSet: SidecarSet;
  readonly pods: readonly Pod[];
  /** those that should have its sidecars and have not */
  readonly missed: readonly Pod[];
  /** ControllerRevisions of it */
  readonly revisions: number;
  /** of those, which the next pass deletes */
  readonly deletable: number;
  readonly notUpgradable: number;
  /** how those are recreated; "" where there are none */
  readonly renewal: string;
  /** where those differ */
  readonly immutableFields: readonly string[];
  /** pods that are left alone, each with the reason */
  readonly refused: readonly string[];
}

const DEFAULT_LIMIT = 10;

export function checkRollout(rollout: Rollout): readonly Finding[] {
  return [...checkInjection(rollout), ...checkUpdates(rollout), ...checkHistory(rollout)];
}

function aboutOf({ sidecarSet }: Rollout): string {
  return `SidecarSet ${sidecarSet.metadata?.name}`;
}

function checkInjection(rollout: Rollout): readonly Finding[] {
  const { sidecarSet, pods, missed } = rollout;
  const { selector } = sidecarSet.spec;
  const about = aboutOf(rollout);
  const older = pods.filter(
    (pod) => isActive(pod) && isInjected(pod, sidecarSet.metadata?.name ?? "") && !isMatched(pod, sidecarSet),
  );
  const names = sidecarContainerNames(sidecarSet);
  const taken = pods.filter(
    (pod) =>
      isActive(pod) &&
      !isInjected(pod, sidecarSet.metadata?.name ?? "") &&
      pod.spec.containers.some(({ name }) => names.has(name)),
  );
  return [
    ...where(
      pods.length === 0 && !!selector && !isEmptySelector(selector),
      finding("MatchesNoPods", about, noPodsText(sidecarSet), "see its selector, and that of its namespaces"),
    ),
    ...where(
      missed.length > 0,
      finding(
        "InjectionMissed",
        about,
        `${counted(missed.length, "pod was made after it, matches it, and lacks", "pods were made after it, match it, and lack")} its sidecars, as happens while the webhook is down: ${someOf(missed.map(podName))}`,
        restartAdvice(missed, sidecarSet, { promised: "any" }),
      ),
    ),
    ...where(
      older.length > 0,
      finding(
        "ContainersMissing",
        about,
        `${counted(older.length, "pod was injected before it had all of its containers, and is", "pods were injected before it had all of its containers, and are")} in none of its counts: ${someOf(older.map(podName))}`,
        `containers are added to new pods only: ${restartAdvice(older, sidecarSet)}`,
      ),
    ),
    ...where(
      taken.length > 0,
      finding(
        "ContainerNameTaken",
        about,
        `${counted(taken.length, "pod has", "pods have")} a container of its own with the name of one of its sidecars, which takes its place once the pod is recreated: ${someOf(taken.map(podName))}`,
        "give one of the two another name",
      ),
    ),
  ];
}

function checkUpdates(rollout: Rollout): readonly Finding[] {
  const { notUpgradable, immutableFields, refused } = rollout;
  const about = aboutOf(rollout);
  const fields = immutableFields.length > 0 ? ` (${someOf(immutableFields)})` : "";
  return [
    ...where(
      notUpgradable > 0,
      finding(
        "PodsNotUpgradable",
        about,
        `${counted(notUpgradable, "pod")} cannot be updated in place, since more than images changed${fields}`,
        rollout.renewal,
      ),
    ),
    ...where(
      refused.length > 0,
      finding(
        "PodsRefused",
        about,
        `${counted(refused.length, "pod is", "pods are")} left alone: ${someOf(refused)}`,
        "fix that, or recreate them",
      ),
    ),
  ];
}

function checkHistory(rollout: Rollout): readonly Finding[] {
  const { revisions, deletable, sidecarSet } = rollout;
  const limit = Math.max(1, sidecarSet.spec.revisionHistoryLimit ?? DEFAULT_LIMIT);
  const used = revisions - deletable - limit;
  const reason =
    used > 0
      ? `${used} more than the limit are in use by pods, or by injectionStrategy`
      : `${deletable} of them are to be deleted, which no pass has done`;
  return where(
    revisions > limit,
    finding(
      "RevisionsBeyondLimit",
      aboutOf(rollout),
      `it has ${counted(revisions, "revision")}, its revisionHistoryLimit is ${limit}: ${reason}`,
      "finish its rollout (partition, pods that are not upgradable), or raise the limit",
    ),
  );
}
