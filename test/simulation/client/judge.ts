/** Finds problems of a client's call, from the requests that arrived and from its result: one sentence each. */
import { isDeepStrictEqual } from "node:util";
import { KubeError } from "../../../shared/kube/error.ts";
import type { Call } from "./calls.ts";
import type { Arrival, Fate } from "./door.ts";
import type { WatchFate } from "./watch-door.ts";

export interface Outcome {
  readonly value?: unknown;
  /** the call's error; absent: the call succeeded */
  readonly error?: unknown;
}

const MOST_READS = 4;
const REFUSED: ReadonlySet<Fate> = new Set<Fate>(["throttled", "500", "503, carried out", "page of a proxy"]);
/** The code in the API server's Status for each fault. */
const CODES: Readonly<Partial<Record<Fate, number>>> = {
  throttled: 429,
  "500": 500,
  "503, carried out": 503,
  "page of a proxy": 502,
  "404 of a proxy": 502,
};
/** A timer may be late on a busy machine. It is early by less than this. */
const EARLY_MS = 20;

export function callProblems(call: Call, arrivals: readonly Arrival[], outcome: Outcome): readonly string[] {
  const last = arrivals.at(-1);
  if (!last) return [`${call.what} sends nothing`];
  return [
    ...arrivals.flatMap((arrival) => spellingProblem(call, arrival) ?? []),
    ...(call.isWrite ? [onceProblem(arrivals)] : [...repeatProblems(arrivals), ...waitProblems(arrivals)]),
    ...(last.fate ? fateProblems(last.fate, outcome) : [answerProblem(call, last, outcome)]),
  ].flatMap((problem) => (problem === undefined ? [] : [`${call.what} ${problem}`]));
}

function spellingProblem({ wanted }: Call, arrival: Arrival): string | undefined {
  const { method, path, query, contentType, accept, body } = arrival;
  const isMetadataOnly = accept.includes("as=PartialObjectMetadata");
  const seen = { method, path, query, body, contentType: body === undefined ? "" : contentType, isMetadataOnly };
  if (isDeepStrictEqual(seen, wanted)) return undefined;
  return `is sent as ${JSON.stringify(seen)}, wanted ${JSON.stringify(wanted)}`;
}

function onceProblem({ length }: readonly Arrival[]): string | undefined {
  return length > 1 ? `is a write, and arrives ${length} times` : undefined;
}

/** The client repeats a read after every fault on the network, but not after an answer of the API server. */
function repeatProblems(arrivals: readonly Arrival[]): readonly (string | undefined)[] {
  const again = arrivals.slice(0, -1).filter(({ fate }) => fate === undefined);
  const isGivenUp = arrivals.at(-1)?.fate !== undefined && arrivals.length < MOST_READS;
  return [
    ...again.map(({ answer }) => `comes again after ${answer?.code}`),
    arrivals.length > MOST_READS ? `arrives ${arrivals.length} times` : undefined,
    isGivenUp ? `is given up after ${arrivals.length} times` : undefined,
  ];
}

function waitProblems(arrivals: readonly Arrival[]): readonly (string | undefined)[] {
  return arrivals.map(({ fate, atMs, retryAfter = 0 }, index) => {
    const waitedMs = (arrivals[index + 1]?.atMs ?? Number.POSITIVE_INFINITY) - atMs;
    const isEarly = fate && REFUSED.has(fate) && waitedMs < 1_000 * retryAfter - EARLY_MS;
    return isEarly ? `comes again after ${Math.round(waitedMs)} ms, ${retryAfter} s were asked for` : undefined;
  });
}

/** A caller cannot know whether the server carried out a call when its answer was lost. */
function fateProblems(fate: Fate, { error }: Outcome): readonly (string | undefined)[] {
  if (!(error instanceof KubeError)) return [`comes to ${error ?? "a good end"}, and met: ${fate}`];
  const isKnown = fate === "throttled";
  const code = CODES[fate];
  return [
    error.isOutcomeKnown === isKnown ? undefined : `met ${fate}: isOutcomeKnown is ${error.isOutcomeKnown}`,
    code === undefined || error.code === code ? undefined : `met ${fate}: the code is ${error.code}`,
  ];
}

function answerProblem({ said }: Call, { answer }: Arrival, { value, error }: Outcome): string | undefined {
  if (!answer) return "was answered by nobody";
  if (answer.code >= 400) return refusalProblem(answer.code, answer.body, error);
  if (error !== undefined) return `went well, and rejects with ${error}`;
  if (isDeepStrictEqual(value, said(answer.body))) return undefined;
  return `got ${JSON.stringify(answer.body)}, and says ${JSON.stringify(value)}`;
}

function refusalProblem(code: number, body: unknown, error: unknown): string | undefined {
  const { message, reason } = body as { readonly message?: string; readonly reason?: string };
  const told = error instanceof KubeError ? [error.code, error.reason, error.message, error.isOutcomeKnown] : [];
  if (isDeepStrictEqual(told, [code, reason, message, true])) return undefined;
  return `was refused with ${code} ${reason}: ${message}, and says ${told.join(" ") || (error ?? "that it went well")}`;
}

interface WatchSeen {
  readonly from: string;
  readonly events: readonly unknown[];
  /** number of later changes of objects that still exist */
  readonly changes: number;
}

/** The code of the error that ends a watch; undefined: it ends without an error. */
const WATCH_CODES: Readonly<Record<WatchFate["end"], number | undefined>> = {
  ends: undefined,
  "breaks in an event": undefined,
  expires: 410,
  "is no JSON": 200,
  "is refused as expired": 410,
};

export function watchProblems(seen: WatchSeen, arrivals: readonly Arrival[], outcome: Outcome): readonly string[] {
  const [watch] = arrivals.flatMap((arrival) => arrival.watch ?? []);
  if (!watch || arrivals.length > 1) return [`a watch arrives ${arrivals.length} times`];
  const code = outcome.error instanceof KubeError ? outcome.error.code : undefined;
  const isWhole = watch.end === "is refused as expired" || watch.sent.length >= seen.changes;
  return [
    ...(isDeepStrictEqual(seen.events, watch.sent)
      ? []
      : [`a watch that was sent ${watch.sent.length} events yields others: ${seen.events.length}`]),
    ...(isWhole ? [] : [`a watch from ${seen.from} was sent ${watch.sent.length} events of ${seen.changes}`]),
    ...(code === WATCH_CODES[watch.end]
      ? []
      : [`a watch that ${watch.end} comes to ${outcome.error ?? "a quiet end"}`]),
  ];
}
