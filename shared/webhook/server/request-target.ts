/** Decides which requests are none that any of our ports has an answer to, before anybody looks at who sent them. */
import { type HttpAnswer, textAnswer } from "./http.ts";

const METHODS = ["GET", "HEAD", "POST"];
const ALLOW = METHODS.join(", ");
/** Ours are a secret, a path and a timeout. Names have 253 characters at most. */
const MAX_TARGET = 2_048;

/** Undefined: it may be answered. `target` as it was sent. */
export function targetRefusal(method: string, target: string): HttpAnswer | undefined {
  if (!METHODS.includes(method)) return refused(405, `only ${ALLOW} are answered here`, { allow: ALLOW });
  if (target.length > MAX_TARGET) return refused(414, `the address is longer than ${MAX_TARGET} characters`);
  if (!target.startsWith("/")) return refused(400, "the address does not begin with /");
  return isEscapedRight(target) ? undefined : refused(400, "the address has a % that is no escape");
}

/** The connection is not used again: what follows may be anything. */
function refused(status: number, why: string, headers: Readonly<Record<string, string>> = {}): HttpAnswer {
  const answer = textAnswer(status, why);
  return { ...answer, headers: { ...answer.headers, ...headers, connection: "close" } };
}

function isEscapedRight(target: string): boolean {
  if (!target.includes("%")) return true;
  try {
    decodeURIComponent(target);
    return true;
  } catch {
    return false;
  }
}
