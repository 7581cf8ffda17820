/** A duration, as it is typed: 500ms, 10s, 1m or 2h. */
import { CliError } from "../../terminal/error.ts";

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** @throws CliError for what is no duration */
export function parseDuration(option: string, text: string): number {
  const [, amount, unit = ""] = /^(\d+)(ms|s|m|h)$/.exec(text) ?? [];
  const milliseconds = Number(amount) * (UNITS[unit] ?? Number.NaN);
  if (milliseconds > 0) return milliseconds;
  throw new CliError(`--${option} ${text}: not a duration; write for example 500ms, 10s, 1m or 2h`);
}
