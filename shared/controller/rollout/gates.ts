/** What a process has of gates and of metrics: how to ask for them, and what gates said. */

import type { GateAnswer, GateRequest } from "../../core/rollout/approval.ts";
import type { Measured } from "../../core/rollout/checks/measure.ts";

/** Never rejects: what is no answer is a no. */
type AskGate = (url: URL, request: GateRequest, timeoutMs: number) => Promise<GateAnswer>;

/** Evaluates PromQL now. Never rejects: what is no answer has no value. */
type Measure = (query: string, timeoutMs: number) => Promise<Measured>;

interface Refusal {
  /** what was asked about: the release, and where */
  readonly about: string;
  readonly reason: string;
  readonly askedAtMs: number;
}

/** What a process has of gates, from one pass to the next. */
export interface Gates {
  /** absent: nowhere may be asked */
  readonly ask?: AskGate | undefined;
  /** absent: there is no server to be asked */
  readonly measure?: Measure | undefined;
  /** uid of the SidecarSet → its last no. Lost with the process: then a gate is asked once more. */
  readonly refusals: Map<string, Refusal>;
}
