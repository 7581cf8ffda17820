/** Asks a gate or a metrics server over HTTP, only at the checked address, and without following redirects. */

import { type Measured, measuredBy } from "../core/rollout/rules/checks/check-records.ts";
import { type GateAnswer, type GateRequest, gateAnswer, no } from "../core/rollout/rules/gate/approval.ts";
import type { GateHost, PrometheusServer } from "../settings/called-services.ts";
import type { SecretSource } from "../settings/secret-source.ts";
import { addressOf, MOST_BYTES, post, type Resolve, resolveName } from "./guarded-post.ts";

export interface Asking {
  readonly request: GateRequest;
  readonly timeout: AbortSignal;
  readonly resolve?: Resolve | undefined;
}

/** Asks a gate. It rejects if there is no answer, also after `timeout`. */
export async function askGate(url: URL, host: GateHost, asking: Asking): Promise<GateAnswer> {
  const { request, timeout, resolve = resolveName } = asking;
  const address = await addressOf(url, { ...host, setting: "GATE_HOSTS", what: "gate" }, { resolve, timeout });
  if (typeof address === "string") return no(url.host, `may not be asked: ${address}`);
  const { code, body } = await post(url, JSON.stringify(request), { address, timeout });
  if (body === undefined) return no(url.host, `answered with more than ${MOST_BYTES} bytes`);
  return gateAnswer(url.host, code, body);
}

// Asks a Prometheus-compatible server for a query's value. Source: Prometheus, HTTP API, POST /api/v1/query.

interface AskingMetrics {
  readonly timeout: AbortSignal;
  readonly token?: SecretSource | undefined;
  readonly resolve?: Resolve | undefined;
}

/** Asks a metrics server. It rejects if there is no answer, also after `timeout`. */
export async function askMetrics(
  { url, isPrivate }: PrometheusServer,
  query: string,
  { timeout, token, resolve = resolveName }: AskingMetrics,
): Promise<Measured> {
  const target = new URL(`${url}/api/v1/query`);
  const permission = { isPrivate, setting: "PROMETHEUS_SERVER", what: "metrics server" } as const;
  const address = await addressOf(target, permission, { resolve, timeout });
  if (typeof address === "string") return { nothing: `the server may not be asked: ${address}` };
  const [secret] = (await token?.()) ?? [];
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
  };
  const { code, body } = await post(target, new URLSearchParams({ query }).toString(), { address, timeout, headers });
  return measuredBy(code, body);
}
