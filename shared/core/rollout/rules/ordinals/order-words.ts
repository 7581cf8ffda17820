/** The book's words about pods that wait for their turn in a StatefulSet. */
import type { HoldWords } from "../../hold-words.ts";

export const ORDER_WORDS: HoldWords = {
  applies: ({ rules: { ordinals } }) => ordinals !== undefined,
  cause: "OrderOfSets",
  severity: "wait",
  reason: "NothingToUpgrade",
  verdict: "Blocked",
  blocked: {
    reason: "OrderedSet",
    text: ({ rules: { ordinals = "" }, selected, updated, updatedReady }) =>
      selected === 0 && updated === updatedReady ? ordinals : undefined,
  },
  clause: ({ selected, rules: { ordinals } }) =>
    `${selected} being upgraded, one at a time in the order of their sets: ${ordinals}`,
  sentence: ({ rules: { ordinals } }) => `pods of StatefulSets are updated one at a time, in their order: ${ordinals}`,
  title: () => "Pods of StatefulSets are updated one at a time, set after set, highest ordinal first",
};
