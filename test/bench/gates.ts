/**
 * Limits of a short benchmark. They use only ratios within one run, and counts, because a busy machine changes these
 * little.
 */
import type { ClustersFigures } from "./clusters/measure-clusters.ts";
import type { FirstDecisionFigures } from "./first-decision/measure-first-decision.ts";
import type { Growth } from "./growth/measure-growth.ts";
import type { MemoryFigures } from "./memory/measure-memory.ts";
import type { RolloutFigures } from "./rollout/measure-rollout.ts";
import type { PassesFigures, WebhookFigures } from "./webhook/measure-webhook.ts";

export interface Gate {
  readonly what: string;
  readonly is: number;
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** Returns the row with this number of callers. @throws Error if it was not measured */
function ours({ rows }: WebhookFigures, callers: number) {
  const row = rows.find((one) => one.subject === "ours" && one.callers === callers);
  if (row === undefined) throw new Error(`the webhook was not measured with ${callers} callers`);
  return row;
}

/**
 * Measured: 0.9 to 1.1 and 1.2 to 1.4 of the minimal injector's requests. Its computing: 1.0 to 1.4 and 0.8. Its p50:
 * 1.0.
 */
export function webhookGates(figures: WebhookFigures): readonly Gate[] {
  const [alone, many] = [ours(figures, 1), ours(figures, 32)];
  const ofMinimal = (what: string) => `${what}, of the minimal injector's`;
  return [
    { what: "patch for one simple container, bytes", is: alone.patchBytes, atMost: 1_500 },
    { what: ofMinimal("p50 of one caller"), is: alone.ofMinimal.p50, atMost: 1.5 },
    { what: ofMinimal("requests a second of one caller"), is: alone.ofMinimal.requestsPerSecond, atLeast: 0.75 },
    { what: ofMinimal("computing for one caller"), is: alone.ofMinimal.cpu, atMost: 2 },
    { what: ofMinimal("requests a second of 32 callers"), is: many.ofMinimal.requestsPerSecond, atLeast: 0.85 },
    { what: ofMinimal("computing for 32 callers"), is: many.ofMinimal.cpu, atMost: 1.35 },
    {
      what: "p50 of one caller above that of a list kept for a second, in empty GETs",
      is: alone.ofKept?.emptyGets ?? Number.NaN,
      atMost: 1.2,
    },
    {
      what: "requests a second of 32 callers, of those with a list kept for a second",
      is: many.ofKept?.requestsPerSecond ?? Number.NaN,
      atLeast: 0.75,
    },
  ];
}

/** Measured on two processors with ten times as much other work: 0.18 to 0.21. */
export function passesGates({ p99OfNone: { behind, beside } }: PassesFigures): readonly Gate[] {
  const what = "p99 of reviews beside passes in their own thread, of that beside passes in the webhooks' thread";
  return [{ what, is: behind / beside, atMost: 0.6 }];
}

/** Returns the worst value among rows of that kind. @throws Error if there is none */
function worst(
  { rows }: RolloutFigures,
  kinds: readonly string[],
  pick: (row: RolloutFigures["rows"][number]) => number,
) {
  const all = rows.filter(({ kind }) => kinds.includes(kind)).map(pick);
  if (all.length === 0) throw new Error(`no rollout was measured: ${kinds.join(", ")}`);
  return Math.max(...all);
}

export function rolloutGates(figures: RolloutFigures): readonly Gate[] {
  const own = ["first", "gated", "later"];
  return [
    { what: "PATCHes of pods for each pod", is: worst(figures, own, (row) => row.podPatchesPerPod), atMost: 1.005 },
    {
      what: "PATCHes of pods/status with the gate",
      is: worst(figures, ["gated"], (row) => row.statusPatchesPerPod),
      atMost: 0,
    },
    {
      what: "PATCHes of pods/status of a later upgrade",
      is: worst(figures, ["later"], (row) => row.statusPatchesPerPod),
      atMost: 0,
    },
    {
      // The limit: 4,190 for the pod, and 1,670 for its Event, which nothing waits for.
      what: "bytes on the wire for each pod of a later upgrade",
      is: worst(figures, ["later"], (row) => row.bytesPerPod),
      atMost: 6_200,
    },
    {
      // Two entries do not count: the one that marks the start, and the one that names the ledger's namespace.
      what: "status writes for each second of a rollout",
      is: worst(figures, own, (row) => row.sidecarSetStatusWrites / (row.seconds + 2)),
      atMost: 1,
    },
  ];
}

/** Measured: 114 to 118. */
export function memoryGates({ rows }: MemoryFigures): readonly Gate[] {
  return rows.map(({ pods, peakMegabytes }) => ({
    what: `memory of the rollout function over ${pods} pods, MB`,
    is: peakMegabytes,
    atMost: 150,
  }));
}

/** Measured for the same code: 1.3 to 1.8 of computing, by the day. Seconds would depend on other work even more. */
export function firstDecisionGates({ sidecarSets, ofBareList }: FirstDecisionFigures): readonly Gate[] {
  const what = `computing until the first decision over ${sidecarSets} SidecarSets, of a bare list's`;
  return [{ what, is: ofBareList.cpu, atMost: 2 }];
}

/**
 * Measured: 0.8 to 1.05 for computing, 1.00 for calls and objects. A full heap makes linear work look worse, and short
 * rounds beside other work gave 1.48. So computing has a wider limit, which still detects quadratic growth.
 */
export function growthGates(all: readonly Growth[]): readonly Gate[] {
  return all.flatMap(({ of, exponents }) =>
    Object.entries(exponents).map(([what, is]) => ({
      what: `exponent by which ${what === "ms" ? "computing" : what} of a pass at rest grows with the number of ${of}`,
      is,
      atMost: what === "ms" ? 1.6 : 1.05,
    })),
  );
}

/** A cluster's state is created at its first request, so the number of clusters does not change the cost. */
export function clustersGates({ rows }: ClustersFigures): readonly Gate[] {
  const cpuOf = (count: number) => rows.find(({ clusters }) => clusters === count)?.coldCpuMs ?? Number.NaN;
  const what = "computing of a cold start with 10 clusters, of one with 2";
  return [{ what, is: cpuOf(10) / cpuOf(2), atMost: 1.1 }];
}

export function isHeld({ is, atMost = Number.POSITIVE_INFINITY, atLeast = Number.NEGATIVE_INFINITY }: Gate): boolean {
  return is <= atMost && is >= atLeast;
}

export function gateLine(gate: Gate): string {
  const bound = gate.atMost === undefined ? `at least ${gate.atLeast}` : `at most ${gate.atMost}`;
  return `${isHeld(gate) ? "held  " : "BROKEN"} ${gate.what}: ${gate.is.toPrecision(3)}, ${bound}`;
}
