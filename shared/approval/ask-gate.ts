/** Asks a gate over HTTP: at the address that was looked at, and without following anybody. */
import { type GateAnswer, type GateRequest, gateAnswer, no } from "../core/rollout/rules/gate/approval.ts";
import type { GateHost } from "../settings/gate-settings.ts";
import { addressOf, MOST_BYTES, post, type Resolve, resolveName } from "./guarded-post.ts";

export interface Asking {
  readonly request: GateRequest;
  readonly timeout: AbortSignal;
  readonly resolve?: Resolve | undefined;
}

/** Rejects where there is no answer, also when `timeout` is over. */
export async function askGate(url: URL, host: GateHost, asking: Asking): Promise<GateAnswer> {
  const { request, timeout, resolve = resolveName } = asking;
  const address = await addressOf(url, { ...host, setting: "GATE_HOSTS", what: "gate" }, { resolve, timeout });
  if (typeof address === "string") return no(url.host, `may not be asked: ${address}`);
  const { code, body } = await post(url, JSON.stringify(request), { address, timeout });
  if (body === undefined) return no(url.host, `answered with more than ${MOST_BYTES} bytes`);
  return gateAnswer(url.host, code, body);
}
