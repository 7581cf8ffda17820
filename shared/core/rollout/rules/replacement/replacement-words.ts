/** The book's words about evictions that are refused. */
import { counted } from "../../../../go/counted.ts";
import type { HoldWords } from "../../hold-words.ts";

export const EVICTION_REFUSED_WORDS: HoldWords = {
  cause: "EvictionRefused",
  severity: "wait",
  reason: "EvictionRefused",
  verdict: "Blocked",
  blocked: {
    reason: "EvictionRefused",
    // Evicted pods that are still returning do not block.
    text: ({ used, rules: { replacement } }) =>
      used > 0
        ? undefined
        : `${counted(replacement?.kept ?? 0, "pod waits", "pods wait")}: evictions beside them were refused, mostly by a PodDisruptionBudget`,
  },
  clause: ({ rules: { replacement } }) =>
    `${counted(replacement?.kept ?? 0, "pod waits", "pods wait")} for an eviction that was refused a moment ago, mostly by a PodDisruptionBudget`,
};
