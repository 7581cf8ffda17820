/** Figures of rollouts on a real control plane. */
import { leastOfBareLoop, mostOfIdeal, mostRefusals, rolled } from "./rollout-figures.ts";
import { at, type WantedFigure } from "./wanted-figure.ts";

const OURS = ["first", "gated", "later"];

export const REAL_ROLLOUT_FIGURES: readonly WantedFigure[] = [
  {
    what: "rollout on a real API server, PATCHes of pods for each updated pod",
    by: "bench",
    from: "realRollout",
    pick: rolled(OURS, "podPatchesPerPod"),
    atMost: 1.005,
  },
  {
    what: "rollout on a real API server, PATCHes of pods/status for each pod, first upgrade",
    by: "bench",
    from: "realRollout",
    pick: rolled(["first"], "statusPatchesPerPod"),
    atMost: 1.005,
  },
  {
    what: "rollout on a real API server, PATCHes of pods/status for each pod updated before, or with SkipUpgradableCondition",
    by: "bench",
    from: "realRollout",
    pick: rolled(["later", "gated"], "statusPatchesPerPod"),
    atMost: 0,
  },
  {
    what: "rollout on a real API server, bytes on the wire for each updated pod",
    by: "bench",
    from: "realRollout",
    pick: rolled(["later"], "bytesPerPod"),
    atMost: 4_096,
    isMain: true,
  },
  {
    what: "rollout on a real API server, pods a second as a share of a bare loop of patches",
    by: "bench",
    from: "realRollout",
    pick: leastOfBareLoop,
    atLeast: 0.85,
    isMain: true,
  },
  {
    what: "rollout on a real API server, exponent with which computing grows",
    by: "bench",
    from: "realRollout",
    pick: at("cpuExponent"),
    atMost: 1.05,
  },
  {
    what: "rollout with few seats at the API server, as a multiple of the quickest bare loop",
    by: "bench",
    from: "priorityLevel",
    pick: mostOfIdeal,
    atMost: 1.1,
  },
  {
    what: "rollout under a tight priority level, refusals for each pod",
    by: "bench",
    from: "priorityLevel",
    pick: mostRefusals,
    atMost: 0.1,
  },
];
