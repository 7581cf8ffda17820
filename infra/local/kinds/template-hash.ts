/** The hash of a pod template, as names of ReplicaSets and revision labels carry it. */
import { createHash } from "node:crypto";
import { ALPHABET } from "./names.ts";

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(entries.map(([key, field]) => [key, sorted(field)]));
}

/** Ten characters; equal for templates that are equal. */
export function templateHash(template: unknown): string {
  const digest = createHash("sha256")
    .update(JSON.stringify(sorted(template)))
    .digest();
  return [...digest.subarray(0, 10)].map((byte) => ALPHABET[byte % ALPHABET.length]).join("");
}
