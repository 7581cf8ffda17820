/** Decides how much time lies between two timestamps, without a clock or a calendar of the machine's. */
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
