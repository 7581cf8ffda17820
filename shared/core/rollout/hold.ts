/** All reasons why a pass does not do more. hold-effects.ts has the effects, book.ts the words. */
import type { SidecarSet } from "../../api/sidecarset.ts";

export const HOLDS = [
  "paused",
  "NotUpdate",
  /** too many updated pods fail, and a limit for failures is set */
  "halted",
  /** an annotation cannot be read */
  "unreadable",
  /** the API server, or a policy, refuses every write to the pods that are next */
  "refused",
  /** the API server refuses what a pass reads, or records before it writes to pods */
  "passRefused",
  /** the API server gave a pass no usable answer */
  "unreachable",
  /** others wrote the same objects again and again, so a pass gave up */
  "contention",
  /** a whole pass was too short to read the pods */
  "unread",
  /** a pass failed for another reason */
  "passFailed",
  /** a gate has not allowed the next batch */
  "gate",
  /** a gate cannot be asked, or gives no answer that can be read */
  "gateDown",
  /** checks of metrics have not passed, or are to be evaluated again some time after the last batch */
  "metrics",
  /** every matched pod is updated */
  "finished",
  /** hot upgrades are flipped first, new ones begin in the next pass */
  "flip",
  /** pods whose new image runs get their smaller resources first, other pods are upgraded in the next pass */
  "shrink",
  /** pods are out of endpoints for a time before their sidecars restart */
  "drain",
  /** every pod that waits is kept by the partition */
  "partition",
  /** pods wait for others to become ready */
  "budget",
  /** pods wait for the images, which are pulled to their nodes first */
  "prePull",
  /** pods of StatefulSets wait for their turn, where ordinals are followed */
  "order",
  /** pods wait for others of their owners, where those have budgets */
  "ownerBudget",
  /** pods wait for namespaces of earlier waves */
  "wave",
  /** pods wait for disruption budgets that select them */
  "disruptionBudget",
  /** evictions were refused a moment ago, mostly by PodDisruptionBudgets, and nothing else can be done */
  "evictionRefused",
  /** workloads are being restarted, wait for a restart, or cannot be restarted */
  "restart",
  /** none of the next pods can be handled, so passes skip them */
  "leftAlone",
  /** the old pods still carry out an older release */
  "inFlight",
  /** `updateStrategy.selector` leaves old pods out */
  "notSelected",
  /** no pod waits: the old ones cannot be upgraded in place */
  "nothingWaits",
  /** everything that may be upgraded is being upgraded by this decision */
  "none",
] as const;

export type Hold = (typeof HOLDS)[number];

/** The holds that the strategy itself asks for. The first one is named. */
export function askedHolds({ spec }: Pick<SidecarSet, "spec">): readonly ("NotUpdate" | "paused")[] {
  const { type, paused } = spec.updateStrategy ?? {};
  return [...(type === "NotUpdate" ? (["NotUpdate"] as const) : []), ...(paused ? (["paused"] as const) : [])];
}
