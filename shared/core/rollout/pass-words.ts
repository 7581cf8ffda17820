/** The words of holds outside the decision: refusals, failures, gates and metrics. */
import type { HoldCause } from "./hold.ts";
import type { Blocks, HoldWords } from "./hold-words.ts";
import { isPassTrouble, type PassTroubleHold, reasonOfTrouble } from "./pass-trouble.ts";
import { saysNothing } from "./rules/checks/check-records.ts";
import { isPlainNo } from "./rules/gate/approval.ts";

const FIX_GATE = "fix the gate, name it in GATE_HOSTS of the passes, or take the annotation away";
const FIX_METRICS =
  "fix the query or the server, name the server in PROMETHEUS_SERVER of the passes, or take the annotation away";

const RIGHTS = "sidecarset check names rights that are missing";

interface Trouble {
  readonly cause: HoldCause;
  readonly title: string;
  readonly next: string;
  readonly seeAlso?: string;
}

/** Words about a refused or failed pass. The first such pass warns, and the second one blocks. */
function troubleWords(hold: PassTroubleHold, { cause, title, next, ...more }: Trouble): HoldWords {
  const reason = reasonOfTrouble(hold);
  return {
    ...more,
    cause,
    severity: ({ trouble }) => (trouble?.isLasting === false ? "wait" : "trouble"),
    reason: ({ trouble }) => (trouble?.isLasting === false ? "RollingOut" : reason),
    goesOn: ({ trouble }) => trouble?.isLasting === false,
    verdict: "Blocked",
    blocked: {
      reason,
      text: ({ trouble }) => (trouble?.isLasting === false ? undefined : (trouble?.text ?? title)),
      warning: ({ trouble }) => trouble?.text,
    } satisfies Blocks,
    clause: ({ trouble }) => trouble?.text ?? title,
    factsIn: (text) => ({ trouble: { text, isLasting: true } }),
    title: () => title,
    next: () => next,
  };
}

export const PASS_WORDS = {
  refused: {
    ...troubleWords("refused", {
      cause: "WritesRefused",
      title: "Writes to pods are refused",
      next: "allow the passes this write, relieve the API server if it is too busy, make the pod's annotations smaller, or delete the pod",
      seeAlso: RIGHTS,
    }),
    isBeside: true,
    applies: ({ hold, trouble }) => trouble !== undefined && (hold === "refused" || !isPassTrouble(hold)),
  },
  passRefused: troubleWords("passRefused", {
    cause: "PassRefused",
    title: "The API server refuses what a pass reads or records",
    next: "allow the passes this call",
    seeAlso: RIGHTS,
  }),
  unreachable: troubleWords("unreachable", {
    cause: "ApiServerUnreachable",
    title: "The API server does not answer passes",
    next: "look at the API server, and at the way from the passes to it: the log of the passes has every failed call",
  }),
  contention: troubleWords("contention", {
    cause: "Contention",
    title: "Others keep writing the objects that passes write",
    next: "find out who else writes this SidecarSet or its ledger, such as a second installation of the passes",
  }),
  unread: troubleWords("unread", {
    cause: "PassTooShort",
    title: "Passes are too short to read the pods",
    next: "give passes more time, or the SidecarSet a narrower selector",
  }),
  passFailed: troubleWords("passFailed", {
    cause: "PassFailed",
    title: "A pass over this SidecarSet fails",
    next: "correct what the message names; the log of the passes has more",
  }),
  gate: {
    applies: ({ rules: { gate } }) => gate !== undefined && isPlainNo(gate),
    cause: "GateRefused",
    isExplainedApart: true,
    severity: "wait",
    reason: "Gate",
    verdict: "WaitingForApproval",
    blocked: { reason: "Gate", text: ({ rules: { gate } }) => gate },
    factsIn: (gate) => ({ rules: { gate } }),
    clause: ({ rules: { gate = "a gate is asked first" } }) => gate,
    title: () => "A gate has not allowed the next batch",
    next: () => "it is asked again; its operator knows more",
  },
  gateDown: {
    applies: ({ rules: { gate } }) => gate !== undefined && !isPlainNo(gate),
    cause: "GateUnanswered",
    isExplainedApart: true,
    severity: "trouble",
    reason: "GateDown",
    verdict: "Blocked",
    blocked: { reason: "GateDown", text: ({ rules: { gate } }) => gate },
    factsIn: (gate) => ({ rules: { gate } }),
    clause: ({ rules: { gate = "the gate gives no answer" } }) => gate,
    title: () => "The gate gives no answer",
    next: () => FIX_GATE,
  },
  metrics: {
    applies: ({ rules: { metrics } }) => metrics !== undefined,
    cause: "ChecksFirst",
    isExplainedApart: true,
    severity: ({ rules: { metrics } }) => (metrics?.isSilent ? "trouble" : "wait"),
    reason: ({ rules: { metrics, waves } }) => {
      if (!metrics?.isPaced) return "Metrics";
      return waves?.checkedFrom === undefined ? "RollingOut" : "WaveChecking";
    },
    progress: ({ rules: { metrics, waves } }) => (waves?.checkedFrom === undefined ? undefined : metrics?.reason),
    goesOn: ({ rules: { metrics } }) => metrics?.isPaced === true,
    verdict: ({ rules: { metrics } }) => (metrics?.isSilent ? "Blocked" : "WaitingForMetrics"),
    blocked: {
      reason: "Metrics",
      text: ({ rules: { metrics } }) => (metrics?.isPaced === false ? metrics.reason : undefined),
    },
    factsIn: (reason) => ({
      rules: { metrics: { reason, isPaced: false, seconds: 0, ...(saysNothing(reason) ? { isSilent: true } : {}) } },
    }),
    clause: ({ rules: { metrics } }) => metrics?.reason ?? "metrics are checked first",
    title: ({ rules: { metrics } }) =>
      metrics?.isPaced ? "The next batch waits for its metrics" : "Metrics keep the next batch",
    next: (_, { rules: { metrics } }) => (metrics?.isSilent ? FIX_METRICS : undefined),
  },
} as const satisfies Readonly<Record<string, HoldWords>>;
