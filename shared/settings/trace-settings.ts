/**
 * Tells whether traces are on, by OpenTelemetry's own variables. OpenTelemetry's library reads the variables that are
 * not named here.
 */
import { ConfigError } from "./config-error.ts";

export interface TraceSettings {
  /** the share of traces to keep without a caller's decision */
  readonly share: number;
  /** true: a caller's decision in its traceparent is ignored */
  readonly isParentIgnored: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

const ENDPOINTS = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const PROTOCOLS = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
/** Collectors take JSON where they take Protobuf. */
const SPOKEN = ["http/json", "http/protobuf"];
const SAMPLERS = ["always_on", "always_off", "traceidratio"];

/** undefined: none are wanted. @throws ConfigError */
export function parseTraceSettings(env: Environment): TraceSettings | undefined {
  const endpoint = ENDPOINTS.find((name) => env[name]);
  if (endpoint === undefined || env["OTEL_SDK_DISABLED"] === "true" || env["OTEL_TRACES_EXPORTER"] === "none")
    return undefined;
  requireUrl(endpoint, env[endpoint] ?? "");
  const protocol = PROTOCOLS.find((name) => env[name]);
  const spoken = protocol === undefined ? SPOKEN[0] : env[protocol];
  if (!SPOKEN.includes(spoken ?? ""))
    throw new ConfigError(
      `${protocol}=${spoken}: traces are sent over HTTP; write http/json, and give the collector's port for that (4318 as a rule).`,
    );
  return parseSampler(env["OTEL_TRACES_SAMPLER"] || "parentbased_always_on", env["OTEL_TRACES_SAMPLER_ARG"] || "1");
}

function requireUrl(variable: string, text: string): void {
  const { protocol } = URL.parse(text) ?? {};
  if (protocol === "http:" || protocol === "https:") return;
  throw new ConfigError(`${variable}=${text} is no address of a collector; write one such as http://localhost:4318.`);
}

function parseSampler(text: string, argument: string): TraceSettings {
  const kind = text.replace(/^parentbased_/, "");
  if (!SAMPLERS.includes(kind))
    throw new ConfigError(
      `OTEL_TRACES_SAMPLER=${text} is not one of ${SAMPLERS.join(", ")}, with or without parentbased_ before it.`,
    );
  const share = kind === "always_off" ? 0 : Number(kind === "always_on" ? "1" : argument);
  if (!(share >= 0 && share <= 1))
    throw new ConfigError(`OTEL_TRACES_SAMPLER_ARG=${argument} is no share; write a number from 0 to 1.`);
  return { share, isParentIgnored: kind === text };
}
