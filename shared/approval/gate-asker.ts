/** Decides which gates may be asked, and makes a no of everything that goes wrong when one is. */
import { type GateAnswer, type GateRequest, no } from "../core/rollout/approval.ts";
import type { GateHost } from "../settings/gate-settings.ts";
import type { Resolve } from "./guarded-post.ts";

/** undefined where no host is allowed. What it gives never rejects, and no sentence of it holds more of an address than its host. */
export function gateAsker(hosts: readonly GateHost[], resolve?: Resolve) {
  if (hosts.length === 0) return undefined;
  return async (url: URL, request: GateRequest, timeoutMs: number): Promise<GateAnswer> => {
    const host = hosts.find(({ origin }) => origin === url.origin);
    if (!host) return no(url.host, `may not be asked: GATE_HOSTS does not name ${url.origin}`);
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      // Few name a gate: the others need not load how it is asked.
      const { askGate } = await import("./ask-gate.ts");
      return await askGate(url, host, { request, timeout, resolve });
    } catch (error) {
      return no(url.host, timeout.aborted ? `did not answer within ${timeoutMs / 1000} s` : failureText(error));
    }
  };
}

/** By its code: messages of errors may hold addresses. */
function failureText(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "no answer";
  return `cannot be asked: ${code}`;
}
