/** Moments of a rollout at which the tests kill something, from its first list to its last status. */
import type { SidecarSetStatus } from "../../../shared/api/sidecarset.ts";
import type { Exchange, ProxiedCall } from "./fault-proxy.ts";

interface Seen {
  /** paths of pods that were written to; a write that has not ended counts */
  readonly pods: Set<string>;
  /** paths of SidecarSets whose status says that all work is done */
  readonly finished: Set<string>;
}

interface Expected {
  readonly pods: number;
  readonly sidecarSets: number;
  /** number of updated pods of each SidecarSet at the end */
  readonly updatedEach: number;
}

type IsMet = (call: ProxiedCall, seen: Seen, expected: Expected) => boolean;

const isCalled =
  (name: string): IsMet =>
  (call) =>
    call.name === name;

const POINTS: Readonly<Record<string, IsMet>> = {
  "the first list of SidecarSets": isCalled("LIST sidecarsets"),
  "the first list of pods": isCalled("LIST pods"),
  "the first revision": isCalled("CREATE controllerrevisions"),
  "the first ledger": isCalled("PATCH configmaps"),
  "the first status": isCalled("PATCH sidecarsets/status"),
  "the first pod": isCalled("PATCH pods"),
  "the first watch": isCalled("WATCH pods"),
  "half of the pods": ({ name }, seen, { pods }) => name === "PATCH pods" && 2 * seen.pods.size >= pods,
  "the last pod": ({ name }, seen, { pods }) => name === "PATCH pods" && seen.pods.size === pods,
  "the last status": (_, seen, { sidecarSets }) => seen.finished.size === sidecarSets,
};

type PointName = keyof typeof POINTS;
export const POINT_NAMES: readonly PointName[] = Object.keys(POINTS);

function isFinal(body: string, { updatedEach }: Expected): boolean {
  const { status } = JSON.parse(body) as { readonly status: SidecarSetStatus };
  return status.updatedReadyPods === updatedEach && status.updatedPods === updatedEach;
}

function note({ name, url, body }: ProxiedCall, seen: Seen, expected: Expected): void {
  if (name === "PATCH pods") seen.pods.add(url.pathname);
  if (name === "PATCH sidecarsets/status" && isFinal(body, expected)) seen.finished.add(url.pathname);
}

interface Kills {
  /** returns the fault that the proxy causes */
  readonly disturb: (exchange: Exchange) => boolean;
  /** Resolves at the first point; calls wait there until `begin`. */
  readonly ready: () => Promise<void>;
  readonly begin: () => void;
  /** names of the points in the order in which they came */
  readonly met: readonly PointName[];
  /** Resolves when the last killed process runs again. */
  readonly back: () => Promise<void>;
}

interface Plan {
  /** the points; the first must come first */
  readonly points: readonly PointName[];
  readonly expected: Expected;
  /** Kills a process, and resolves when it runs again. */
  readonly kill: () => Promise<void>;
  /**
   * number of the wave; the killed calls alternate between "carried out without an answer" and "not ended", and each
   * wave starts with the other kind
   */
  readonly wave: number;
}

/** Kills once at each point, one after the other. No call passes until the killed process runs again. */
export function killsAt({ points: [first = "", ...others], expected, kill, wave }: Plan): Kills {
  const seen: Seen = { pods: new Set(), finished: new Set() };
  const ready = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const left = new Set([first]);
  const met: PointName[] = [];
  let state: "armed" | "striking" | "killing" = "armed";
  let back: Promise<void> = Promise.resolve();
  const strike = async (exchange: Exchange, isCarriedOutFirst: boolean) => {
    ready.resolve();
    await begun.promise;
    for (const name of met.length === 1 ? others : []) left.add(name);
    const isWatch = exchange.call.name.startsWith("WATCH ");
    const carried = isWatch ? undefined : exchange.carryOut().catch(() => undefined);
    if (isCarriedOutFirst) await carried;
    state = "killing";
    const killed = kill();
    await carried;
    exchange.cut();
    await killed.finally(() => {
      state = "armed";
    });
  };
  const disturb = (exchange: Exchange) => {
    note(exchange.call, seen, expected);
    const point = [...left].find((name) => POINTS[name]?.(exchange.call, seen, expected));
    // Other calls continue meanwhile. A point among them will come again.
    if (state === "striking" && point === undefined) return false;
    if (state !== "armed") exchange.cut();
    if (state !== "armed" || point === undefined) return state !== "armed";
    left.delete(point);
    met.push(point);
    state = "striking";
    back = strike(exchange, (met.length + wave) % 2 === 0);
    back.catch(() => undefined);
    return true;
  };
  return { disturb, ready: () => ready.promise, begin: () => begun.resolve(), met, back: () => back };
}
