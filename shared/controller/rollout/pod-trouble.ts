/** The meaning of a refused write to a pod: wait, continue, or report. */
import type { PodState } from "../../core/ledger.ts";
import type { Outcome } from "./act.ts";
import type { Context } from "./observe.ts";
import { noteProblem } from "./report.ts";

const MAX_RETRY_AFTER_SECONDS = 5;

export type Refused = Extract<Outcome, { kind: "refused" }>;

type Busy = Refused & { readonly error: { readonly code: 429 } };

/** True if the words of a webhook or a policy follow: it denied this request, and may allow others. */
export const isDenial = ({ message }: Refused["error"]) => /denied (?:the )?request/.test(message);

/** True when the write did not happen: its reservation stays for a retry. A webhook's 429 concerns one pod only. */
export function isBusy(outcome: Outcome): outcome is Busy {
  return outcome.kind === "refused" && outcome.error.code === 429 && !isDenial(outcome.error);
}

export function waitMsOf({ error }: Refused): number {
  return 1000 * Math.min(error.retryAfterSeconds ?? 1, MAX_RETRY_AFTER_SECONDS);
}

/** Waits after a busy answer. @throws KubeError if nothing could be sent at all */
export async function backOff(context: Context, state: PodState, outcome: Refused): Promise<void> {
  const { error } = outcome;
  // No answer, and nothing was sent: the next pods would fail too.
  if (error.code === 0) throw error;
  if (!isBusy(outcome)) return noteProblem(context, state, error.message);
  await context.clock.sleep(waitMsOf(outcome));
}
