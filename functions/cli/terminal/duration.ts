/** How long something takes, as people read it. */

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
