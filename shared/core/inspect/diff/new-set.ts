/** Decides what a SidecarSet that is not stored yet means for the pods that run: none gets its sidecars before it is recreated. */
import type { Namespace, Pod } from "../../../api/kubernetes.ts";
import { CONTROL_PLANE_LABEL, MIRROR_ANNOTATION } from "../../../api/names.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { EXEMPT_NAMESPACES } from "../../injection/match/exempt-pods.ts";
import { declinesSidecars } from "../../pod/declines-sidecars.ts";
import { isActive } from "../../pod/is-matched.ts";
import { type Renewal, renewalsOf } from "../../pod/workload.ts";
import type { RolloutSettings } from "../../rollout/rollout-settings.ts";

export interface NewSetEffect {
  readonly isNew: true;
  /** that it selects, by namespace and name */
  readonly pods: readonly { readonly namespace: string; readonly name: string }[];
  /** how those get its sidecars, by workload */
  readonly renewals: readonly Renewal[];
  /** pods that it selects and that API servers ask no webhook about, so that they never get them: by namespace */
  readonly excluded: readonly { readonly namespace: string; readonly pods: number }[];
}

/** Pure. `pods`: those that it selects, in its namespaces. */
export function newSetEffect(
  pods: readonly Pod[],
  { namespaces, settings }: { readonly namespaces: readonly Namespace[]; readonly settings: RolloutSettings },
): NewSetEffect {
  const controlled = namespaces.filter(({ metadata }) => metadata?.labels?.[CONTROL_PLANE_LABEL] !== undefined);
  const left = new Set([...EXEMPT_NAMESPACES, ...controlled.map(({ metadata }) => metadata?.name ?? "")]);
  const isOut = (pod: Pod) =>
    pod.metadata?.annotations?.[MIRROR_ANNOTATION] !== undefined || (settings.PodOptOut && declinesSidecars(pod));
  const active = pods.filter((pod) => isActive(pod) && !isOut(pod));
  const isLeft = ({ metadata }: Pod) => left.has(metadata?.namespace ?? "");
  const meant = active.filter((pod) => !isLeft(pod));
  const excluded = Map.groupBy(active.filter(isLeft), ({ metadata }) => metadata?.namespace ?? "");
  return {
    isNew: true,
    pods: meant
      .map(({ metadata: { namespace = "", name = "" } = {} }) => ({ namespace, name }))
      .toSorted((a, b) => compareUtf8(a.namespace, b.namespace) || compareUtf8(a.name, b.name)),
    renewals: renewalsOf(meant),
    excluded: [...excluded]
      .map(([namespace, those]) => ({ namespace, pods: those.length }))
      .toSorted((a, b) => compareUtf8(a.namespace, b.namespace)),
  };
}
