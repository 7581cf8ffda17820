/** Evaluates PromQL by the server that settings name, and makes no value of everything that goes wrong. */
import type { Measured } from "../core/rollout/rules/checks/check-records.ts";
import type { PrometheusServer } from "../settings/prometheus-settings.ts";
import type { SecretSource } from "../settings/secret-source.ts";
import type { Resolve } from "./guarded-post.ts";

interface Asking {
  /** of the server's token; absent: none is sent */
  readonly token?: SecretSource | undefined;
  readonly resolve?: Resolve | undefined;
}

/** undefined where no server is named. What it gives never rejects, and no sentence of it holds the token. */
export function metricsAsker(server: PrometheusServer | undefined, { token, resolve }: Asking = {}) {
  if (server === undefined) return undefined;
  return async (query: string, timeoutMs: number): Promise<Measured> => {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      // Few check metrics: the others need not load how they are asked for.
      const { askMetrics } = await import("./ask-metrics.ts");
      return await askMetrics(server, query, { timeout, token, resolve });
    } catch (error) {
      return { nothing: timeout.aborted ? `no answer came within ${timeoutMs / 1000} s` : failureText(error) };
    }
  };
}

/** The sentence has the code of the error, since its message may hold an address. Messages of secrets name their place only. */
function failureText(error: unknown): string {
  if (!(error instanceof Error)) return "the server cannot be asked";
  if (error.name === "SecretError") return `the token cannot be had: ${error.message}`;
  return `the server cannot be asked: ${"code" in error ? String(error.code) : error.name}`;
}
