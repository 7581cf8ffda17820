/** The client's errors for each network fault, made by the same functions as in production. */

import type { KubeError } from "../../shared/kube/error.ts";
import { connectionFailure, refusal, timeoutFailure, unreadableAnswer } from "../../shared/kube/failure.ts";
import type { NetworkFault } from "./faults.ts";

const TIMEOUT_MS = 30_000;

export interface Failure {
  /** true if the API server carried the call out */
  readonly isApplied: boolean | "perhaps";
  /** milliseconds until the client gets the error */
  readonly afterMs?: number;
  readonly error: (method: string) => KubeError;
}

const url = new URL("https://api.example:6443/api");
const sent = (method: string) => ({ method, url, isSent: true });
const status = (code: number, message: string) => JSON.stringify({ kind: "Status", code, message, status: "Failure" });
const reset = () => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });

export const FAILURES: Readonly<Record<Exclude<NetworkFault, "403 in one namespace">, Failure>> = {
  "429 with Retry-After": {
    isApplied: false,
    error: (method) => refusal(sent(method), 429, status(429, "too many requests"), "2"),
  },
  "429 without Retry-After": {
    isApplied: false,
    error: (method) => refusal(sent(method), 429, "slow down", undefined),
  },
  "500": { isApplied: "perhaps", error: (method) => refusal(sent(method), 500, status(500, "etcd failed"), undefined) },
  "502": { isApplied: "perhaps", error: (method) => refusal(sent(method), 502, "<html>Bad Gateway</html>", undefined) },
  "503": { isApplied: "perhaps", error: (method) => refusal(sent(method), 503, "", "1") },
  "504": { isApplied: "perhaps", error: (method) => refusal(sent(method), 504, status(504, "timeout"), undefined) },
  "timeout, applied": {
    isApplied: true,
    afterMs: TIMEOUT_MS,
    error: (method) => timeoutFailure(sent(method), TIMEOUT_MS),
  },
  "timeout, not applied": {
    isApplied: false,
    afterMs: TIMEOUT_MS,
    error: (method) => timeoutFailure(sent(method), TIMEOUT_MS),
  },
  "reset before sending": {
    isApplied: false,
    error: (method) => connectionFailure(reset(), { method, url, isSent: false }),
  },
  "reset after sending": { isApplied: "perhaps", error: (method) => connectionFailure(reset(), sent(method)) },
  "truncated answer": {
    isApplied: true,
    error: (method) => unreadableAnswer(sent(method), 200, "ends in the middle"),
  },
  "malformed answer": {
    isApplied: true,
    error: (method) => unreadableAnswer(sent(method), 200, "is not JSON: is this an API server?"),
  },
  "expired token": { isApplied: false, error: (method) => refusal(sent(method), 401, "Unauthorized", undefined) },
};

/** `body`: the body of the answer; `retryAfter`: the value of its Retry-After header. */
export const answeredWith = (method: string, code: number, body: string, retryAfter?: string) =>
  refusal(sent(method), code, body, retryAfter);

export const forbidden = (method: string, namespace: string) =>
  refusal(sent(method), 403, status(403, `forbidden in the namespace ${namespace}`), undefined);
