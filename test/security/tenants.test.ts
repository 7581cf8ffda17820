/** What a tenant who may create pods can do to others: make them wait, or stop and take back their rollouts. */
import { expect, test } from "vitest";
import { readConfig } from "../../shared/config.ts";
import { indexSidecarSets } from "../../shared/core/match/sidecarset-index.ts";
import { createLog } from "../../shared/log.ts";
import { webhookApp } from "../../shared/webhook/app.ts";
import type { ClusterView } from "../../shared/webhook/cluster-view.ts";
import { podAdmission } from "../../shared/webhook/pod-admission.ts";
import { runSeed } from "../simulation/campaign.ts";
import { scenarioOf } from "../simulation/scenario.ts";
import { TIMES, tried } from "./attacks.ts";
import { hostilePods, ordinaryReview, SIDECARSETS } from "./hostile-pods.ts";

const { featureGates, kruiseNamespace } = readConfig({});
const view: ClusterView = {
  listSidecarSets: () => ({ value: { sidecarSets: SIDECARSETS, index: indexSidecarSets(SIDECARSETS) } }),
  getNamespace: () => ({ value: { metadata: { name: "default" } } }),
  findRevisions: () => ({ value: [] }),
  getConfigMap: () => ({ value: undefined }),
};

const answer = webhookApp({
  log: createLog("error", () => undefined),
  isKnown: () => true,
  admissions: { "/mutate-pod": podAdmission({ view, featureGates, kruiseNamespace }) },
});

async function ask(body: string): Promise<number> {
  const headers = { "content-type": "application/json" };
  const request = { method: "POST", path: "/mutate-pod", query: "", headers, readBody: async () => body };
  return (await answer(request)).status;
}

/** What other processes do meanwhile does not count. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Milliseconds of computing for JSON of so many bytes that is nothing but short texts. */
function parsingMs(bytes: number): number {
  const dense = JSON.stringify(Array.from({ length: Math.ceil(bytes / 16) }, (_, index) => ({ name: `v${index}` })));
  const began = cpuMs();
  JSON.parse(dense);
  return ((cpuMs() - began) * bytes) / dense.length;
}

const AT_ONCE = 3;
const ATTEMPTS = 4;
const MOST_TIMES = 2;
/** Smaller bodies cost what there is to do besides. */
const LEAST_BYTES = 1_500_000;

test("an ordinary pod beside three hostile ones waits no longer than parsing theirs takes, twice", async () => {
  const largest = hostilePods().toSorted((a, b) => b.body.length - a.body.length);
  const triples = Array.from({ length: 20 * TIMES }, (_, at) =>
    Array.from({ length: AT_ONCE }, (_, one) => largest[(at * AT_ONCE + one) % largest.length] as (typeof largest)[0]),
  );
  const ordinary = ordinaryReview();
  for (let warm = 0; warm < 20; warm++) expect(await ask(ordinary)).toBe(200);
  const waits: string[] = [];
  for (const triple of triples) {
    const bytes = triple.reduce((sum, { body }) => sum + Math.max(body.length, LEAST_BYTES), 0);
    let ratio = Number.POSITIVE_INFINITY;
    for (let attempt = 0; attempt < ATTEMPTS && ratio > MOST_TIMES; attempt++) {
      const floorMs = parsingMs(bytes);
      const hostile = triple.map(({ body }) => ask(body));
      const began = cpuMs();
      expect(await ask(ordinary)).toBe(200);
      ratio = Math.min(ratio, (cpuMs() - began) / floorMs);
      await Promise.all(hostile);
    }
    if (ratio > MOST_TIMES) waits.push(`${triple.map(({ title }) => title).join(" | ")}: ${ratio.toFixed(1)}`);
  }
  expect(waits).toEqual([]);
  tried(triples.length * AT_ONCE);
}, 600_000);

/** Every twentieth world has tenants. */
const FIRST = 13;
const EVERY = 20;

test("worlds whose tenants' pods never work: every rollout ends, none stops or is taken back", async () => {
  const seeds = Array.from({ length: 60 * TIMES }, (_, at) => FIRST + EVERY * at);
  let pods = 0;
  for (const seed of seeds) {
    pods += scenarioOf(seed).tenantPods ?? 0;
    expect([seed, (await runSeed(seed)).violations]).toEqual([seed, []]);
  }
  tried(pods);
}, 600_000);
