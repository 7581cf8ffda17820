/** Decides how a value that should be text is shown in a sentence when it may be anything. */
export function shownText(value: unknown): string {
  return typeof value === "string" ? value : "(no text)";
}
