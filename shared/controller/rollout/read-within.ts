/** Reads what of a rollout may be read by those who have rights in one namespace alone: its pods there. */
import type { ControllerRevision, Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { subjectOf } from "../../core/ledger.ts";
import { reservedOf } from "../../core/rollout/select/reserved.ts";
import { ifAllowed } from "../../kube/error.ts";
import { NO_KUBELETS } from "./kubelets.ts";
import { decideContext } from "./observe.ts";
import { listRevisions, observePods } from "./observe-pods.ts";
import type { ReadContext, ReadObservation } from "./read-observation.ts";
import { Reading } from "./reading.ts";

export interface ReadWithin extends Pick<ReadObservation, "observation" | "context"> {
  /** what could not be read, to complete "could not be read: …" */
  readonly unread: readonly string[];
}

/** What it gives is about these pods alone: no counts, no turns and no plan can be had of it. @throws KubeError */
export async function readWithin(context: ReadContext, sidecarSet: SidecarSet, namespace: string): Promise<ReadWithin> {
  const { cluster, kruiseNamespace } = context;
  const revisions = await ifAllowed(listRevisions(cluster, kruiseNamespace, sidecarSet.metadata?.name ?? ""));
  // The namespace's labels may be out of reach: what is injected there was selected.
  const { namespaceSelector: _, ...spec } = sidecarSet.spec;
  const here = {
    ...cluster,
    list: (resource, options) => cluster.list(resource, { ...options, namespace }),
  } as typeof cluster;
  const reading = new Reading(sidecarSet, {
    resources: context.settings.InPlaceResize,
    workloads: true,
    budgetLabels: undefined,
  });
  const { view } = await observePods(here, { ...sidecarSet, spec }, reading);
  return {
    observation: {
      sidecarSet,
      pods: [...view.pods] satisfies readonly Pod[],
      revisions: revisions ?? ([] satisfies readonly ControllerRevision[]),
      taken: [],
      checks: [],
      kubelets: NO_KUBELETS,
      isResizeServed: false,
      namespaceLabels: new Map(),
      disruptionBudgets: [],
      reserved: reservedOf([], subjectOf(sidecarSet), {}),
    },
    context: decideContext(context, sidecarSet),
    unread: [
      "pods of other namespaces",
      "the ledger of reservations",
      ...(context.settings.RespectDisruptionBudgets ? ["disruption budgets"] : []),
      ...(revisions === undefined ? [`revisions in ${kruiseNamespace}`] : []),
    ],
  };
}
