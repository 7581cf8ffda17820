/** Names of the SidecarSets there are, for decisions to which a few seconds do not matter. */
import { clusterView, type ViewOptions } from "../view/cluster-view.ts";

/** A new SidecarSet has a hint of its own, so its name may be missing here for this time. */
const AGE_MS = 10_000;

export function recentNames(options: ViewOptions): () => Promise<ReadonlySet<string>> {
  const view = clusterView({ ...options, freshnessMs: AGE_MS });
  return async () => {
    const { value } = await view.listSidecarSets();
    return new Set(value.sidecarSets.map(({ metadata }) => metadata?.name ?? ""));
  };
}
