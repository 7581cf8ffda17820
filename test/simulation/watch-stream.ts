/**
 * A watch as a process sees it: events come in order, each after a delay. Some are late, some come twice, and then the
 * watch breaks.
 */
import type { WatchSession } from "../../infra/local/storage/read.ts";
import type { Status } from "../../shared/api/admission.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { errorOfStatus } from "../../shared/kube/failure.ts";
import type { Resource, WatchEvent, WatchOptions } from "../../shared/kube/port.ts";
import { countFault } from "./faults.ts";
import type { NetworkSite } from "./network.ts";
import type { Process } from "./process.ts";

interface Inbox<T> {
  readonly events: (WatchEvent<T> | KubeError)[];
  isEnded: boolean;
  wake: () => void;
}

type WatchSite = NetworkSite & { readonly process: Process };

export async function* openWatch<T extends KubernetesObject>(
  site: WatchSite,
  resource: Resource,
  options: WatchOptions,
  send: (open: () => Promise<WatchSession>) => Promise<WatchSession>,
): AsyncGenerator<WatchEvent<T>> {
  const { signal } = options;
  if (signal?.aborted) return;
  const inbox: Inbox<T> = { events: [], isEnded: false, wake: () => undefined };
  const sessions: WatchSession[] = [];
  const stop = () => {
    inbox.isEnded = true;
    for (const session of sessions) session.close();
    inbox.wake();
  };
  signal?.addEventListener("abort", stop, { once: true });
  sessions.push(await send(async () => site.server.watch(site.process.name, resource, options, sinkOf(site, inbox))));
  options.onOpen?.();
  if (inbox.isEnded) stop();
  try {
    yield* read(inbox);
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}

async function* read<T>(inbox: Inbox<T>): AsyncGenerator<WatchEvent<T>> {
  for (;;) {
    const event = inbox.events.shift();
    if (event instanceof KubeError) throw event;
    if (event) yield event;
    else if (inbox.isEnded) return;
    else
      await new Promise<void>((resolve) => {
        inbox.wake = resolve;
      });
  }
}

function sinkOf<T>({ scheduler, process, chance, weather, counts }: WatchSite, inbox: Inbox<T>) {
  let lastAtMs = 0;
  const onTheWay: (() => void)[] = [];
  const push = (delayMs: number, receive: () => void) => {
    lastAtMs = Math.max(lastAtMs, scheduler.nowMs + delayMs);
    onTheWay.push(receive);
    process.deliver(lastAtMs - scheduler.nowMs, () => {
      // Timers of real time that end in the same millisecond may run in any order.
      const next = onTheWay.shift();
      if (inbox.isEnded) return;
      next?.();
      inbox.wake();
    });
  };
  const end = (delayMs: number) =>
    push(delayMs, () => {
      inbox.isEnded = true;
    });
  const strikes = (fault: "late event" | "duplicate event" | "broken watch") => {
    const isStruck = chance.isLucky(weather.eventRate);
    if (isStruck) countFault(counts, fault);
    return isStruck;
  };
  return {
    event: (event: ServerEvent) => {
      const delayMs = strikes("late event") ? chance.between(1_000, 20_000) : chance.between(1, 30);
      const received = receivedOf<T>(event);
      push(delayMs, () => inbox.events.push(received));
      if (strikes("duplicate event")) push(delayMs, () => inbox.events.push(received));
      if (strikes("broken watch")) end(delayMs);
    },
    end: () => end(1),
  };
}

interface ServerEvent {
  readonly type: string;
  readonly object: unknown;
}

function receivedOf<T>({ type, object }: ServerEvent): WatchEvent<T> | KubeError {
  return type === "ERROR" ? errorOfStatus(object as Status, 500) : ({ type, object } as WatchEvent<T>);
}
