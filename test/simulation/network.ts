/** The Cluster port of one process. Every call takes time, and may fail on the way to the server or back. */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { isLater } from "../../shared/go/resource-version.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import {
  type Cluster,
  EVENTS,
  type ListOptions,
  type ObjectList,
  type Patch,
  PODS,
  type Resource,
} from "../../shared/kube/port.ts";
import { type ApiServer, callOf, type Eviction } from "./api-server.ts";
import { type Chance, seededChance } from "./chance.ts";
import { FAILURES, forbidden } from "./failures.ts";
import { countFault, type FaultCounts, type NetworkFault } from "./faults.ts";
import type { Hinder, Hindrance } from "./hindrances.ts";
import type { PassJudge } from "./pass-judge.ts";
import type { Process } from "./process.ts";
import type { Scenario } from "./scenario.ts";
import type { Timeline } from "./scheduler.ts";
import { openWatch } from "./watch-stream.ts";
import { forSidecarSetOfNow } from "./work-of.ts";

/** The network's present faults, which the world changes. */
export interface Weather {
  /** share of calls that fail, in [0, 1] */
  faultRate: number;
  readonly faults: readonly Exclude<NetworkFault, "403 in one namespace">[];
  /** share of calls that take seconds, on the way to the server or back */
  slowRate: number;
  /** the namespace where every call is answered with 403 */
  forbiddenNamespace: string | undefined;
  /** share of list pages whose token is answered as expired */
  expireRate: number;
  /** share of watch events that meet a fault: sent twice, late, or the last before a break */
  eventRate: number;
  /** the replicas that lists of pods may come from; absent: no list is stale */
  lag?: Scenario["lag"] | undefined;
  /** returns the obstacle to a call; absent: there are no obstacles */
  hinder?: Hinder | undefined;
}

/** A call before it is sent. */
export interface Sending {
  readonly process: Process;
  /** the number of this call among all calls of the process, from 0 */
  readonly index: number;
  /** the number of this call among calls with the same `call`, from 0 */
  readonly nth: number;
  /** verb and resource, such as "PATCH pods" */
  readonly call: string;
}

/** The fault of the process at a call. "late": the process dies, and the call still arrives `lateMs` later. */
export type Blow =
  | { readonly kind: "killBefore" | "killAfter" }
  | { readonly kind: "killLate"; readonly lateMs: number }
  | { readonly kind: "freezeBefore" | "freezeAfter"; readonly ms: number };

export interface NetworkSite {
  readonly scheduler: Timeline;
  readonly server: ApiServer;
  readonly chance: Chance;
  readonly counts: FaultCounts;
  readonly weather: Weather;
  readonly trace: (line: string) => void;
  readonly violated: (what: string) => void;
  readonly blowAt: (sending: Sending) => Blow | undefined;
  /** judges the calls of the process and their answers; absent: nobody does */
  readonly judge?: Pick<PassJudge, "sends" | "hears" | "hearsYes">;
  /** Delays a call until it calls `go`; absent: the call is sent at once. */
  readonly gate?: (sending: Sending, go: () => void) => void;
}

interface Outgoing {
  readonly method: string;
  readonly call: string;
  readonly target: string;
  readonly namespace: string | undefined;
  /** runs the call without storing a change; absent: the call never writes */
  readonly rehearse?: () => Promise<unknown>;
}

/** The random stream for calls whose answers no other call needs. */
const TELLING_STREAM = 61;

export function connectProcess(site: NetworkSite, process: Process): Cluster {
  const { server } = site;
  const { name } = process;
  const network = new Network(site, process);
  // Announcements draw from their own stream, so the other calls of a seed meet the same faults.
  const aside = { ...site, chance: seededChance(0, TELLING_STREAM), blowAt: () => undefined };
  const telling = new Network(aside, process);
  const told = new Set<string>();
  const evict = <T>(outgoing: Outgoing, object: KubernetesObject) => {
    const call = `${outgoing.call}/eviction`;
    const { uid } = (object as Eviction).deleteOptions?.preconditions ?? {};
    if (!uid) site.violated(`${name}: ${call} ${object.metadata?.name} names no uid`);
    return network.send<T>(
      { ...outgoing, call },
      forSidecarSetOfNow(() => server.evict(name, object) as Promise<never>),
    );
  };
  const to = (verb: string, { plural }: Resource, key: { readonly namespace?: string; readonly name?: string }) => ({
    method: METHODS[verb] ?? verb,
    call: `${verb} ${plural}`,
    target: `${key.namespace ?? ""}/${key.name ?? ""}`,
    namespace: key.namespace,
  });
  return {
    serverTimeMs: () => site.scheduler.nowMs,
    get: (resource, key) => network.send(to("GET", resource, key), () => server.get(name, resource, key)),
    list: (resource, options = {}) => network.list(to("LIST", resource, options), resource, options) as Promise<never>,
    create: (resource, object, options) => {
      const outgoing = to("CREATE", resource, object.metadata ?? {});
      if (options?.subresource === "eviction") return evict(outgoing, object);
      const rehearse = () => server.create(name, resource, object, true);
      const by = isTelling(object) ? telling : network;
      if (by === telling) told.add(outgoing.target);
      return by.send({ ...outgoing, rehearse }, () => server.create(name, resource, object, options?.dryRun));
    },
    patch: (resource, key, patch, options = {}) => {
      const outgoing = to("PATCH", resource, key);
      const { subresource = "", answer, dryRun = false } = options;
      const call = subresource ? `${outgoing.call}/${subresource}` : outgoing.call;
      const received = { ...callOf(name, resource, key, subresource), dryRun };
      if (NAMED_BY_UID.has(resource.plural) && !namesUid(patch))
        site.violated(`${name}: ${call} ${key.name} names no uid`);
      const rehearse = () => server.patch({ ...received, dryRun: true }, patch, answer);
      const by = told.has(outgoing.target) && resource === EVENTS ? telling : network;
      return by.send({ ...outgoing, call, rehearse }, () => server.patch(received, patch, answer));
    },
    delete: (resource, key, options = {}) =>
      network.send(to("DELETE", resource, key), () => server.delete(name, resource, key, options)),
    watch: <T extends KubernetesObject>(resource: Resource, options: Parameters<Cluster["watch"]>[1]) =>
      openWatch<T>({ ...site, process }, resource, options, (open) =>
        network.send(to("WATCH", resource, options), open),
      ),
  };
}

function isTelling(object: object): boolean {
  return "reason" in object && object.reason === "SidecarUpdated";
}

const NAMED_BY_UID: ReadonlySet<string> = new Set([PODS.plural, "deployments", "statefulsets", "daemonsets"]);

/** True if the patch tests the uid. A patch without the test could reach a new pod of the same name. */
function namesUid(patch: Patch): boolean {
  if (patch.type === "json") return patch.operations.some(({ op, path }) => op === "test" && path === "/metadata/uid");
  return Boolean((patch.body as { readonly metadata?: { readonly uid?: string } }).metadata?.uid);
}

const METHODS: Readonly<Record<string, string>> = { LIST: "GET", WATCH: "GET", CREATE: "POST" };

class Network {
  readonly #site: NetworkSite;
  readonly #process: Process;
  #calls = 0;
  readonly #nth = new Map<string, number>();

  constructor(site: NetworkSite, process: Process) {
    this.#site = site;
    this.#process = process;
  }

  send<T>(outgoing: Outgoing, apply: () => Promise<T>): Promise<T> {
    const { gate = (_, go) => go(), blowAt } = this.#site;
    const { call, target } = outgoing;
    this.#site.judge?.sends(call, target);
    const nth = this.#nth.get(call) ?? 0;
    this.#nth.set(call, nth + 1);
    const sending: Sending = { process: this.#process, index: this.#calls++, nth, call };
    return new Promise((resolve, reject) => {
      if (this.#process.isKilled) return;
      const hear = (error: unknown) => {
        this.#site.judge?.hears(call, target, error);
        reject(error);
      };
      const hearYes = (value: T) => {
        this.#site.judge?.hearsYes(call, target);
        resolve(value);
      };
      const travel = () => this.#travel(outgoing, apply, { resolve: hearYes, reject: hear });
      const go = () => {
        const blow = this.#process.isKilled ? undefined : blowAt(sending);
        if (blow) this.#strike(blow, outgoing, { travel, arrive: () => void this.#applied(outgoing, apply) });
        else if (!this.#process.isKilled) travel();
      };
      gate(sending, go);
    });
  }

  #strike(blow: Blow, { call }: Outgoing, { travel, arrive }: { travel: () => void; arrive: () => void }): void {
    const { trace, scheduler } = this.#site;
    const { kind } = blow;
    trace(`${this.#process.name} ${kind} ${call}`);
    if (kind === "killAfter" || kind === "freezeAfter") travel();
    if (kind === "killLate") scheduler.after(blow.lateMs, arrive);
    if (kind === "freezeBefore" || kind === "freezeAfter") this.#process.freeze(blow.ms);
    else this.#process.kill();
    if (kind === "freezeBefore") this.#process.deliver(0, travel);
  }

  async list(outgoing: Outgoing, resource: Resource, options: ListOptions): Promise<unknown> {
    const { server, chance, weather, counts } = this.#site;
    const list = await this.send(outgoing, () => {
      if (options.continue !== undefined && chance.isLucky(weather.expireRate)) {
        server.compact();
        countFault(counts, "expired continue token");
      }
      const asOf = resource === PODS && options.continue === undefined ? this.#lagging() : {};
      return server.list<KubernetesObject>(this.#process.name, resource, { ...options, ...asOf });
    });
    if (resource === PODS) this.#countStale(list);
    return list;
  }

  /** Returns the resourceVersion of the replica that answers. */
  #lagging(): Pick<ListOptions, "resourceVersion" | "resourceVersionMatch"> {
    const { server, chance, weather, counts, scheduler } = this.#site;
    if (!weather.lag || !chance.isLucky(weather.lag.rate)) return {};
    countFault(counts, "list of a lagging replica");
    const ms = scheduler.nowMs - chance.between(1, weather.lag.ms);
    return { resourceVersion: server.versionAt(ms), resourceVersionMatch: "Exact" };
  }

  /** Counts the items of a list that have changed between the answer and its arrival. */
  #countStale({ metadata, items }: ObjectList<KubernetesObject>): void {
    const { server, counts } = this.#site;
    const newer = server.all(PODS).filter((pod) => isLater(pod.metadata?.resourceVersion, metadata.resourceVersion));
    if (newer.length === 0) return;
    countFault(counts, "stale list");
    const listed = new Set(items.map((item) => item.metadata?.uid));
    if (newer.some((pod) => !listed.has(pod.metadata?.uid))) countFault(counts, "list without the newest pod");
  }

  #travel<T>(outgoing: Outgoing, apply: () => Promise<T>, promise: Deferred<T>): void {
    const { scheduler, chance, counts, weather } = this.#site;
    const [thereMs, backMs] = this.#latency();
    const { namespace, method } = outgoing;
    if (namespace !== undefined && namespace === weather.forbiddenNamespace) {
      countFault(counts, "403 in one namespace");
      this.#process.deliver(thereMs + backMs, () => promise.reject(forbidden(method, namespace)));
      return;
    }
    const fault = chance.isLucky(weather.faultRate) ? chance.pick(weather.faults) : undefined;
    const hindrance = fault ? undefined : weather.hinder?.(outgoing);
    if (hindrance)
      scheduler.after(thereMs, async () =>
        this.#answer(backMs + (hindrance.waitMs ?? 0), await this.#hindered(hindrance, outgoing), promise),
      );
    else if (fault) this.#lose(fault, outgoing, apply, promise);
    else scheduler.after(thereMs, async () => this.#answer(backMs, await this.#applied(outgoing, apply), promise));
  }

  #lose<T>(fault: keyof typeof FAILURES, outgoing: Outgoing, apply: () => Promise<T>, { reject }: Deferred<T>): void {
    const { scheduler, chance, counts, trace } = this.#site;
    const { isApplied, afterMs = chance.between(1, 50), error } = FAILURES[fault];
    countFault(counts, fault);
    trace(`${this.#process.name} ${outgoing.call} ${outgoing.target} ${fault}`);
    if (isApplied === true || (isApplied === "perhaps" && chance.isLucky(0.5))) {
      // The call may arrive long after the client gave up.
      const lateMs = chance.isLucky(0.2) ? chance.between(1, 90_000) : chance.between(1, Math.max(1, afterMs - 1));
      scheduler.after(lateMs, () => void this.#applied(outgoing, apply));
    }
    this.#process.deliver(afterMs, () => reject(error(outgoing.method)));
  }

  async #hindered({ fault, isAdmission, error }: Hindrance, outgoing: Outgoing): Promise<Answered<never>> {
    const { trace, counts } = this.#site;
    const { call, target, method, rehearse } = outgoing;
    const tried = isAdmission && rehearse ? await this.#applied(outgoing, rehearse) : undefined;
    if (tried && "error" in tried) return tried;
    countFault(counts, fault);
    trace(`${this.#process.name} ${call} ${target} ${fault}`);
    return { error: error(method) };
  }

  async #applied<T>({ call, target }: Outgoing, apply: () => Promise<T>): Promise<Answered<T>> {
    const { trace, counts } = this.#site;
    try {
      const value = await apply();
      trace(`${this.#process.name} ${call} ${target} ok`);
      return { value };
    } catch (error) {
      if (!isKubeError(error)) throw error;
      trace(`${this.#process.name} ${call} ${target} ${error.code}`);
      if (error.code === 409) countFault(counts, "409 conflict");
      if (error.code === 422) countFault(counts, "422 on a test");
      return { error };
    }
  }

  #answer<T>(backMs: number, answered: Answered<T>, { resolve, reject }: Deferred<T>): void {
    this.#process.deliver(backMs, () => {
      if ("error" in answered) reject(answered.error);
      else resolve(answered.value);
    });
  }

  #latency(): readonly [there: number, back: number] {
    const { chance, weather } = this.#site;
    const usual = [chance.between(1, 20), chance.between(1, 20)] as const;
    if (!chance.isLucky(weather.slowRate)) return usual;
    const slowMs = chance.between(500, 25_000);
    return chance.isLucky(0.5) ? [slowMs, usual[1]] : [usual[0], slowMs];
  }
}

type Answered<T> = { readonly value: T } | { readonly error: unknown };

interface Deferred<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}
