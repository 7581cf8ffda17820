/** Decides how much time lies between two timestamps, and which comes so much later, without a clock or a calendar of the machine's. */
import { utcSeconds } from "./rfc3339.ts";

const UTC = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z$/;
const DAYS_PER_CYCLE = 146_097;
const YEARS_PER_CYCLE = 400;
const SECONDS_PER_DAY = 86_400;

/** Whole seconds from one RFC 3339 time to another, negative backwards. Undefined if either is none. */
export function secondsBetween(from: string, to: string): number | undefined {
  const [start, end] = [epochSeconds(from), epochSeconds(to)];
  return start === undefined || end === undefined ? undefined : end - start;
}

/** The RFC 3339 time so many seconds later, in UTC. Undefined if it is none. */
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
  const parts = UTC.exec(utcSeconds(text) ?? "")
    ?.slice(1)
    .map(Number);
  if (!parts) return undefined;
  const [year = 0, month = 1, day = 1, hours = 0, minutes = 0, seconds = 0] = parts;
  return daysBefore(year, month, day) * SECONDS_PER_DAY + hours * 3600 + minutes * 60 + seconds;
}

/** Days since the end of February of year 0. Years begin in March, so that the day that is sometimes there is the last one. */
function daysBefore(year: number, month: number, day: number): number {
  const shiftedYear = month > 2 ? year : year - 1;
  const cycle = Math.floor(shiftedYear / YEARS_PER_CYCLE);
  const yearOfCycle = shiftedYear - cycle * YEARS_PER_CYCLE;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day;
  const leapDays = Math.floor(yearOfCycle / 4) - Math.floor(yearOfCycle / 100);
  return cycle * DAYS_PER_CYCLE + yearOfCycle * 365 + leapDays + dayOfYear;
}

/** The other way round. */
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

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}
