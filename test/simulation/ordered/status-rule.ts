/**
 * Judges a status that a pass writes. It must equal a recount of the objects that the pass had read, and name an
 * allowed current revision.
 */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet, StatefulSetStatus } from "../../../shared/api/stateful-set.ts";
import type { SendingRule } from "./looks.ts";
import { told } from "./made.ts";
import { conditionIn, ordinalOf, SET } from "./objects.ts";
import { podsOf, printOf, revisionIn, revisionsOf, templateIn } from "./own.ts";

const EXACT = [
  "replicas",
  "readyReplicas",
  "availableReplicas",
  "updatedReadyReplicas",
  "updatedAvailableReplicas",
] as const;

type Counts = Required<Pick<StatefulSetStatus, (typeof EXACT)[number] | "updatedReplicas" | "currentReplicas">>;

/** Counts again. `slackMs`: a pod also counts as available if this much of its ready time is missing. */
export function recount(
  { spec }: Pick<StatefulSet, "spec">,
  pods: readonly Pod[],
  at: { readonly current: string; readonly update: string; readonly nowMs: number; readonly slackMs: number },
): Counts {
  const seconds = spec.updateStrategy?.rollingUpdate?.minReadySeconds ?? 0;
  const created = pods.filter(({ status }) => status?.phase !== undefined && status.phase !== "");
  const ready = created.filter(
    (pod) => pod.status?.phase === "Running" && conditionIn(pod, "Ready")?.status === "True",
  );
  const isLong = (pod: Pod) =>
    seconds === 0 ||
    at.nowMs + at.slackMs - Date.parse(conditionIn(pod, "Ready")?.lastTransitionTime ?? "") >= 1000 * seconds;
  const isNeutral = ({ metadata }: Pod) =>
    ["", "Normal"].includes(metadata?.labels?.["lifecycle.apps.kruise.io/state"] ?? "");
  const available = ready.filter((pod) => isLong(pod) && isNeutral(pod));
  const staying = created.filter(({ metadata }) => !metadata?.deletionTimestamp);
  const countAt = (list: readonly Pod[], revision: string) => list.filter((pod) => revisionIn(pod) === revision).length;
  return {
    replicas: created.length,
    readyReplicas: ready.length,
    availableReplicas: available.length,
    updatedReadyReplicas: countAt(ready, at.update),
    updatedAvailableReplicas: countAt(available, at.update),
    updatedReplicas: countAt(staying, at.update),
    currentReplicas: countAt(staying, at.current),
  };
}

export const writtenStatus: SendingRule = ({ body, look: { set, pods } }, facts) => {
  const { status } = body as { readonly status: StatefulSetStatus };
  const { currentRevision: current = "", updateRevision: update = "" } = status;
  const own = podsOf(set, pods).filter((pod) => ordinalOf(pod) >= 0);
  const at = { current, update, nowMs: facts.nowMs() };
  const [least, most] = [recount(set, own, { ...at, slackMs: -2_000 }), recount(set, own, { ...at, slackMs: 2_000 })];
  const wrong = EXACT.filter((key) => (status[key] ?? 0) < least[key] || (status[key] ?? 0) > most[key]);
  const revisions = revisionsOf(set, facts.revisions());
  const newest = revisions.find(({ metadata }) => metadata?.name === update);
  const { updatedReplicas } = status;
  return [
    ...wrong.map((key) => `says ${key} ${status[key]}, ${most[key]} were seen`),
    ...currentProblems(set, status, { most, revisions: revisions.map(({ metadata }) => metadata?.name ?? "") }),
    ...told([
      [updatedReplicas > most.updatedReplicas, `says updatedReplicas ${updatedReplicas} of ${most.updatedReplicas}`],
      [status.labelSelector !== `app=${SET}`, `says labelSelector ${status.labelSelector}`],
      [!newest, `says updateRevision ${update}, which is not there`],
      [
        newest !== undefined && printOf(templateIn(newest)) !== printOf(set.spec.template ?? {}),
        "says that an old template is the update revision",
      ],
      [(status.observedGeneration ?? 0) > (set.metadata?.generation ?? 0), "has observed what nobody told it"],
    ]),
  ];
};

/** The current revision stays until every pod is updated and ready. */
function currentProblems(
  set: StatefulSet,
  status: StatefulSetStatus,
  { most, revisions }: { readonly most: Counts; readonly revisions: readonly string[] },
): readonly string[] {
  const { currentRevision = "", currentReplicas, updateRevision, updatedReplicas, replicas, readyReplicas } = status;
  const isRolling = set.spec.updateStrategy?.type === "RollingUpdate";
  if (isRolling && updatedReplicas === replicas && readyReplicas === replicas)
    return told([
      [currentRevision !== updateRevision, "is complete, and does not say so"],
      [currentReplicas !== updatedReplicas, `is complete, and says currentReplicas ${currentReplicas}`],
    ]);
  const before = set.status?.currentRevision;
  const wanted = before !== undefined && revisions.includes(before) ? before : updateRevision;
  return told([
    [currentRevision !== wanted, `is not complete, and says currentRevision ${currentRevision} after ${wanted}`],
    [currentReplicas > most.currentReplicas, `says currentReplicas ${currentReplicas} of ${most.currentReplicas}`],
  ]);
}
