/** Measures the computing time of the webhook for one hostile pod. */
import { expect, test } from "vitest";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { createLog } from "../../shared/log.ts";
import { readConfig } from "../../shared/settings/config.ts";
import { podAdmission } from "../../shared/webhook/handlers/pod-admission.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import type { ClusterView } from "../../shared/webhook/view/cluster-view.ts";
import { ATTACK_TIMES, addAttacks } from "../support/attacks.ts";
import { type HostilePod, hostilePods, madeUpPods, SIDECARSETS } from "./hostile-pods.ts";

const { featureGates, kruiseNamespace } = readConfig({});
const view: ClusterView = {
  listSidecarSets: () => ({ value: { sidecarSets: SIDECARSETS, index: indexSidecarSets(SIDECARSETS) } }),
  getNamespace: () => ({ value: { metadata: { name: "default" } } }),
  findRevisions: () => ({ value: [] }),
  getConfigMap: () => ({ value: undefined }),
};
const answer = webhookApp({
  log: createLog("info", () => undefined),
  isKnown: () => true,
  admissions: { "/mutate-pod": podAdmission({ view, featureGates, kruiseNamespace }) },
});

/** The most tries of a pod that seems slow: only a really slow pod is slow each time. */
const ATTEMPTS = 4;
/**
 * The limit as a multiple of the time to parse JSON of the same size with short texts. Small pods count as a megabyte
 * and a half.
 */
const LIMIT_FLOORS = 3;
const LEAST_BYTES = 1_500_000;

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Returns the milliseconds to parse a megabyte. */
function floorMs(): number {
  const dense = JSON.stringify(Array.from({ length: 60_000 }, (_, index) => ({ name: `v${index}` })));
  const rounds = Array.from({ length: 9 }, () => {
    const begin = cpuMs();
    JSON.parse(dense);
    return ((cpuMs() - begin) * 1_000_000) / dense.length;
  });
  return rounds.toSorted((a, b) => a - b)[4] ?? 0;
}

async function take({ body }: HostilePod) {
  const headers = { "content-type": "application/json" };
  const begin = cpuMs();
  const answered = await answer({
    method: "POST",
    path: "/mutate-pod",
    query: "",
    headers,
    readBody: async () => body,
  });
  return { ms: cpuMs() - begin, ...answered };
}

function* each(pods: readonly HostilePod[], madeUp: number): Generator<HostilePod> {
  yield* pods;
  yield* madeUpPods(madeUp);
}

test(
  "the webhook decides on each hostile pod within three times the time to parse a body of that size",
  async () => {
    let floor = floorMs();
    const slow: string[] = [];
    let injected = 0;
    const pods = hostilePods();
    const madeUp = (ATTACK_TIMES - 1) * pods.length;
    for (const pod of each(pods, madeUp)) {
      const limitMs = () => (LIMIT_FLOORS * floor * Math.max(pod.body.length, LEAST_BYTES)) / 1_000_000;
      let { ms, body } = await take(pod);
      for (let attempt = 1; attempt < ATTEMPTS && ms > limitMs(); attempt++) {
        // The machine may have become slower.
        floor = Math.max(floor, floorMs());
        ms = Math.min(ms, (await take(pod)).ms);
      }
      if (body.includes('"patch"')) injected++;
      if (ms > limitMs()) slow.push(`${pod.title}: ${ms.toFixed(1)} ms of ${limitMs().toFixed(1)}`);
    }
    addAttacks(pods.length + madeUp, slow.length);
    expect(slow).toEqual([]);
    expect([pods.length, injected > pods.length / 2]).toEqual([276, true]);
  },
  120_000 * 10 * ATTACK_TIMES,
);
