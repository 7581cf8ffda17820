/** Decides how a digest is written so that it makes no word and fits into names: Kubernetes' safe alphabet. */

const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

/** Each character of an ASCII text by its code modulo 27. Source: apimachinery util/rand, SafeEncodeString. */
export function safeEncode(text: string): string {
  return Array.from(text, (character) => ALPHABET[character.charCodeAt(0) % ALPHABET.length]).join("");
}
