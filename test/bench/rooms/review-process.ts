/** Reads and answers one review again and again in its own process: managed fields are cut out, or parsed. */
import { readAdmissionReview } from "../../../shared/webhook/review/review.ts";
import { wholeRequest } from "../core.ts";
import { reviewBody, sidecarSets } from "../fixture.ts";
import { answerCalls } from "../process/answer-calls.ts";
import { type Reviews, type ReviewsPlan, wholeBody } from "./whole-body.ts";

/** Returns microseconds of computing, because waits for a share of the processor must not count. */
function microseconds(run: () => unknown, calls: number): number {
  const before = process.cpuUsage();
  for (let call = 0; call < calls; call++) if (run() === undefined) throw new Error("no answer");
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}

function time({ rounds, calls }: ReviewsPlan): Reviews {
  const all = sidecarSets(1);
  const bodies = { cut: reviewBody(), parsed: wholeBody(reviewBody()) };
  const times: Reviews = { cut: { read: [], answered: [] }, parsed: { read: [], answered: [] } };
  // The first round compiles, and does not count.
  for (let round = 0; round <= rounds; round++)
    for (const way of ["cut", "parsed"] as const) {
      const read = microseconds(() => readAdmissionReview(bodies[way]), calls);
      const answered = microseconds(wholeRequest(bodies[way], all).run, calls);
      if (round === 0) continue;
      times[way].read.push(read);
      times[way].answered.push(answered);
    }
  return times;
}

answerCalls({ time });
