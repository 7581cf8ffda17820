/** Decides which SidecarSets come nearest to a pod that none is meant for, and what each of them misses. */
import type { Namespace, Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { type Miss, missedRequirements } from "./missed-requirements.ts";
import type { Step } from "./step.ts";
import { traceNamespace, traceSelector } from "./trace-injection.ts";

export interface NearSet {
  readonly sidecarSet: string;
  /** rules that are against it, each with all that it misses */
  readonly steps: readonly Step[];
}

const NAMED = 3;

/** The nearest first: fewer requirements that it misses, then values that are more alike. `namespace`: undefined when it cannot be read. */
export function nearestSets(
  pod: Pod,
  namespace: Namespace | undefined,
  sidecarSets: readonly SidecarSet[],
): readonly NearSet[] {
  return sidecarSets
    .map((one) => ({ sidecarSet: one.metadata?.name ?? "", ...farness(pod, namespace, one), one }))
    .toSorted((a, b) => a.misses - b.misses || a.distance - b.distance || compareUtf8(a.sidecarSet, b.sidecarSet))
    .slice(0, NAMED)
    .map(({ sidecarSet, one }) => ({ sidecarSet, steps: stepsOf(pod, namespace, one) }));
}

/** A SidecarSet without a selector is meant for no pod at all. */
function farness({ metadata }: Pod, namespace: Namespace | undefined, { spec }: SidecarSet) {
  const all: readonly Miss[] = [
    ...(spec.selector ? missedRequirements(spec.selector, metadata?.labels) : []),
    ...(spec.namespaceSelector ? missedRequirements(spec.namespaceSelector, namespace?.metadata?.labels) : []),
  ];
  const misses = all.length === 0 ? Number.POSITIVE_INFINITY : all.length;
  return { misses, distance: all.reduce((sum, { distance }) => sum + distance, 0) };
}

function stepsOf(pod: Pod, namespace: Namespace | undefined, sidecarSet: SidecarSet): readonly Step[] {
  const steps = [traceSelector(pod, sidecarSet), traceNamespace(pod, sidecarSet, namespace)];
  return steps.flatMap((step) => (step?.verdict === "stop" ? [step] : []));
}
