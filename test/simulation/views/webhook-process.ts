/**
 * A process that answers reviews, with its connection to the API server. Its calls fail, are delayed, or get older
 * lists, and it freezes.
 */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { ANNOUNCEMENTS_CONFIG_MAP, KRUISE_NAMESPACE, WEBHOOK_CONFIGURATION } from "../../../shared/api/names.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import { type Cluster, type ListOptions, type ObjectKey, type Patch, SIDECARSETS } from "../../../shared/kube/port.ts";
import type { Answerer } from "../../../shared/webhook/server/http.ts";
import type { Chance } from "../chance.ts";
import type { Scheduler } from "../scheduler.ts";
import type { ObjectStates, Place } from "./object-states.ts";
import { lostBy } from "./registration-judge.ts";

/** Rights of the process: to write announcements and the registration, only the registration, or nothing. */
type Rights = "all" | "registration" | "none";

export interface WebhookProcess {
  readonly name: string;
  readonly rights: Rights;
  /** error of the process' clock in milliseconds */
  readonly skewMs: number;
  /** virtual time until which the process is frozen */
  frozenUntil: number;
  /** virtual time of the process' last fault */
  troubledAt: number;
  calls: number;
  app: Answerer;
}

export interface Surface {
  readonly scheduler: Scheduler;
  readonly states: ObjectStates;
  readonly chance: Chance;
  readonly rates: { trouble: number; slow: number; stale: number };
  readonly note: (
    trouble: "call failed" | "answer lost" | "call held up" | "list from before" | "process frozen",
  ) => void;
  readonly say: (line: string) => void;
  readonly violated: (what: string) => void;
}

interface Kind {
  readonly plural: string;
}

export function clusterOf(surface: Surface, process: WebhookProcess): Cluster {
  const { states } = surface;
  const call = <T>(what: string, carryOut: () => unknown) => callBy(surface, process, what, carryOut) as Promise<T>;
  const cannot = async (what: string): Promise<never> => {
    surface.violated(`${process.name} ${what}`);
    throw new KubeError(`${what} is forbidden`, { code: 403, reason: "Forbidden" });
  };
  return {
    get: ({ plural }: Kind, key: ObjectKey) => call(`GET ${plural} ${key.name}`, () => states.get({ plural, ...key })),
    list: ({ plural }: Kind, options: ListOptions = {}) =>
      call(`LIST ${plural}`, () => listed(surface, process, plural, options)),
    patch: ({ plural }: Kind, key: ObjectKey, patch: Patch, { dryRun = false } = {}) => {
      const place = { plural, ...key };
      const problem = dryRun ? undefined : writeProblem(process.rights, place, patch);
      if (problem !== undefined || patch.type !== "json") return cannot(`writes ${plural} ${key.name}: ${problem}`);
      return call(`PATCH ${plural} ${key.name}`, () => {
        const before = states.get(place);
        const after = states.patch(place, patch.operations);
        const lost = key.name === WEBHOOK_CONFIGURATION ? lostBy(before, after) : undefined;
        if (lost !== undefined) surface.violated(`${process.name} changes ${lost} of the registration`);
        return after;
      });
    },
    create: ({ plural }: Kind) => cannot(`creates ${plural}`),
    delete: ({ plural }: Kind) => cannot(`deletes ${plural}`),
    watch: () => {
      throw new Error("no webhook watches");
    },
  } as Cluster;
}

function writeProblem(rights: Rights, { plural, namespace, name }: Place, patch: Patch): string | undefined {
  const isRegistration = plural === "mutatingwebhookconfigurations" && name === WEBHOOK_CONFIGURATION;
  const isNotice = plural === "configmaps" && name === ANNOUNCEMENTS_CONFIG_MAP && namespace === KRUISE_NAMESPACE;
  if (rights === "none" || !(isRegistration || (isNotice && rights === "all"))) return "it is not to write that";
  const operations = patch.type === "json" ? patch.operations : [];
  const isSafe = operations.some(({ op, path }) => op === "test" && path === "/metadata/resourceVersion");
  return isSafe ? undefined : "whatever others wrote meanwhile";
}

function listed(surface: Surface, process: WebhookProcess, plural: string, { namespace, labelSelector }: ListOptions) {
  const { states, chance, rates, note, scheduler } = surface;
  const isStale = plural === SIDECARSETS.plural && chance.isLucky(rates.stale);
  if (isStale) {
    note("list from before");
    process.troubledAt = scheduler.nowMs;
  }
  const at = isStale ? states.version - chance.between(1, 4) : states.version;
  const wanted = labelSelector === undefined ? [] : labelSelector.split(",").map((one) => one.split("="));
  const isWanted = ({ metadata }: KubernetesObject) =>
    (namespace === undefined || metadata?.namespace === namespace) &&
    wanted.every(([key = "", value]) => metadata?.labels?.[key] === value);
  const items = states.list(plural, at).filter(isWanted);
  return { metadata: { resourceVersion: String(at) }, items };
}

/** A call takes time in both directions. A frozen process gets its answer when it continues. */
async function callBy(surface: Surface, process: WebhookProcess, what: string, carryOut: () => unknown) {
  const { scheduler, chance, rates, note, say } = surface;
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => void scheduler.after(ms, resolve));
  const trouble = (kind: Parameters<Surface["note"]>[0]) => {
    note(kind);
    process.troubledAt = scheduler.nowMs;
  };
  process.calls++;
  const isHeld = chance.isLucky(rates.slow);
  if (isHeld) trouble("call held up");
  await sleep(isHeld ? chance.between(500, 5_000) : chance.between(0, 4));
  if (chance.isLucky(rates.trouble)) {
    trouble("call failed");
    throw noAnswer(what);
  }
  say(`${process.name} ${what}`);
  const answer = carryOut();
  await sleep(isHeld ? chance.between(0, 3_000) : chance.between(0, 4));
  if (chance.isLucky(rates.trouble)) {
    trouble("answer lost");
    throw noAnswer(what);
  }
  if (chance.isLucky(rates.slow / 3)) {
    trouble("process frozen");
    process.frozenUntil = scheduler.nowMs + chance.between(100, 20_000);
  }
  await sleep(process.frozenUntil - scheduler.nowMs);
  if (isHeld || process.frozenUntil > 0) process.troubledAt = Math.max(process.troubledAt, process.frozenUntil);
  return answer;
}

function noAnswer(what: string): KubeError {
  return new KubeError(`${what}: no answer`, { code: 0, reason: "ConnectionReset", isOutcomeKnown: false });
}
