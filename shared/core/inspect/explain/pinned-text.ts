/** Decides how it is said which new pods get the revision that injectionStrategy names. */
import type { SidecarSet } from "../../../api/sidecarset.ts";

/** Under the policy Partial those beyond the partition get it, unless the rollout is paused: then all do. */
export function pinnedText({ spec }: SidecarSet, name: string): string {
  const { injectionStrategy, updateStrategy = {} } = spec;
  const { partition, selector, paused } = updateStrategy;
  if (injectionStrategy?.revision?.policy !== "Partial" || paused)
    return `new pods get the revision ${name}, not the newest (injectionStrategy.revision)`;
  const share = typeof partition === "string" ? partition : "0%";
  const others = selector ? `, and all that updateStrategy.selector leaves out,` : "";
  return `${share} of new pods${others} get the revision ${name}, the others the newest (injectionStrategy.revision, policy Partial: the share is the partition's)`;
}
