/** The Cluster port over HTTPS: one call is one request, objects are raw JSON, every failure is a KubeError. */
import { setTimeout as sleep } from "node:timers/promises";
import type { KubernetesObject } from "../api/kubernetes.ts";
import { DEFAULT_CALL_LIMITS } from "../settings/cluster-settings.ts";
import { type Call, listQuery, pathOf, queryOf } from "./calls.ts";
import { isPassing } from "./error.ts";
import { notAList, notJson, refusal, unreadableAnswer } from "./failure.ts";
import type { Cluster, ObjectList } from "./port.ts";
import { limiter } from "./rate-limit.ts";
import { readKept } from "./read-list.ts";
import { type ClusterAccess, type IncomingAnswer, openTransport, readBody, type Transport } from "./transport.ts";
import { openWatch, watchEvents } from "./watch.ts";
import { createCall, deleteBody, patchCall } from "./write-calls.ts";
import { namespaceShare } from "./write-shares.ts";

const DEFAULT_TIMEOUT_MS = 30_000;
/** Limits of reads: this many retries, and this longest wait before each. */
const MAX_READ_RETRIES = 3;
const MAX_RETRY_AFTER_SECONDS = 5;
const READ_RETRY_SECONDS = 0.1;
/** Trouble that lasts longer than a call may wait. */
const LASTING: ReadonlySet<string> = new Set(["ConnectionRefused", "Timeout", "Unreachable"]);

/**
 * Opens no connection yet. Reads are repeated up to 3 times after 429, 5xx, a closed connection or a cut answer; they
 * obey Retry-After up to 5 seconds. Writes are never repeated.
 */
export function connectCluster(access: ClusterAccess, transport: Transport = openTransport(access)): Cluster {
  const clock = serverClock();
  const { requestTimeoutMs: timeoutMs = DEFAULT_TIMEOUT_MS } = access;
  const send = caller(access, transport, clock.heard);
  return {
    serverTimeMs: clock.now,
    get: (resource, key) =>
      send({ verb: "GET", resource: resource.plural, method: "GET", path: pathOf(resource, key) }),
    list: (resource, options = {}) =>
      send({
        verb: "LIST",
        resource: resource.plural,
        method: "GET",
        path: pathOf(resource, options) + queryOf(listQuery(options)),
        keep: options.keep,
      }),
    create: (resource, object, options = {}) => send(createCall(resource, object, options)),
    patch: (resource, key, patch, options = {}) => send(patchCall(resource, key, patch, options)),
    delete: async (resource, key, options = {}) => {
      await send({
        verb: "DELETE",
        resource: resource.plural,
        method: "DELETE",
        namespace: key.namespace,
        path: pathOf(resource, key),
        body: JSON.stringify(deleteBody(options)),
      });
    },
    watch: (resource, options) =>
      watchEvents(() => openWatch({ access, transport, timeoutMs }, resource, options), options),
  };
}

/** Limit of the clock's jump. A Date further away may come from a proxy, or from one server with a wrong clock. */
const MOST_APART_MS = 60_000;

/**
 * The API server's clock to the second, from the headers of its answers. A sudden change counts once the next answer
 * confirms it.
 */
function serverClock() {
  /** difference to the local clock, which starts with the process */
  let aheadMs: number | undefined;
  let doubtedMs = Number.NaN;
  return {
    heard: ({ date }: IncomingAnswer) => {
      const ms = Date.parse(date ?? "") - performance.now();
      // NaN without a date.
      if (!(ms > 0)) return;
      const expected = [aheadMs ?? Date.now() - performance.now(), doubtedMs];
      const isExpected = expected.some((one) => Math.abs(ms - one) <= MOST_APART_MS);
      if (isExpected) aheadMs = ms;
      doubtedMs = isExpected ? Number.NaN : ms;
    },
    now: () => aheadMs && aheadMs + performance.now(),
  };
}

/** Sends one call in its turn, reports it to the observer, reads the answer as JSON, and repeats a read. `heard`: gets each answer as it begins. */
function caller(
  access: ClusterAccess,
  transport: Transport,
  heard: (answer: IncomingAnswer) => void,
): <T>(call: Call) => Promise<T> {
  const timeoutMs = access.requestTimeoutMs ?? DEFAULT_TIMEOUT_MS;
  const limits = access.limits ?? DEFAULT_CALL_LIMITS;
  const places = limiter(limits, { now: () => performance.now(), sleep });
  const turnOf = ({ namespace }: Call) =>
    namespace === undefined ? places : namespaceShare(places, limits.atOnce, namespace);
  const told = ({ verb, resource }: Call, ms: number, answer: IncomingAnswer | undefined) =>
    access.onRequest?.({
      verb,
      resource,
      code: answer?.code ?? 0,
      ms: Math.round(ms),
      bytes: answer?.bytes() ?? 0,
    });
  return async <T>(call: Call) => {
    const turn = turnOf(call);
    for (let attempt = 0; ; attempt++) {
      await turn.enter();
      const begin = performance.now();
      let answer: IncomingAnswer | undefined;
      let waitSeconds: number | undefined;
      try {
        answer = await transport({ ...call, timeoutMs });
        heard(answer);
        return await readAnswer<T>(answer, call);
      } catch (error) {
        waitSeconds = repeatAfterSeconds(error, call, attempt);
        if (waitSeconds === undefined) throw error;
      } finally {
        turn.leave();
        told(call, performance.now() - begin, answer);
      }
      await sleep(waitSeconds * 1000);
    }
  };
}

function repeatAfterSeconds(error: unknown, call: Call, attempt: number): number | undefined {
  if (call.method !== "GET" || attempt === MAX_READ_RETRIES || !isPassing(error)) return undefined;
  if (LASTING.has(error.reason) && error.code === 0) return undefined;
  // A kept-alive connection may have been closed long ago.
  if (error.reason === "ConnectionReset" && attempt === 0) return 0;
  const seconds = error.code === 429 ? 1 : READ_RETRY_SECONDS * 2 ** attempt;
  return Math.min(error.retryAfterSeconds ?? seconds, MAX_RETRY_AFTER_SECONDS);
}

async function readAnswer<T>(answer: IncomingAnswer, { verb, resource, keep }: Call): Promise<T> {
  const { attempt, code, retryAfter } = answer;
  if (code >= 400) throw refusal(attempt, code, await readBody(answer).catch(() => ""), retryAfter);
  const value =
    keep && code < 300 ? await readKept(answer, (item) => keep(item as KubernetesObject)) : await readJson(answer);
  // Discovery is read as a list without a resource.
  if (verb === "LIST" && resource !== "" && !isList(value)) throw notAList(attempt, code, value);
  return value as T;
}

async function readJson(answer: IncomingAnswer): Promise<unknown> {
  const { attempt, code } = answer;
  const body = await readBody(answer);
  if (code >= 300) throw unreadableAnswer(attempt, code, `is a redirect (${code}), which an API server never sends`);
  try {
    return JSON.parse(body);
  } catch (cause) {
    throw notJson(attempt, code, cause);
  }
}

/** True for a list. Any other value must not count as an empty list, which would mean that everything is gone. */
function isList(value: unknown): boolean {
  const { items, metadata } = (value ?? {}) as Partial<ObjectList<KubernetesObject>>;
  return Array.isArray(items) && items.every(isObject) && isObject(metadata);
}

function isObject(value: unknown): value is KubernetesObject {
  return typeof value === "object" && value !== null;
}
