/** An API server without controllers: only the test and the tested code change objects. */

import type { Status } from "../../shared/api/admission.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { errorOfStatus } from "../../shared/kube/failure.ts";
import {
  type Cluster,
  type ListOptions,
  NAMESPACES,
  type Resource,
  type WatchEvent,
  type WatchOptions,
} from "../../shared/kube/port.ts";
import { ApiServer, callOf } from "../simulation/api-server.ts";
import { seededChance } from "../simulation/chance.ts";
import type { SteppedClock } from "./stepped-clock.ts";

const WRITER = "what is tested";

export interface BareCluster {
  readonly cluster: Cluster;
  readonly server: ApiServer;
  /** times and kinds of calls, such as "LIST pods", "PATCH pods/status" or "CREATE pods refused" */
  readonly calls: readonly (readonly [atMs: number, call: string])[];
  /** patches whose answer the caller requested in full, such as "PATCH sidecarsets/status" */
  readonly answeredWhole: readonly string[];
  /** options of each LIST */
  readonly lists: readonly ListOptions[];
  /** options of each WATCH */
  readonly watches: readonly WatchOptions[];
  /** ends the open watches with this error */
  readonly breakWatches: (error: Error) => void;
}

/** Returns an error that replaces the answer; `nth` counts calls of the same kind from 1. */
export type Refuse = (call: string, nth: number) => KubeError | undefined;

export const refusal = (code: number, reason: string) => new KubeError(reason, { code, reason });

/** A cluster with the namespaces "shop" and "kruise-system". */
export function bareCluster({ clock }: SteppedClock, refuse: Refuse = () => undefined): BareCluster {
  const scheduler = { nowMs: clock.epochMs(), after: () => () => undefined };
  const server = new ApiServer({ scheduler, random: seededChance(1).next, onWrite: () => undefined, pageSize: 1_000 });
  for (const name of ["shop", "kruise-system"]) server.put("test", NAMESPACES, { metadata: { name, uid: name } });
  const calls: (readonly [number, string])[] = [];
  const answeredWhole: string[] = [];
  const lists: ListOptions[] = [];
  const watches: WatchOptions[] = [];
  const open = new Set<Inbox>();
  const counts = new Map<string, number>();
  const asked = <T>(call: string, answer: () => Promise<T>): Promise<T> => {
    const nth = (counts.get(call) ?? 0) + 1;
    counts.set(call, nth);
    const instead = refuse(call, nth);
    calls.push([clock.now(), instead ? `${call} refused` : call]);
    return instead ? Promise.reject(instead) : answer();
  };
  const cluster: Cluster = {
    get: (resource, key) => asked(`GET ${resource.plural}`, () => server.get(WRITER, resource, key)),
    list: (resource, options = {}) => {
      lists.push(options);
      return asked(`LIST ${resource.plural}`, () => server.list(WRITER, resource, options));
    },
    create: (resource, object, { dryRun = false, subresource } = {}) =>
      asked(`CREATE ${resource.plural}${subresource ? `/${subresource}` : ""}`, () =>
        subresource
          ? (server.evict(WRITER, object) as Promise<never>)
          : server.create(WRITER, resource, object, dryRun),
      ),
    patch: (resource, key, patch, { subresource = "", answer } = {}) => {
      const call = `PATCH ${resource.plural}${subresource && `/${subresource}`}`;
      if (answer !== "metadata") answeredWhole.push(call);
      return asked(call, () => server.patch(callOf(WRITER, resource, key, subresource), patch, answer));
    },
    delete: (resource, key, options = {}) =>
      asked(`DELETE ${resource.plural}`, () => server.delete(WRITER, resource, key, options)),
    watch: async function* <T extends KubernetesObject>(resource: Resource, options: WatchOptions) {
      watches.push(options);
      const inbox = new Inbox();
      open.add(inbox);
      const session = await asked(`WATCH ${resource.plural}`, async () =>
        server.watch(WRITER, resource, options, inbox),
      );
      options.signal?.addEventListener("abort", () => inbox.end(), { once: true });
      try {
        for await (const event of inbox.read()) yield event as WatchEvent<T>;
      } finally {
        session.close();
        open.delete(inbox);
      }
    },
  };
  const breakWatches = (error: Error) => {
    for (const inbox of open) inbox.break(error);
  };
  return { cluster, server, calls, answeredWhole, lists, watches, breakWatches };
}

type Received = { readonly type: string; readonly object: unknown };

class Inbox {
  readonly #received: (Received | Error | undefined)[] = [];
  #news = Promise.withResolvers<void>();

  #push(one: Received | Error | undefined): void {
    this.#received.push(one);
    this.#news.resolve();
  }

  event(event: Received): void {
    this.#push(event.type === "ERROR" ? errorOfStatus(event.object as Status, 500) : event);
  }

  end(): void {
    this.#push(undefined);
  }

  break(error: Error): void {
    this.#push(error);
  }

  async *read(): AsyncGenerator<Received> {
    for (;;) {
      while (this.#received.length > 0) {
        const one = this.#received.shift();
        if (!one) return;
        if (one instanceof Error) throw one;
        yield one;
      }
      await this.#news.promise;
      this.#news = Promise.withResolvers();
    }
  }
}
