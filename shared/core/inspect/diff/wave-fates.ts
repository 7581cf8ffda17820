/** Counts what becomes of pods in each wave, which a rollout goes through one after the other. */

import type { Labels } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { waveOf } from "../../pod/steering/waves.ts";

export interface WaveFates<Kind extends string> {
  /** "": namespaces that no wave selects, which come last */
  readonly name: string;
  /** pods by their fate; absent: none */
  readonly fates: Readonly<Partial<Record<Kind, number>>>;
}

/** None where the changed SidecarSet has no waves, or this release skips them. */
export function waveFates<Kind extends string>(
  after: SidecarSet,
  namespaceLabels: ReadonlyMap<string, Labels>,
  pods: readonly { readonly kind: Kind; readonly namespace: string }[],
): { readonly waves?: readonly WaveFates<Kind>[] } {
  const { waves, areWavesSkipped } = steeringOf(after);
  if (waves === undefined || areWavesSkipped) return {};
  const counts = [...waves, undefined].map(() => new Map<Kind, number>());
  for (const { kind, namespace } of pods) {
    const count = counts[waveOf(waves, namespaceLabels.get(namespace))];
    count?.set(kind, (count.get(kind) ?? 0) + 1);
  }
  const rows = counts.map((count, index) => ({
    name: waves[index]?.name ?? "",
    fates: Object.fromEntries(count) as Partial<Record<Kind, number>>,
  }));
  return { waves: rows.filter(({ name, fates }) => name !== "" || Object.keys(fates).length > 0) };
}
