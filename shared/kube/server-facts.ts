/** The facts about an API server: its version and its time. */
import { refusal, unreadableAnswer } from "./failure.ts";
import { type ClusterAccess, openTransport, readBody } from "./transport.ts";

export interface ServerFacts {
  readonly version: { readonly major: string; readonly minor: string; readonly gitVersion: string };
  /**
   * seconds by which its clock is ahead of the local one, as precisely as header and network allow; undefined: unknown
   */
  readonly skewSeconds: number | undefined;
}

const TIMEOUT_MS = 10_000;

/** @throws KubeError */
export async function readServerFacts(access: ClusterAccess, now: () => number): Promise<ServerFacts> {
  const begin = now();
  const timeoutMs = access.requestTimeoutMs ?? TIMEOUT_MS;
  const answer = await openTransport(access)({ method: "GET", path: "/version", timeoutMs });
  const middle = begin + (now() - begin) / 2;
  const body = await readBody(answer);
  if (answer.code >= 300) throw refusal(answer.attempt, answer.code, body, answer.retryAfter);
  // The header has whole seconds: on average half of one is cut off.
  const skew = Date.parse(answer.date ?? "") + 500 - middle;
  return {
    version: parse(body, () => unreadableAnswer(answer.attempt, answer.code, "is not JSON: is this an API server?")),
    skewSeconds: Number.isNaN(skew) ? undefined : Math.trunc(skew / 1000),
  };
}

function parse(body: string, failure: () => Error): ServerFacts["version"] {
  try {
    const { major = "", minor = "", gitVersion = "" } = JSON.parse(body) as Partial<ServerFacts["version"]>;
    return { major, minor, gitVersion };
  } catch {
    throw failure();
  }
}
