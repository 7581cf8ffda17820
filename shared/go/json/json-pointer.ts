/** Writes a key as a step of a JSON pointer. Source: RFC 6901. */
export function pointerStep(key: string): string {
  return key.includes("/") || key.includes("~") ? key.replaceAll("~", "~0").replaceAll("/", "~1") : key;
}
