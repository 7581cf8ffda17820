/** Measures how a pass at rest grows with the objects of a cluster: computing, calls, and objects that it reads. */

import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { SIDECARSET_NAME_LABEL } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { newPassMemory, runPass } from "../../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { injectedPod, NAMESPACE, sidecarSet } from "../../controller/fixture.ts";
import { growthExponent } from "../measure.ts";
import { type StoredCluster, storedCluster } from "./stored-cluster.ts";

export interface Growth {
  readonly of: string;
  readonly sizes: readonly number[];
  /** milliseconds of computing for each size, the least of some passes */
  readonly ms: readonly number[];
  readonly calls: readonly number[];
  readonly objects: readonly number[];
  /** the k in size^k */
  readonly exponents: { readonly ms: number; readonly calls: number; readonly objects: number };
}

type Objects = Readonly<Record<string, readonly KubernetesObject[]>>;

const KRUISE_NAMESPACE = "kruise-system";
const many = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index));

/** Returns a SidecarSet of version 1, created long before its pods. */
function setOf(name: string, spec: Partial<SidecarSet["spec"]> = {}): SidecarSet {
  const set = sidecarSet(name, 1, { maxUnavailable: "10%" });
  const metadata = { ...set.metadata, uid: `uid-of-${name}`, generation: 1, creationTimestamp: "2026-01-01T00:00:00Z" };
  return { ...set, metadata, spec: { ...set.spec, ...spec } };
}

function podOf(index: number, namespace = NAMESPACE, isMissed = false): KubernetesObject {
  const pod = injectedPod("web", `web-${index}`);
  const containerStatuses = pod.spec.containers.map(({ name, image = "" }) => ({
    name,
    image,
    imageID: image,
    ready: true,
  }));
  const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }], containerStatuses };
  const metadata = { ...pod.metadata, namespace, uid: `pod-${index}`, creationTimestamp: "2026-01-02T00:00:00Z" };
  return { ...pod, status, metadata: isMissed ? { ...metadata, annotations: {} } : metadata } as KubernetesObject;
}

function revisionOf(index: number): KubernetesObject {
  const labels = { [SIDECARSET_NAME_LABEL]: "web" };
  const data = { spec: { containers: [] } };
  return {
    metadata: { name: `web-${index}`, namespace: KRUISE_NAMESPACE, labels },
    data,
    revision: index + 1,
  } as never;
}

const labelled = (index: number) => ({ metadata: { name: `ns-${index}`, labels: { mesh: "on" } } });
const OTHERS = many(200, (index) => setOf(`other-${index}`));

/** Dimension → its sizes, and the cluster at a size. */
const DIMENSIONS: Readonly<
  Record<string, { readonly sizes: readonly number[]; readonly at: (size: number) => Objects }>
> = {
  SidecarSets: { sizes: [1_000, 8_000], at: (size) => ({ sidecarsets: many(size, (i) => setOf(`set-${i}`)) }) },
  namespaces: {
    sizes: [4_000, 32_000],
    at: (size) => ({
      sidecarsets: [setOf("web", { namespaceSelector: { matchLabels: { mesh: "on" } } })],
      namespaces: many(size, labelled),
      pods: many(size, (i) => podOf(i, `ns-${i}`)),
    }),
  },
  pods: { sizes: [4_000, 32_000], at: (size) => ({ sidecarsets: [setOf("web")], pods: many(size, (i) => podOf(i)) }) },
  revisions: {
    sizes: [4_000, 32_000],
    at: (size) => ({
      sidecarsets: [setOf("web", { revisionHistoryLimit: size + 1 })],
      pods: many(10, (i) => podOf(i)),
      controllerrevisions: many(size, revisionOf),
    }),
  },
  "missed pods": {
    sizes: [4_000, 32_000],
    at: (size) => ({ sidecarsets: [setOf("web"), ...OTHERS], pods: many(size, (i) => podOf(i, NAMESPACE, true)) }),
  },
};

/** Runs `rounds` passes over each cluster, the sizes of one dimension in turn, after one pass that settles it. */
export async function measureGrowth(rounds: number): Promise<readonly Growth[]> {
  const all: Growth[] = [];
  for (const [of, { sizes, at }] of Object.entries(DIMENSIONS)) {
    const clusters = sizes.map((size) => storedCluster(at(size)));
    for (const cluster of clusters) await pass(cluster);
    const best = sizes.map(() => Number.POSITIVE_INFINITY);
    const last = sizes.map(() => ({ calls: 0, objects: 0 }));
    for (let round = 0; round < rounds; round++)
      for (const [index, cluster] of clusters.entries()) {
        const { ms, ...counts } = await pass(cluster);
        best[index] = Math.min(best[index] ?? ms, ms);
        last[index] = counts;
      }
    const calls = last.map((counts) => counts.calls);
    const objects = last.map((counts) => counts.objects);
    const exponentOf = (values: readonly number[]) =>
      growthExponent(sizes.map((size, index) => [size, values[index] ?? Number.NaN] as const));
    const exponents = { ms: exponentOf(best), calls: exponentOf(calls), objects: exponentOf(objects) };
    all.push({ of, sizes, ms: best, calls, objects, exponents });
  }
  return all;
}

async function pass(
  cluster: StoredCluster,
): Promise<{ readonly ms: number; readonly calls: number; readonly objects: number }> {
  const { calls, objects } = { ...cluster.counts };
  globalThis.gc?.();
  const began = process.cpuUsage();
  const report = await runPass(cluster, {
    deadlineMs: 600_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: true,
    memory: newPassMemory(),
  });
  const { user, system } = process.cpuUsage(began);
  const wrong = report.sidecarSets.find(({ stop }) => stop !== "settled");
  if (wrong || report.problems.length > 0 || report.sidecarSets.length === 0)
    throw new Error(`a pass is not at rest: ${wrong?.name} ${wrong?.stop} ${wrong?.why} ${report.problems.join("; ")}`);
  return { ms: (user + system) / 1000, calls: cluster.counts.calls - calls, objects: cluster.counts.objects - objects };
}

export function growthTable(all: readonly Growth[]): string {
  const rows = all.map(({ of, sizes, ms, calls, objects, exponents }) => {
    const list = (values: readonly number[]) => values.map((value) => Math.round(value)).join(", ");
    const k = [exponents.ms, exponents.calls, exponents.objects].map((one) => one.toFixed(2)).join(" | ");
    return `| ${of}: ${list(sizes)} | ${list(ms)} | ${list(calls)} | ${list(objects)} | ${k} |`;
  });
  const head =
    "| at rest, by the number of | ms of computing | calls | objects read | exponent of computing | of calls | of objects |";
  return [head, "|---|---|---|---|---|---|---|", ...rows, ""].join("\n");
}
