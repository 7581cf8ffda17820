/** The book's words about pods that are drained first. */
import { counted } from "../../../../go/counted.ts";
import type { HoldWords } from "../../hold-words.ts";
import type { RuleFacts } from "../../summary.ts";

const NO_DRAIN: RuleFacts["drain"] = { pods: 0, seconds: 0 };

export const DRAIN_WORDS: HoldWords = {
  applies: ({ rules: { drain } }) => drain !== undefined,
  cause: "DrainFirst",
  severity: "wait",
  reason: "NothingToUpgrade",
  goesOn: () => true,
  verdict: "Updating",
  blocked: undefined,
  clause: ({ rules: { drain = NO_DRAIN } }) =>
    drain.seconds === 0
      ? `${counted(drain.pods, "pod is", "pods are")} drained for another release, and put back first`
      : `${counted(drain.pods, "pod is", "pods are")} drained first, the next update is in ${counted(drain.seconds, "second")}`,
  title: ({ rules: { drain = NO_DRAIN } }) =>
    `${counted(drain.pods, "pod is", "pods are")} drained before ${drain.pods === 1 ? "its" : "their"} sidecars restart`,
};
