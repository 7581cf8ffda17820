/** Tells whether passes work on a SidecarSet: when one last ran, and whether it saw the latest change. */

import type { ObjectMeta } from "../../../api/kubernetes.ts";
import { counted } from "../../../go/counted.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { note, ok, type Step, stop, wait } from "./step.ts";

/** The sum of a one-minute schedule and a pass of up to one minute, with a margin. */
const LATE_SECONDS = 180;

interface Schedule {
  readonly lease: string;
  readonly name: string;
}

const ROLLOUT: Schedule = { lease: "sidecarset-rollout", name: "the rollout function" };

type TickReason = "TickUnknown" | "TickRunning" | "TickNotRunning";

/** `lastPass`: when a pass last renewed its Lease, RFC3339; undefined: no Lease exists, or it may not be read. */
export function traceTick(lastPass: string | undefined, now: string, schedule = ROLLOUT): Step<TickReason> {
  const age = lastPass === undefined ? undefined : secondsBetween(lastPass, now);
  if (age === undefined)
    return note("TickUnknown", `when a pass ran last is unknown: there is no Lease ${schedule.lease}`);
  if (age <= LATE_SECONDS) return ok("TickRunning", `a pass ran ${counted(Math.max(0, age), "second")} ago`);
  return stop(
    "TickNotRunning",
    `no pass has run since ${lastPass}`,
    `see that the schedule of ${schedule.name} is on, or that serve runs with --tick; until then sidecarset tick makes one by hand`,
  );
}

interface Observed {
  readonly metadata?: ObjectMeta;
  readonly status?: { readonly observedGeneration?: number };
}

/** Undefined: a pass has seen the current generation. */
export function traceGeneration({ metadata, status }: Observed): Step<"ChangeNotSeen"> | undefined {
  const [generation, seen] = [metadata?.generation ?? 0, status?.observedGeneration ?? 0];
  if (seen >= generation) return undefined;
  const text = `no pass has written that it saw the latest change (generation ${generation}, seen ${seen})`;
  return wait("ChangeNotSeen", `${text}: where passes run, their log says why`);
}
