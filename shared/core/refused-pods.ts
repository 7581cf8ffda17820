/**
 * Pods to which the API server refused a write: passes skip them for a while, longer after each refusal, and continue
 * with the others. The ledger keeps them, because passes share no other memory.
 */
import type { Pod } from "../api/kubernetes.ts";
import { inTurns } from "../go/sequence.ts";
import { shortText } from "../go/unseen.ts";

export interface RefusedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** number of refusals since the last accepted write */
  readonly times: number;
  /** time of the next try, RFC3339 */
  readonly until: string;
  /** the API server's words in one line */
  readonly message: string;
}

/** Limit of stored pods. Passes retry the others, and namespaces get equal shares. */
const MOST_KEPT = 50;
/** Number of refused pods at which a namespace's other pods wait too: the usual cause is a policy of the namespace. */
export const MOST_OF_NAMESPACE = 5;
const MOST_MESSAGE = 200;
/** Seconds from the first refusal to the next try; the time doubles with each refusal. */
const FIRST_WAIT_SECONDS = 1;
const LONGEST_WAIT_SECONDS = 600;

/** The text if a write succeeded and somebody else reverted it, in place of the API server's words. */
export const TAKEN_BACK = "what passes write to it is taken back";
/** The text if somebody else drains the pod again. */
export const DRAINED_AGAIN = "it is drained again whenever passes put it back";

/** Number of reverts that prove another author. Another pass may cause one or two that look the same. */
const SURE_TIMES = 3;

/** The pods that passes skip now. */
export interface PassedOver {
  readonly uids: ReadonlySet<string>;
  /** pods that somebody drains again after each restore; they use no budget */
  readonly takenBack: ReadonlySet<string>;
  readonly namespaces: ReadonlySet<string>;
  /** namespaces with slow writes, where not even a due pod is tried before the pods of others */
  readonly slow?: ReadonlySet<string>;
  /** uids of pods that passes try even if their namespace waits */
  readonly due: ReadonlySet<string>;
}

export const NONE_PASSED_OVER: PassedOver = {
  uids: new Set(),
  takenBack: new Set(),
  namespaces: new Set(),
  due: new Set(),
};

/** Seconds from one refusal to the next try. */
export function waitSecondsAfter(times: number): number {
  return Math.min(FIRST_WAIT_SECONDS * 2 ** (times - 1), LONGEST_WAIT_SECONDS);
}

/** The `message` in one short line without hidden characters. A long pod name does not cut off the rest. */
export function refusalText(message: string): string {
  const line = message.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
  const [told = line] = line.length > MOST_MESSAGE ? (FORBIDDEN.exec(line)?.slice(1) ?? []) : [];
  return shortText(told, MOST_MESSAGE);
}

/** The pods to skip. `isDue`: returns true if a pod's waiting time is over. */
export function passedOver(refused: readonly RefusedPod[], isDue: (pod: RefusedPod) => boolean): PassedOver {
  if (refused.length === 0) return NONE_PASSED_OVER;
  const waiting = refused.filter((pod) => !isDue(pod));
  const due = refused.filter(isDue);
  const full = [...Map.groupBy(waiting, ({ namespace }) => namespace)].filter(
    ([, pods]) => pods.length >= MOST_OF_NAMESPACE,
  );
  return {
    uids: new Set(waiting.map(({ uid }) => uid)),
    takenBack: new Set(
      waiting.filter(({ message, times }) => message === DRAINED_AGAIN && times >= SURE_TIMES).map(({ uid }) => uid),
    ),
    namespaces: new Set(full.map(([namespace]) => namespace)),
    due: new Set(due.map(({ uid }) => uid)),
  };
}

interface Named {
  readonly uid?: string;
  readonly namespace?: string;
}

export function isPassedOver(passed: PassedOver, { uid = "", namespace = "" }: Named): boolean {
  const { uids, namespaces, due, slow } = passed;
  return uids.has(uid) || slow?.has(namespace) || (namespaces.has(namespace) && !due.has(uid));
}

/** The refusals for the ledger. If there are too many, namespaces get equal shares, most refused pods first. */
export function keptRefusals(refused: readonly RefusedPod[]): readonly RefusedPod[] {
  const worst = refused.toSorted((a, b) => b.times - a.times || (a.uid < b.uid ? -1 : 1));
  return inTurns(worst, ({ namespace }) => namespace).slice(0, MOST_KEPT);
}

/** One clause about the pod with the most refusals; undefined: no pod was refused. */
export function refusedText(refused: readonly RefusedPod[]): string | undefined {
  const [worst] = keptRefusals(refused);
  if (!worst) return undefined;
  const others = refused.length - 1;
  const more = others === 0 ? "" : ` (and ${others} more ${others === 1 ? "pod" : "pods"})`;
  const pod = `pod ${worst.namespace}/${worst.name}${more}`;
  if (isOfTakenBack(worst)) return `somebody takes back what passes write to ${pod}`;
  return `the API server refuses to change ${pod}: ${worst.message}`;
}

/** True if writes to the pod were accepted and then reverted. */
export function isOfTakenBack({ message }: Pick<RefusedPod, "message">): boolean {
  return message === TAKEN_BACK || message === DRAINED_AGAIN;
}

/** Matches the API server's own words, for any pod and image. A policy's words begin with its name. */
const FORBIDDEN = /^(?:Pod (?:"[^"]+" )?is invalid: \[?)?(spec\S*: Forbidden: pod updates may not change fields.*)$/;
/** A refusal that names this field as changeable is about another field, which a webhook has changed. */
const IMAGES = "containers[*].image";

/** True if the API server says that no image of a running pod may change. `message`: one line. */
export function isOfImages(message: string): boolean {
  return FORBIDDEN.test(message) && !message.includes(IMAGES);
}

/** uids of refused pods for which the API server says that no image of a running pod may change. */
export function forbiddenPods(refused: readonly RefusedPod[]): ReadonlySet<string> {
  const forbidden = refused.filter(({ message }) => isOfImages(message));
  return new Set(forbidden.map(({ uid }) => uid));
}

/** Treats all these pods as refused, without retries: Kubernetes' answer for one applies to all. */
export function alsoRefused(refused: readonly RefusedPod[], pods: Iterable<Pod>): readonly RefusedPod[] {
  const first = refused.find(({ message }) => isOfImages(message));
  if (first === undefined) return refused;
  const known = new Set(refused.map(({ uid }) => uid));
  const others = Array.from(pods, ({ metadata: { namespace = "", name = "", uid = "" } = {} }) => ({
    ...first,
    namespace,
    name,
    uid,
  }));
  return [...refused, ...others.filter(({ uid }) => !known.has(uid))];
}

export function formatRefused({ namespace, name, uid, times, until, message }: RefusedPod): string {
  return `${namespace}/${name} ${uid} ${times} ${until} ${message}\n`;
}

export function parseRefused(line: string): RefusedPod | undefined {
  const match = /^([^ /]+)\/([^ /]+) ([^ ]+) (\d{1,6}) ([^ ]+) (.*)$/.exec(line);
  if (!match) return undefined;
  const [, namespace = "", name = "", uid = "", times = "", until = "", message = ""] = match;
  return { namespace, name, uid, times: Number(times), until, message };
}
