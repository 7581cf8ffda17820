/** The services that a pass asks before a batch, from the environment's settings: gates, and the metrics server. */
import type { Measured } from "../core/rollout/rules/checks/check-records.ts";
import { type GateAnswer, type GateRequest, no } from "../core/rollout/rules/gate/approval.ts";
import type { Log } from "../log.ts";
import { type GateHost, type PrometheusServer, parseReceiver } from "../settings/called-services.ts";
import {
  type Environment,
  readAwsAccess,
  readGateHosts,
  readNotifications,
  readPrometheus,
} from "../settings/config.ts";
import { type SecretSource, secretSource } from "../settings/secret-source.ts";
import type { Resolve } from "./guarded-post.ts";
import { type Notify, notifier } from "./notifier.ts";

interface Of {
  /** the process's record of refusals; absent: it is empty */
  readonly refusals?: Gates["refusals"];
  /** variables by name; absent: those of the process */
  readonly env?: Environment | undefined;
}

/** The services. @throws ConfigError for the first unusable setting */
export function batchGates(log: Log, { refusals = new Map(), env }: Of = {}): Gates {
  const server = readPrometheus(env);
  const reference = server?.token;
  const reading = { aws: readAwsAccess, log, now: Date.now };
  const token = reference && secretSource({ reference, problemOf, ...reading });
  const receivers = readNotifications(env);
  const source = receivers && secretSource({ reference: receivers, most: 50, problemOf: lineProblem, ...reading });
  const notify = source && notifier(source, { now: Date.now });
  return { ask: gateAsker(readGateHosts(env)), measure: metricsAsker(server, { token }), refusals, notify };
}

function lineProblem(line: string): string | undefined {
  const receiver = parseReceiver(line);
  return typeof receiver === "string" ? receiver : undefined;
}

/** The problem of a secret: a header allows only some characters. */
function problemOf(secret: string): string | undefined {
  return /^[\x21-\x7e]+$/.test(secret) ? undefined : "has characters that no bearer token has";
}

/** Asks a gate. It never rejects: without an answer the gate refuses. */
type AskGate = (url: URL, request: GateRequest, timeoutMs: number) => Promise<GateAnswer>;

/** Evaluates PromQL now. Never rejects: without an answer there is no value. */
type Measure = (query: string, timeoutMs: number) => Promise<Measured>;

interface Refusal {
  /** the release and the place that the question is about */
  readonly about: string;
  readonly reason: string;
  readonly askedAtMs: number;
}

/** A process's record of outside services between passes: how to reach them, and the answers of gates. */
export interface Gates {
  /** asks a gate; absent: no address is allowed */
  readonly ask?: AskGate | undefined;
  /** asks for a metric; absent: there is no metrics server */
  readonly measure?: Measure | undefined;
  /** sends notifications; absent: there is no receiver */
  readonly notify?: Notify | undefined;
  /** Last refusals by uid of the SidecarSet. If the process ends they are lost, and a gate is asked once more. */
  readonly refusals: Map<string, Refusal>;
}

// Asks the allowed gates. Any failure counts as a refusal.

/** Asks gates; undefined: no host is allowed. It never rejects, and its sentences show only the host of an address. */
export function gateAsker(hosts: readonly GateHost[], resolve?: Resolve) {
  if (hosts.length === 0) return undefined;
  return async (url: URL, request: GateRequest, timeoutMs: number): Promise<GateAnswer> => {
    const host = hosts.find(({ origin }) => origin === url.origin);
    if (!host) return no(url.host, `may not be asked: GATE_HOSTS does not name ${url.origin}`);
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      // Few SidecarSets name a gate, so the others do not load this code.
      const { askGate } = await import("./ask-server.ts");
      return await askGate(url, host, { request, timeout, resolve });
    } catch (error) {
      return no(url.host, timeout.aborted ? `did not answer within ${timeoutMs / 1000} s` : failureText(error));
    }
  };
}

/** One sentence with the code of an error, because its message may contain an address. */
function failureText(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "no answer";
  return `cannot be asked: ${code}`;
}

// Evaluates PromQL with the configured server. Any failure gives no value.

interface Asking {
  /** secret with the server's token; absent: no token is sent */
  readonly token?: SecretSource | undefined;
  readonly resolve?: Resolve | undefined;
}

/** Asks for metrics; undefined: no server is named. It never rejects, and its sentences never show the token. */
export function metricsAsker(server: PrometheusServer | undefined, { token, resolve }: Asking = {}) {
  if (server === undefined) return undefined;
  return async (query: string, timeoutMs: number): Promise<Measured> => {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      // Few SidecarSets check metrics, so the others do not load this code.
      const { askMetrics } = await import("./ask-server.ts");
      return await askMetrics(server, query, { timeout, token, resolve });
    } catch (error) {
      return { nothing: timeout.aborted ? `no answer came within ${timeoutMs / 1000} s` : askFailure(error) };
    }
  };
}

/** The error's code in a sentence: its message may hold an address. A secret's message names only its place. */
function askFailure(error: unknown): string {
  if (!(error instanceof Error)) return "the server cannot be asked";
  if (error.name === "SecretError") return `the token cannot be had: ${error.message}`;
  return `the server cannot be asked: ${"code" in error ? String(error.code) : error.name}`;
}
