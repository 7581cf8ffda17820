/** A timestamp after Kubernetes has stored and printed it: RFC 3339, UTC, whole seconds. */

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,]\d+)?(?:Z|([+-])(\d\d):(\d\d))$/;
const MINUTES_PER_DAY = 24 * 60;

interface Day {
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

function daysInMonth({ year, month }: Pick<Day, "year" | "month">): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

function dayBefore({ year, month, day }: Day): Day {
  if (day > 1) return { year, month, day: day - 1 };
  const previous = month > 1 ? { year, month: month - 1 } : { year: year - 1, month: 12 };
  return { ...previous, day: daysInMonth(previous) };
}

function dayAfter({ year, month, day }: Day): Day {
  if (day < daysInMonth({ year, month })) return { year, month, day: day + 1 };
  return month < 12 ? { year, month: month + 1, day: 1 } : { year: year + 1, month: 1, day: 1 };
}

/** Shifts a date. An offset is little more than a day, so at most two days are crossed. */
function shiftDay(day: Day, days: number): Day {
  if (days < 0) return shiftDay(dayBefore(day), days + 1);
  return days > 0 ? shiftDay(dayAfter(day), days - 1) : day;
}

export function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

function isCivil({ year, month, day }: Day): boolean {
  return month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth({ year, month });
}

/**
 * "2026-01-02T03:04:05.6+01:00" → "2026-01-02T02:04:05Z"; undefined for a text that is not RFC 3339. Source:
 * apimachinery metav1.Time, UnmarshalJSON and MarshalJSON.
 */
export function utcSeconds(text: string): string | undefined {
  const parts = RFC3339.exec(text);
  if (parts === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.slice(1, 7).map(Number);
  if (!isCivil({ year, month, day }) || hour > 23 || minute > 59 || second > 59) return undefined;
  const [offsetHours, offsetMinutes] = [Number(parts[8] ?? 0), Number(parts[9] ?? 0)];
  // Go accepts offsets of 24 hours and of 60 minutes.
  if (offsetHours > 24 || offsetMinutes > 60) return undefined;
  const offset = (offsetHours * 60 + offsetMinutes) * (parts[7] === "-" ? -1 : 1);
  const minuteOfDay = hour * 60 + minute - offset;
  const days = Math.floor(minuteOfDay / MINUTES_PER_DAY);
  const utc = shiftDay({ year, month, day }, days);
  // Go prints these years, but cannot read them again.
  if (utc.year < 0 || utc.year > 9999) return undefined;
  const ofDay = minuteOfDay - days * MINUTES_PER_DAY;
  const date = [String(utc.year).padStart(4, "0"), twoDigits(utc.month), twoDigits(utc.day)].join("-");
  return `${date}T${twoDigits(Math.floor(ofDay / 60))}:${twoDigits(ofDay % 60)}:${twoDigits(second)}Z`;
}

/** The same, with Go's zero time as null: how metav1.Time is stored. */
export function storedTime(text: string): string | null | undefined {
  const time = utcSeconds(text);
  return time === "0001-01-01T00:00:00Z" ? null : time;
}
