/** Ages as kubectl prints them: k8s.io/apimachinery/pkg/util/duration. */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

function two(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}

function human(seconds: number): string {
  const minutes = Math.floor(seconds / MINUTE);
  const hours = Math.floor(seconds / HOUR);
  const days = Math.floor(seconds / DAY);
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (minutes < 10) return two(minutes, "m", seconds % MINUTE, "s");
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  if (days < 8) return two(days, "d", hours % 24, "h");
  if (days < 2 * 365) return `${days}d`;
  return two(Math.floor(seconds / YEAR), "y", days % 365, "d");
}

/** "<unknown>" without a time, "<invalid>" for one well ahead. */
export function age(time: string | null | undefined, now: number): string {
  if (time === undefined || time === null || time === "") return "<unknown>";
  const seconds = Math.floor((now - Date.parse(time)) / 1000);
  return seconds < -1 ? "<invalid>" : human(Math.max(0, seconds));
}
