/** The book's words about restarts of workloads. */
import type { HoldWords } from "../../hold-words.ts";
import { NO_RESTARTS, restartsText } from "../replacement/replaced.ts";

export const RESTART_WORDS: HoldWords = {
  applies: ({ rules: { restarts } }) => restarts !== undefined,
  cause: ({ rules: { restarts = NO_RESTARTS } }) =>
    restarts.underWay.length + restarts.waiting === 0 ? "RestartHeld" : "Restarting",
  severity: ({ rules: { restarts = NO_RESTARTS } }) =>
    restarts.underWay.length + restarts.waiting === 0 ? "trouble" : "wait",
  reason: "RestartHeld",
  verdict: "Blocked",
  blocked: {
    reason: "RestartHeld",
    text: ({ used, rules: { restarts } }) =>
      used === 0 && restarts?.underWay.length === 0 ? restartsText(restarts) : undefined,
  },
  clause: ({ rules: { restarts = NO_RESTARTS } }) => restartsText(restarts),
  next: (_, { rules: { restarts = NO_RESTARTS } }) =>
    restarts.underWay.length + restarts.waiting === 0 ? "restart them by hand, or evict pods instead" : undefined,
};
