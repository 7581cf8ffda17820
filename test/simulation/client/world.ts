/**
 * A world of one client of an API server. The client makes random calls over real connections. Proxies reset, cut,
 * throttle and answer them. The judge knows which requests arrived. It checks that the client writes requests as the
 * API reads them, and sends each write once. The client repeats a read only where that can help. The result of a call
 * must be the API server's answer. No error may deny a write that may have been carried out.
 */
import { isDeepStrictEqual } from "node:util";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { noPages, readPages } from "../../../shared/controller/loop/pages.ts";
import { connectCluster } from "../../../shared/kube/client.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../../shared/kube/port.ts";
import { ApiServer } from "../api-server.ts";
import { type Chance, seededChance } from "../chance.ts";
import type { SeedResult } from "../seeds-main.ts";
import { type Call, callsOf } from "./calls.ts";
import { type Arrival, Door, FATES } from "./door.ts";
import { callProblems, type Outcome, watchProblems } from "./judge.ts";
import { WATCH_ENDS } from "./watch-door.ts";

export const CLIENT_TROUBLE = [
  ...FATES,
  ...WATCH_ENDS.map((end) => `watch ${end}`),
  "refused by the API server",
  "list begun again",
] as const;

export type ClientResult = SeedResult<"calls" | "requests" | "writes" | "events">;

const CALLS = 30;
const PODS_AT_FIRST = 8;
export class ClientWorld {
  readonly #seed: number;
  readonly #chance: Chance;
  readonly #server: ApiServer;
  readonly #door: Door;
  readonly #happened: Record<string, number> = {};
  readonly #violations: string[] = [];
  readonly #trace: string[] = [];
  readonly #counts = { calls: 0, requests: 0, writes: 0, events: 0 };
  #pods = 0;

  constructor(seed: number) {
    this.#seed = seed;
    this.#chance = seededChance(seed);
    const scheduler = { nowMs: Date.parse("2026-11-26T00:00:00Z"), after: () => () => undefined };
    const pageSize = this.#chance.pick([2, 3, 500]);
    const random = seededChance(seed, 2).next;
    this.#server = new ApiServer({ scheduler, random, onWrite: () => undefined, pageSize });
    const rate = this.#chance.pick([0, 0.1, 0.3]);
    this.#door = new Door({ server: this.#server, chance: seededChance(seed, 3), rate });
  }

  async run(): Promise<ClientResult> {
    for (let count = 0; count < PODS_AT_FIRST; count++) this.#write();
    this.#server.put("user", SIDECARSETS, { metadata: { name: "mesh", uid: "mesh", generation: 1 } });
    const cluster = connectCluster({ server: await this.#door.open() });
    for (let count = 0; count < CALLS; count++) {
      if (this.#chance.isLucky(0.3)) this.#write();
      await this.#chance.pick([this.#call, this.#call, this.#call, this.#call, this.#watch, this.#pages])(cluster);
    }
    await this.#door.close();
    const [seed, violations, happened, trace] = [this.#seed, this.#violations, this.#happened, this.#trace];
    return { seed, violations, happened, counts: this.#counts, trace };
  }

  /** Creates, changes or deletes a pod in the name of another client. */
  #write(): void {
    const pods = this.#server.all<KubernetesObject>(PODS);
    const kind = this.#chance.pick(["create", "change", "delete"]);
    const pod = pods.length > 0 ? this.#chance.pick(pods) : undefined;
    if (kind === "create" || !pod || pods.length < 2) {
      const metadata = {
        namespace: this.#chance.pick(["shop", "bakery"]),
        name: `pod-${++this.#pods}`,
        uid: `u${this.#pods}`,
      };
      this.#server.put("user", PODS, {
        metadata: { ...metadata, labels: { app: this.#chance.pick(["web", "ä€😀"]) } },
      });
    } else if (kind === "change")
      this.#server.put("user", PODS, {
        ...pod,
        metadata: { ...pod.metadata, annotations: { note: `"é€😀\n${this.#counts.calls}` } },
      });
    else this.#server.remove("user", PODS, pod);
  }

  /** Makes a call, and returns its outcome and every request that arrived at the server. */
  async #made<T>(what: string, call: () => Promise<T>): Promise<{ outcome: Outcome; arrivals: readonly Arrival[] }> {
    this.#counts.calls++;
    const { length } = this.#door.arrivals;
    const outcome: Outcome = await call().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    const arrivals = this.#door.arrivals.slice(length);
    this.#counts.requests += arrivals.length;
    for (const { fate } of arrivals) if (fate) this.#note(fate);
    this.#say(`${what}: ${arrivals.map(({ fate, answer }) => fate ?? answer?.code)} → ${outcome.error ?? "ok"}`);
    if (outcome.error !== undefined && !(outcome.error instanceof KubeError))
      this.#violated(`${what} rejects with ${outcome.error}`);
    return { outcome, arrivals };
  }

  #anyCall(): Call {
    this.#write();
    const pods = this.#server.all<KubernetesObject>(PODS);
    const { namespace = "", name = "", uid = "", resourceVersion = "" } = this.#chance.pick(pods).metadata ?? {};
    // Sometimes the pod does not exist, or has another uid.
    const key = {
      namespace,
      name: this.#chance.isLucky(0.1) ? "a b?ä" : name,
      uid: this.#chance.isLucky(0.2) ? "another" : uid,
      resourceVersion: this.#chance.isLucky(0.2) ? "3" : resourceVersion,
    };
    return this.#chance.pick(callsOf(key, this.#chance));
  }

  #call = async (cluster: Cluster): Promise<void> => {
    const call = this.#anyCall();
    const { outcome, arrivals } = await this.#made(call.what, () => call.run(cluster));
    if (call.isWrite) this.#counts.writes++;
    const last = arrivals.at(-1);
    if ((last?.answer?.code ?? 0) >= 400 && !last?.fate) this.#note("refused by the API server");
    for (const problem of callProblems(call, arrivals, outcome)) this.#violated(problem);
  };

  #watch = async (cluster: Cluster): Promise<void> => {
    const from = this.#server.resourceVersion;
    for (let count = this.#chance.below(5); count > 0; count--) this.#write();
    const events: unknown[] = [];
    const { outcome, arrivals } = await this.#made("a watch", async () => {
      for await (const event of cluster.watch(PODS, { resourceVersion: from, timeoutSeconds: 60 })) events.push(event);
    });
    this.#counts.events += events.length;
    for (const { watch } of arrivals) if (watch) this.#note(`watch ${watch.end}`);
    const seen = { from, events, changes: this.#changesSince(Number(from)) };
    for (const problem of watchProblems(seen, arrivals, outcome)) this.#violated(problem);
  };

  #changesSince(version: number): number {
    return this.#server
      .all<KubernetesObject>(PODS)
      .filter(({ metadata }) => Number(metadata?.resourceVersion) > version).length;
  }

  /** Lists all pages while other clients write and tokens expire. The list must show the objects at its version. */
  #pages = async (cluster: Cluster): Promise<void> => {
    const namespace = this.#chance.isLucky(0.5) ? undefined : "shop";
    const options = namespace === undefined ? {} : { namespace };
    const expiring = this.#chance.isLucky(0.5) ? this.#chance.between(1, 3) : 0;
    const snapshots = new Map<string, readonly KubernetesObject[]>();
    let lists = 0;
    const watched: Cluster = {
      ...cluster,
      list: async (resource, asked) => {
        if (asked?.continue === undefined) lists++;
        else if (lists <= expiring) this.#server.compact();
        if (this.#chance.isLucky(0.5)) this.#write();
        // No other client writes during the call.
        snapshots.set(this.#server.resourceVersion, this.#server.all<KubernetesObject>(PODS));
        return cluster.list<never>(resource, asked);
      },
    };
    const listing = { resource: PODS, options, keep: (pod: KubernetesObject) => pod.metadata?.name };
    const { outcome } = await this.#made("a list", () => readPages(watched, listing, noPages<string>()));
    if (lists > 1) this.#note("list begun again");
    if (outcome.error !== undefined) return;
    const { items, resourceVersion } = outcome.value as ReturnType<typeof noPages<string>>;
    const there = snapshots
      .get(resourceVersion)
      ?.filter(({ metadata }) => !namespace || metadata?.namespace === namespace);
    const wanted = there?.map(({ metadata }) => metadata?.name).sort();
    if (!isDeepStrictEqual([...items].sort(), wanted))
      this.#violated(
        `a list of ${resourceVersion} has ${items.join()}, there were ${wanted?.join() ?? "none of that version"}`,
      );
  };

  #note(trouble: string): void {
    this.#happened[trouble] = (this.#happened[trouble] ?? 0) + 1;
  }

  #say(line: string): void {
    this.#trace.push(line);
  }

  #violated(what: string): void {
    this.#violations.push(what);
  }
}
