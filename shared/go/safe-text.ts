/** Texts without words that fit into names: Kubernetes' safe alphabet. Source: apimachinery util/rand. */

const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

/** Replaces each character of an ASCII text by its code modulo 27, like SafeEncodeString. */
export function safeEncode(text: string): string {
  return Array.from(text, (character) => ALPHABET[character.charCodeAt(0) % ALPHABET.length]).join("");
}

/** `random` returns a number from 0 up to but not including 1. */
export function safeRandom(length: number, random: () => number): string {
  return Array.from({ length }, () => ALPHABET.charAt(Math.floor(random() * ALPHABET.length))).join("");
}
