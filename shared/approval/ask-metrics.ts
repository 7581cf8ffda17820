/** Asks a Prometheus-compatible server for the value of a query now. Source: Prometheus, HTTP API, POST /api/v1/query. */
import { type Measured, measuredBy } from "../core/rollout/rules/checks/check-records.ts";
import type { PrometheusServer } from "../settings/prometheus-settings.ts";
import type { SecretSource } from "../settings/secret-source.ts";
import { addressOf, post, type Resolve, resolveName } from "./guarded-post.ts";

interface Asking {
  readonly timeout: AbortSignal;
  readonly token?: SecretSource | undefined;
  readonly resolve?: Resolve | undefined;
}

/** Rejects where there is no answer, also when `timeout` is over. */
export async function askMetrics(
  { url, isPrivate }: PrometheusServer,
  query: string,
  { timeout, token, resolve = resolveName }: Asking,
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
