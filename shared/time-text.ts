/** Points in time as RFC 3339 in UTC: a repeated second is printed once. */

let second = Number.NaN;
let printed = "";

/** In whole seconds, cut off: "2026-01-02T03:04:05Z". */
export function secondText(epochMs: number): string {
  const wanted = Math.floor(epochMs / 1000);
  if (wanted !== second) {
    printed = new Date(wanted * 1000).toISOString().slice(0, 19);
    second = wanted;
  }
  return `${printed}Z`;
}

/** In milliseconds: "2026-01-02T03:04:05.006Z". */
export function millisecondText(epochMs: number): string {
  return `${secondText(epochMs).slice(0, 19)}.${String(epochMs - second * 1000).padStart(3, "0")}Z`;
}
