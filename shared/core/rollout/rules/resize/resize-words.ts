/** The book's words about pods whose cpu and memory shrink. */
import { counted } from "../../../../go/counted.ts";
import type { HoldWords } from "../../hold-words.ts";

export const SHRINK_WORDS: HoldWords = {
  cause: "ResizeUnderWay",
  severity: "wait",
  reason: "NothingToUpgrade",
  verdict: "Incomplete",
  blocked: undefined,
  clause: ({ selected }) => `${selected} are given their smaller cpu and memory, now that their new image runs`,
  sentence: ({ selected }) => `${counted(selected, "pod is", "pods are")} given smaller cpu and memory first`,
};
