/** What a process has of gates: how to ask them, and what they said. */
import type { GateAnswer, GateRequest } from "../../core/rollout/approval.ts";

/** Never rejects: what is no answer is a no. */
type AskGate = (url: URL, request: GateRequest, timeoutMs: number) => Promise<GateAnswer>;

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
  /** uid of the SidecarSet → its last no. Lost with the process: then a gate is asked once more. */
  readonly refusals: Map<string, Refusal>;
}
