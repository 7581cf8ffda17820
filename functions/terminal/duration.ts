/** Durations as people read them. */
import { CliError } from "./screen.ts";

/** 75 → 1m15s */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  const parts = [
    ...(hours > 0 ? [`${hours}h`] : []),
    ...(minutes > 0 ? [`${minutes}m`] : []),
    ...(rest > 0 || whole === 0 ? [`${rest}s`] : []),
  ];
  return seconds > 0 && seconds < 1 ? `${Math.round(seconds * 1000)}ms` : parts.join("");
}

/** A time ago in its largest unit, as kubectl's AGE: 75 → 75s, 180 → 3m, 90000 → 25h */
export function age(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 120) return `${whole}s`;
  if (whole < 7_200) return `${Math.floor(whole / 60)}m`;
  return whole < 172_800 ? `${Math.floor(whole / 3600)}h` : `${Math.floor(whole / 86_400)}d`;
}

// Typed durations: 500ms, 10s, 1m or 2h.

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** @throws CliError for what is no duration */
export function parseDuration(option: string, text: string): number {
  const [, amount, unit = ""] = /^(\d+)(ms|s|m|h)$/.exec(text) ?? [];
  const milliseconds = Number(amount) * (UNITS[unit] ?? Number.NaN);
  if (milliseconds > 0) return milliseconds;
  throw new CliError(`--${option} ${text}: not a duration; write for example 500ms, 10s, 1m or 2h`);
}
