/** A user's regular expression: RE2 syntax and linear time, like Go's regexp. */
import { RE2JS } from "re2js";

export type RegularExpression =
  | { readonly kind: "compiled"; readonly matches: (text: string) => boolean }
  /** `message` is the text of Go's error. */
  | { readonly kind: "malformed"; readonly message: string };

/** Go names the wrong part even if it is empty. */
function goMessage(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.endsWith("trailing backslash at end of expression") ? `${message}: \`\`` : message;
}

/** `matches` looks for the pattern anywhere in the text. Never throws. */
export function compileRegularExpression(pattern: string): RegularExpression {
  try {
    const compiled = RE2JS.compile(pattern);
    return { kind: "compiled", matches: (text) => compiled.matcher(text).find() };
  } catch (error) {
    return { kind: "malformed", message: goMessage(error) };
  }
}
