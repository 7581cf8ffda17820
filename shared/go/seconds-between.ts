/** The time between two timestamps, and the later one, without the machine's clock or calendar. */
import { twoDigits, utcSeconds } from "./rfc3339.ts";

const DAYS_PER_CYCLE = 146_097;
const YEARS_PER_CYCLE = 400;
const SECONDS_PER_DAY = 86_400;

/** Whole seconds from one RFC 3339 time to another, negative backwards. Undefined if one is invalid. */
export function secondsBetween(from: string, to: string): number | undefined {
  const [start, end] = [epochSeconds(from), epochSeconds(to)];
  return start === undefined || end === undefined ? undefined : end - start;
}

/** The RFC 3339 time some seconds later, in UTC. Undefined for an invalid time. */
export function addSeconds(time: string, seconds: number): string | undefined {
  const start = epochSeconds(time);
  if (start === undefined) return undefined;
  const total = start + seconds;
  const days = Math.floor(total / SECONDS_PER_DAY);
  const rest = total - days * SECONDS_PER_DAY;
  const clock = [Math.floor(rest / 3600), Math.floor((rest % 3600) / 60), rest % 60].map(twoDigits).join(":");
  return `${dateOf(days)}T${clock}Z`;
}

function epochSeconds(text: string): number | undefined {
  const time = utcSeconds(text);
  return time === undefined ? undefined : ofPrinted(time);
}

/**
 * Seconds of an RFC 3339 time since a fixed day; undefined if invalid. A text in Kubernetes' own form
 * (YYYY-MM-DDThh:mm:ssZ) is not checked: that is several times faster, for callers who read every pod of a rollout.
 */
export function storedSeconds(time: string): number | undefined {
  const seconds = time.length === 20 && time.endsWith("Z") ? ofPrinted(time) : (epochSeconds(time) ?? Number.NaN);
  return Number.isNaN(seconds) ? undefined : seconds;
}

/** The seconds; NaN if a digit is missing. */
function ofPrinted(time: string): number {
  const days = daysBefore(digits(time, 0, 4), digits(time, 5, 7), digits(time, 8, 10));
  const minutes = digits(time, 11, 13) * 60 + digits(time, 14, 16);
  return days * SECONDS_PER_DAY + minutes * 60 + digits(time, 17, 19);
}

function digits(text: string, begin: number, end: number): number {
  let value = 0;
  for (let at = begin; at < end; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) return Number.NaN;
    value = value * 10 + digit;
  }
  return value;
}

/** Days since the end of February of year 0. Years begin in March, so that the leap day is the last one. */
function daysBefore(year: number, month: number, day: number): number {
  const shiftedYear = month > 2 ? year : year - 1;
  const cycle = Math.floor(shiftedYear / YEARS_PER_CYCLE);
  const yearOfCycle = shiftedYear - cycle * YEARS_PER_CYCLE;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day;
  const leapDays = Math.floor(yearOfCycle / 4) - Math.floor(yearOfCycle / 100);
  return cycle * DAYS_PER_CYCLE + yearOfCycle * 365 + leapDays + dayOfYear;
}

/** The date for a number of days: the reverse of `daysBefore`. */
function dateOf(days: number): string {
  const cycle = Math.floor((days - 1) / DAYS_PER_CYCLE);
  const day = days - 1 - cycle * DAYS_PER_CYCLE;
  const leapDays = Math.floor(day / 1460) - Math.floor(day / 36_524) + Math.floor(day / 146_096);
  const year = Math.floor((day - leapDays) / 365);
  const dayOfYear = day - (365 * year + Math.floor(year / 4) - Math.floor(year / 100));
  const month = Math.floor((5 * dayOfYear + 2) / 153);
  const dayOfMonth = dayOfYear - Math.floor((153 * month + 2) / 5) + 1;
  const isNextYear = month >= 10;
  const years = year + cycle * YEARS_PER_CYCLE + (isNextYear ? 1 : 0);
  return `${String(years).padStart(4, "0")}-${twoDigits(isNextYear ? month - 9 : month + 3)}-${twoDigits(dayOfMonth)}`;
}
