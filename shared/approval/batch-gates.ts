/** What is asked before a batch, as the environment's settings say: gates, and the server of metrics. */
import type { GateAnswer, GateRequest } from "../core/rollout/approval.ts";
import type { Measured } from "../core/rollout/checks/measure.ts";
import type { Log } from "../log.ts";
import { type Environment, readAwsAccess, readGateHosts, readPrometheus } from "../settings/config.ts";
import { secretSource } from "../settings/secret-source.ts";
import { gateAsker } from "./gate-asker.ts";
import { metricsAsker } from "./metrics-asker.ts";

interface Of {
  /** what the process remembers of gates; absent: nothing yet */
  readonly refusals?: Gates["refusals"];
  /** variables by name; absent: those of the process */
  readonly env?: Environment | undefined;
}

/** @throws ConfigError for the first setting that cannot be used */
export function batchGates(log: Log, { refusals = new Map(), env }: Of = {}): Gates {
  const server = readPrometheus(env);
  const reference = server?.token;
  const token = reference && secretSource({ reference, problemOf, aws: readAwsAccess, log, now: Date.now });
  return { ask: gateAsker(readGateHosts(env)), measure: metricsAsker(server, { token }), refusals };
}

/** It is sent in a header. */
function problemOf(secret: string): string | undefined {
  return /^[\x21-\x7e]+$/.test(secret) ? undefined : "has characters that no bearer token has";
}

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

/** What a process knows of gates and of metrics from one pass to the next: how to ask, and what gates said. */
export interface Gates {
  /** absent: nowhere may be asked */
  readonly ask?: AskGate | undefined;
  /** absent: there is no server to be asked */
  readonly measure?: Measure | undefined;
  /** uid of the SidecarSet → its last no. Lost with the process: then a gate is asked once more. */
  readonly refusals: Map<string, Refusal>;
}
